# SPDX-License-Identifier: BSD-3-Clause
schedule_tests = \
	tests/collectives/schedule/test_program \
	tests/collectives/schedule/test_schedule \
	tests/collectives/schedule/test_simschedule
check_PROGRAMS += $(schedule_tests)
TESTS += $(schedule_tests)
