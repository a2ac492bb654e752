# SPDX-License-Identifier: BSD-3-Clause
agg_tests = tests/agg/test_control
check_PROGRAMS += $(agg_tests)
TESTS += $(agg_tests)
