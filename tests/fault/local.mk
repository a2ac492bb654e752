# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/fault/test_fault tests/fault/test_grow_faults tests/fault/test_limits tests/fault/test_resets \
	tests/fault/test_shrink_faults tests/fault/test_tribd_faults tests/fault/test_zombies
check_scripts += tests/fault/test_freezer.sh
tests_fault_test_shrink_faults_SOURCES = tests/fault/test_shrink_faults.c tests/fault/hits.c tests/fault/hits.h \
	tests/fault/planned.c tests/fault/planned.h
tests_fault_test_tribd_faults_SOURCES = tests/fault/served_job.c tests/fault/served_job.h \
	tests/fault/test_tribd_faults.c
tests_fault_test_grow_faults_SOURCES = tests/fault/test_grow_faults.c tests/fault/hits.c tests/fault/hits.h \
	tests/comm/growing.h
