# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/fault/test_fault
TESTS += tests/fault/test_fault
check_PROGRAMS += tests/fault/test_limits
TESTS += tests/fault/test_limits
check_PROGRAMS += tests/fault/test_resets
TESTS += tests/fault/test_resets
check_PROGRAMS += tests/fault/test_zombies
TESTS += tests/fault/test_zombies
check_PROGRAMS += tests/fault/test_shrink_faults
TESTS += tests/fault/test_shrink_faults
tests_fault_test_shrink_faults_SOURCES = \
	tests/fault/test_shrink_faults.c tests/fault/hits.c tests/fault/hits.h tests/fault/planned.c \
	tests/fault/planned.h
check_PROGRAMS += tests/fault/test_tribd_faults
TESTS += tests/fault/test_tribd_faults
tests_fault_test_tribd_faults_SOURCES = \
	tests/fault/served_job.c tests/fault/served_job.h tests/fault/test_tribd_faults.c
dist_check_SCRIPTS += tests/fault/test_freezer.sh
TESTS += tests/fault/test_freezer.sh
check_PROGRAMS += tests/fault/test_grow_faults
TESTS += tests/fault/test_grow_faults
tests_fault_test_grow_faults_SOURCES = \
	tests/fault/test_grow_faults.c tests/fault/hits.c tests/fault/hits.h tests/comm/growing.h
