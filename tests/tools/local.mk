# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/tools/common/test_bind tests/tools/common/test_options \
	tests/tools/common/test_tribd_client tests/tools/test_arguments
check_scripts += tests/tools/common/test_completion.sh tests/tools/test_modes.sh tests/tools/test_namespaces.sh \
	tests/tools/test_progress.sh tests/tools/test_reach.sh tests/tools/test_retry.sh tests/tools/test_schedule.sh \
	tests/tools/test_seal.sh tests/tools/test_stacks.sh tests/tools/test_topo.sh tests/tools/test_trace.sh \
	tests/tools/test_trib_info.sh tests/tools/test_trib_run.sh tests/tools/test_widths.sh

tests_tools_test_arguments_LDADD = $(PERF_TEST_LIBS)

tests_tools_common_test_bind_LDADD = libtools.la $(LDADD)

tests_tools_common_test_options_LDADD = libtools.la $(LDADD)

tests_tools_common_test_tribd_client_LDADD = libtools.la $(LDADD)
