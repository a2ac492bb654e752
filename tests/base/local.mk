# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/base/test_accept tests/base/test_acceptor tests/base/test_cgroup tests/base/test_config \
	tests/base/test_cpu \
	tests/base/test_dial tests/base/test_error tests/base/test_fd tests/base/test_library tests/base/test_log \
	tests/base/test_memfd tests/base/test_meminfo tests/base/test_numa tests/base/test_process tests/base/test_proof \
	tests/base/test_quiet \
	tests/base/test_quota tests/base/test_rdma_counters tests/base/test_rng tests/base/test_secret tests/base/test_sections tests/base/test_sized \
	tests/base/test_status tests/base/test_text tests/base/test_time tests/base/test_trace \
	tests/base/test_unauthenticated tests/base/test_wait tests/base/test_workers
