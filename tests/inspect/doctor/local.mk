# SPDX-License-Identifier: BSD-3-Clause
doctor_tests = \
	tests/inspect/doctor/test_doctor
check_PROGRAMS += $(doctor_tests)
TESTS += $(doctor_tests)

