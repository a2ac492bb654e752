# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/mpi/all_collectives.c tests/mpi/reductions.f90 tests/mpi/reductions77.f tests/mpi/situations.c
dist_check_SCRIPTS += tests/mpi/test_trib_mpi.sh
TESTS += tests/mpi/test_trib_mpi.sh
