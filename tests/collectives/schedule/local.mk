# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/collectives/schedule/test_program tests/collectives/schedule/test_schedule \
	tests/collectives/schedule/test_simschedule
