# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += \
	tests/mpi/all_collectives.c \
	tests/mpi/both_mpis.sh \
	tests/mpi/refused_calls.c \
	tests/mpi/datatypes.c \
	tests/mpi/driver_of_gpu.c \
	tests/mpi/inputs/lj.lammps \
	tests/mpi/inputs/lu_two_ranks.dat \
	tests/mpi/inputs/pppm.lammps \
	tests/mpi/inputs/silicon.pwscf \
	tests/mpi/inputs/water.nwchem \
	tests/mpi/later_calls.c \
	tests/mpi/life_cycle.c \
	tests/mpi/linked_tool.c \
	tests/mpi/long_counts.c \
	tests/mpi/mpi4py_calls.py \
	tests/mpi/mpi_apps.py \
	tests/mpi/mpich_coll.sh \
	tests/mpi/petsc_solvers.py \
	tests/mpi/reductions.f90 \
	tests/mpi/reductions77.f \
	tests/mpi/situations.c
dist_check_SCRIPTS += \
	tests/mpi/test_mpi_apps.sh \
	tests/mpi/test_mpi_data.sh \
	tests/mpi/test_mpi_life.sh \
	tests/mpi/test_mpi_loading.sh \
	tests/mpi/test_trib_mpi.sh
TESTS += \
	tests/mpi/test_mpi_apps.sh \
	tests/mpi/test_mpi_data.sh \
	tests/mpi/test_mpi_life.sh \
	tests/mpi/test_mpi_loading.sh \
	tests/mpi/test_trib_mpi.sh
