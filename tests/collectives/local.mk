# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/collectives/test_barrier tests/collectives/test_collectives tests/collectives/test_direct \
	tests/collectives/test_doubling tests/collectives/test_flat tests/collectives/test_halving_doubling \
	tests/collectives/test_hierarchical tests/collectives/test_offload_schedule tests/collectives/test_pairwise \
	tests/collectives/test_ring tests/collectives/test_tree

# The simulator and the sweep over all shapes.
libtribtest_la_SOURCES += tests/collectives/sweep.c tests/collectives/sweep.h tests/harness/simgraph.c \
	tests/harness/simgraph.h tests/harness/simprove.c tests/harness/simschedule.c tests/harness/simschedule.h \
	tests/harness/simvalues.c tests/harness/simvalues.h
