# SPDX-License-Identifier: BSD-3-Clause
offload_tests = \
	tests/offload/test_agg_tree \
	tests/offload/test_agg_comm \
	tests/offload/test_fallback \
	tests/offload/test_offload_partial \
	tests/offload/test_rewritten \
	tests/offload/test_agreement \
	tests/offload/test_control_link \
	tests/offload/test_discovery \
	tests/offload/test_start_log \
	tests/offload/test_tree_layout \
	tests/offload/test_offload_calls \
	tests/offload/test_offload_memory \
	tests/offload/test_offload_wait \
	tests/offload/test_offload_plan \
	tests/offload/test_rejoin \
	tests/offload/test_admission \
	tests/offload/test_agg_wireup \
	tests/offload/test_job_request \
	tests/offload/test_offload_gate
check_PROGRAMS += $(offload_tests)
TESTS += $(offload_tests)
tests_offload_test_agg_comm_SOURCES = tests/comm/matrix_codecs.h tests/offload/aggregators.h \
	tests/offload/test_agg_comm.c
tests_offload_test_agg_comm_LDADD = $(comm_tests_link)
tests_offload_test_rewritten_SOURCES = tests/offload/aggregators.h tests/offload/rewriter.h \
	tests/offload/test_rewritten.c
tests_offload_test_rewritten_LDADD = $(comm_tests_link)
tests_offload_test_offload_partial_SOURCES = tests/offload/aggregators.h tests/offload/test_offload_partial.c
tests_offload_test_offload_partial_LDADD = $(comm_tests_link)
tests_offload_test_fallback_SOURCES = tests/offload/lossy_job.h tests/offload/aggregators.h \
	 tests/offload/test_fallback.c
tests_offload_test_fallback_LDADD = $(comm_tests_link)
tests_offload_test_agreement_LDADD = $(comm_tests_link)
tests_offload_test_control_link_LDADD = $(comm_tests_link)
tests_offload_test_discovery_LDADD = $(comm_tests_link)
tests_offload_test_start_log_LDADD = $(comm_tests_link)
tests_offload_test_tree_layout_SOURCES = tests/harness/group_text.h tests/offload/layouts.h \
	tests/offload/test_tree_layout.c
tests_offload_test_offload_calls_SOURCES = tests/offload/aggregators.h tests/offload/test_offload_calls.c
tests_offload_test_offload_calls_LDADD = $(comm_tests_link)
tests_offload_test_offload_memory_SOURCES = tests/offload/aggregators.h tests/offload/test_offload_memory.c
tests_offload_test_offload_memory_LDADD = $(comm_tests_link)
tests_offload_test_offload_gate_SOURCES = tests/offload/aggregators.h tests/offload/test_offload_gate.c
tests_offload_test_offload_gate_LDADD = $(comm_tests_link)
tests_offload_test_offload_wait_SOURCES = tests/offload/aggregators.h tests/offload/test_offload_wait.c
tests_offload_test_offload_wait_LDADD = $(comm_tests_link)
tests_offload_test_offload_plan_SOURCES = tests/offload/aggregators.h tests/offload/test_offload_plan.c
tests_offload_test_offload_plan_LDADD = $(comm_tests_link)
tests_offload_test_rejoin_SOURCES = tests/offload/aggregators.h tests/offload/test_rejoin.c
tests_offload_test_rejoin_LDADD = $(comm_tests_link)
tests_offload_test_admission_SOURCES = tests/offload/fake_tribd.h tests/offload/test_admission.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_offload_test_admission_LDADD = $(comm_tests_link)
tests_offload_test_agg_wireup_SOURCES = tests/offload/fake_tribd.h tests/offload/test_agg_wireup.c
tests_offload_test_agg_wireup_LDADD = $(comm_tests_link)
tests_offload_test_job_request_SOURCES = tests/offload/fake_tribd.h tests/offload/test_job_request.c
tests_offload_test_job_request_LDADD = $(comm_tests_link)
