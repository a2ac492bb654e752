# SPDX-License-Identifier: BSD-3-Clause
pipeline_tests = \
	tests/pipeline/test_schedule
check_PROGRAMS += $(pipeline_tests)
TESTS += $(pipeline_tests)
