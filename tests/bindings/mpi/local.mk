# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/bindings/mpi/all_collectives.c tests/bindings/mpi/both_mpis.sh tests/bindings/mpi/refused_calls.c \
	tests/bindings/mpi/datatypes.c tests/bindings/mpi/driver_of_gpu.c tests/bindings/mpi/inputs/lj.lammps \
	tests/bindings/mpi/inputs/lu_two_ranks.dat tests/bindings/mpi/inputs/pppm.lammps \
	tests/bindings/mpi/inputs/silicon.pwscf tests/bindings/mpi/inputs/water.nwchem tests/bindings/mpi/later_calls.c \
	tests/bindings/mpi/life_cycle.c tests/bindings/mpi/linked_tool.c tests/bindings/mpi/long_counts.c \
	tests/bindings/mpi/mpi4py_calls.py tests/bindings/mpi/mpi_apps.py tests/bindings/mpi/mpich_coll.sh \
	tests/bindings/mpi/petsc_solvers.py tests/bindings/mpi/reductions.f90 tests/bindings/mpi/reductions77.f \
	tests/bindings/mpi/situations.c tests/bindings/mpi/two_groups.c tests/bindings/mpi/yielding_ucp.c
check_scripts += tests/bindings/mpi/test_mpi_apps.sh tests/bindings/mpi/test_mpi_data.sh \
	tests/bindings/mpi/test_mpi_life.sh tests/bindings/mpi/test_mpi_loading.sh tests/bindings/mpi/test_trib_mpi.sh
