# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/fault/test_fault
TESTS += tests/fault/test_fault
tests_fault_test_fault_LDADD = $(core_tests_link)
