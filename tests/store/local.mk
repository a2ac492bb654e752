# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/store/test_store
TESTS += tests/store/test_store
tests_store_test_store_SOURCES = tests/store/test_store.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_store_test_store_LDADD = $(comm_tests_link)
