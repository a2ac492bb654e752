# SPDX-License-Identifier: BSD-3-Clause
offload_tests = \
	tests/agg/client/test_agg_tree \
	tests/agg/client/test_agg_comm \
	tests/agg/client/test_fallback \
	tests/agg/client/test_offload_partial \
	tests/agg/client/test_rewritten \
	tests/agg/client/test_agreement \
	tests/agg/client/test_control_link \
	tests/agg/client/test_discovery \
	tests/agg/client/test_start_log \
	tests/agg/client/test_tree_layout \
	tests/agg/client/test_offload_calls \
	tests/agg/client/test_offload_memory \
	tests/agg/client/test_offload_wait \
	tests/agg/client/test_offload_plan \
	tests/agg/client/test_rejoin \
	tests/agg/client/test_admission \
	tests/agg/client/test_agg_wireup \
	tests/agg/client/test_job_request \
	tests/agg/client/test_offload_gate
check_PROGRAMS += $(offload_tests)
TESTS += $(offload_tests)
tests_agg_client_test_agg_comm_SOURCES = tests/comm/matrix_codecs.h tests/agg/client/aggregators.h \
	tests/agg/client/test_agg_comm.c
tests_agg_client_test_agg_comm_LDADD = $(comm_tests_link)
tests_agg_client_test_rewritten_SOURCES = tests/agg/client/aggregators.h tests/agg/client/rewriter.h \
	tests/agg/client/test_rewritten.c
tests_agg_client_test_rewritten_LDADD = $(comm_tests_link)
tests_agg_client_test_offload_partial_SOURCES = tests/agg/client/aggregators.h tests/agg/client/test_offload_partial.c
tests_agg_client_test_offload_partial_LDADD = $(comm_tests_link)
tests_agg_client_test_fallback_SOURCES = tests/agg/client/lossy_job.h tests/agg/client/aggregators.h \
	 tests/agg/client/test_fallback.c
tests_agg_client_test_fallback_LDADD = $(comm_tests_link)
tests_agg_client_test_agreement_LDADD = $(comm_tests_link)
tests_agg_client_test_control_link_LDADD = $(comm_tests_link)
tests_agg_client_test_discovery_LDADD = $(comm_tests_link)
tests_agg_client_test_start_log_LDADD = $(comm_tests_link)
tests_agg_client_test_tree_layout_SOURCES = tests/harness/group_text.h tests/agg/client/layouts.h \
	tests/agg/client/test_tree_layout.c
tests_agg_client_test_offload_calls_SOURCES = tests/agg/client/aggregators.h tests/agg/client/test_offload_calls.c
tests_agg_client_test_offload_calls_LDADD = $(comm_tests_link)
tests_agg_client_test_offload_memory_SOURCES = tests/agg/client/aggregators.h tests/agg/client/test_offload_memory.c
tests_agg_client_test_offload_memory_LDADD = $(comm_tests_link)
tests_agg_client_test_offload_gate_SOURCES = tests/agg/client/aggregators.h tests/agg/client/test_offload_gate.c
tests_agg_client_test_offload_gate_LDADD = $(comm_tests_link)
tests_agg_client_test_offload_wait_SOURCES = tests/agg/client/aggregators.h tests/agg/client/test_offload_wait.c
tests_agg_client_test_offload_wait_LDADD = $(comm_tests_link)
tests_agg_client_test_offload_plan_SOURCES = tests/agg/client/aggregators.h tests/agg/client/test_offload_plan.c
tests_agg_client_test_offload_plan_LDADD = $(comm_tests_link)
tests_agg_client_test_rejoin_SOURCES = tests/agg/client/aggregators.h tests/agg/client/test_rejoin.c
tests_agg_client_test_rejoin_LDADD = $(comm_tests_link)
tests_agg_client_test_admission_SOURCES = tests/agg/client/fake_tribd.h tests/agg/client/test_admission.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_agg_client_test_admission_LDADD = $(comm_tests_link)
tests_agg_client_test_agg_wireup_SOURCES = tests/agg/client/fake_tribd.h tests/agg/client/test_agg_wireup.c
tests_agg_client_test_agg_wireup_LDADD = $(comm_tests_link)
tests_agg_client_test_job_request_SOURCES = tests/agg/client/fake_tribd.h tests/agg/client/test_job_request.c
tests_agg_client_test_job_request_LDADD = $(comm_tests_link)
