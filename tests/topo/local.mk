# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/topo/racks/test_agg_groups tests/topo/racks/test_racks tests/topo/test_calibration \
	tests/topo/test_cost tests/topo/test_cpus tests/topo/test_groups tests/topo/test_hostlist tests/topo/test_layout \
	tests/topo/test_leaders tests/topo/test_machine tests/topo/test_rdma

EXTRA_DIST += tests/topo/data tests/topo/data.h tests/topo/data_layout.h tests/topo/places.h
