# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/store/test_store
TESTS += tests/store/test_store
tests_store_test_store_SOURCES = tests/store/test_store.c tests/store/store_rig.h \
	tests/harness/cutting_proxy.c tests/harness/cutting_proxy.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_store_test_store_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/store/test_store_forms
TESTS += tests/store/test_store_forms
tests_store_test_store_forms_SOURCES = tests/store/test_store_forms.c tests/store/store_rig.h \
	tests/harness/cutting_proxy.c tests/harness/cutting_proxy.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_store_test_store_forms_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/store/test_store_restore
TESTS += tests/store/test_store_restore
tests_store_test_store_restore_SOURCES = tests/store/test_store_restore.c \
	tests/store/snapshot_rig.c tests/store/snapshot_rig.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_store_test_store_restore_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/store/test_store_snapshot
TESTS += tests/store/test_store_snapshot
tests_store_test_store_snapshot_SOURCES = tests/store/test_store_snapshot.c \
	tests/store/snapshot_rig.c tests/store/snapshot_rig.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_store_test_store_snapshot_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/store/test_store_shards
TESTS += tests/store/test_store_shards
tests_store_test_store_shards_SOURCES = tests/store/test_store_shards.c \
	tests/store/snapshot_rig.c tests/store/snapshot_rig.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_store_test_store_shards_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/store/test_store_silent
TESTS += tests/store/test_store_silent
tests_store_test_store_silent_SOURCES = tests/store/test_store_silent.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_store_test_store_silent_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/store/test_store_again
TESTS += tests/store/test_store_again
tests_store_test_store_again_SOURCES = tests/store/test_store_again.c
tests_store_test_store_again_LDADD = $(comm_tests_link)
