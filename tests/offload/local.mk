# SPDX-License-Identifier: BSD-3-Clause
offload_tests = \
	tests/offload/test_agg_tree \
	tests/offload/test_agg_comm \
	tests/offload/test_fallback \
	tests/offload/test_quorum \
	tests/offload/test_rewritten
check_PROGRAMS += $(offload_tests)
TESTS += $(offload_tests)
tests_offload_test_agg_comm_SOURCES = tests/comm/matrix_codecs.h tests/offload/nodes.h \
	tests/offload/test_agg_comm.c
tests_offload_test_agg_comm_LDADD = $(comm_tests_link)
tests_offload_test_rewritten_SOURCES = tests/offload/nodes.h tests/offload/rewriter.h \
	tests/offload/test_rewritten.c
tests_offload_test_rewritten_LDADD = $(comm_tests_link)
tests_offload_test_quorum_SOURCES = tests/offload/nodes.h tests/offload/test_quorum.c
tests_offload_test_quorum_LDADD = $(comm_tests_link)
tests_offload_test_fallback_SOURCES = tests/offload/nodes.h tests/offload/test_fallback.c
tests_offload_test_fallback_LDADD = $(comm_tests_link)
