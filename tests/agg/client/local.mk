# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/agg/client/test_admission tests/agg/client/test_agg_comm tests/agg/client/test_agg_tree \
	tests/agg/client/test_agg_wireup tests/agg/client/test_agreement tests/agg/client/test_control_link \
	tests/agg/client/test_discovery tests/agg/client/test_fallback tests/agg/client/test_job_request \
	tests/agg/client/test_offload_calls tests/agg/client/test_offload_gate tests/agg/client/test_offload_memory \
	tests/agg/client/test_offload_partial tests/agg/client/test_offload_plan tests/agg/client/test_offload_wait \
	tests/agg/client/test_rejoin tests/agg/client/test_rewritten tests/agg/client/test_start_log \
	tests/agg/client/test_tree_layout

EXTRA_DIST += tests/agg/client/fake_tribd.h tests/agg/client/layouts.h tests/agg/client/lossy_job.h
