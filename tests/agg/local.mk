# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/agg/authtest.h
agg_tests = tests/agg/test_auth tests/agg/test_control tests/agg/test_session
check_PROGRAMS += $(agg_tests)
TESTS += $(agg_tests)
