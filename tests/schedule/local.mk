# SPDX-License-Identifier: BSD-3-Clause
schedule_tests = \
	tests/schedule/test_program \
	tests/schedule/test_schedule \
	tests/schedule/test_simschedule
check_PROGRAMS += $(schedule_tests)
TESTS += $(schedule_tests)
tests_schedule_test_simschedule_LDADD = $(sim_ldadd)
