# SPDX-License-Identifier: BSD-3-Clause
doctor_tests = \
	tests/doctor/test_doctor
check_PROGRAMS += $(doctor_tests)
TESTS += $(doctor_tests)

