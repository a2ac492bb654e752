# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/agg/store_client/test_store
TESTS += tests/agg/store_client/test_store
tests_agg_store_client_test_store_SOURCES = tests/agg/store_client/test_store.c tests/agg/store_client/store_rig.h \
	tests/harness/cutting_proxy.c tests/harness/cutting_proxy.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_agg_store_client_test_store_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/agg/store_client/test_store_forms
TESTS += tests/agg/store_client/test_store_forms
tests_agg_store_client_test_store_forms_SOURCES = tests/agg/store_client/test_store_forms.c tests/agg/store_client/store_rig.h \
	tests/harness/cutting_proxy.c tests/harness/cutting_proxy.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_agg_store_client_test_store_forms_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/agg/store_client/test_store_restore
TESTS += tests/agg/store_client/test_store_restore
tests_agg_store_client_test_store_restore_SOURCES = tests/agg/store_client/test_store_restore.c \
	tests/agg/store_client/snapshot_rig.c tests/agg/store_client/snapshot_rig.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_agg_store_client_test_store_restore_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/agg/store_client/test_store_snapshot
TESTS += tests/agg/store_client/test_store_snapshot
tests_agg_store_client_test_store_snapshot_SOURCES = tests/agg/store_client/test_store_snapshot.c \
	tests/agg/store_client/snapshot_rig.c tests/agg/store_client/snapshot_rig.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_agg_store_client_test_store_snapshot_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/agg/store_client/test_store_shards
TESTS += tests/agg/store_client/test_store_shards
tests_agg_store_client_test_store_shards_SOURCES = tests/agg/store_client/test_store_shards.c \
	tests/agg/store_client/snapshot_rig.c tests/agg/store_client/snapshot_rig.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_agg_store_client_test_store_shards_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/agg/store_client/test_store_silent
TESTS += tests/agg/store_client/test_store_silent
tests_agg_store_client_test_store_silent_SOURCES = tests/agg/store_client/test_store_silent.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_agg_store_client_test_store_silent_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/agg/store_client/test_store_again
TESTS += tests/agg/store_client/test_store_again
tests_agg_store_client_test_store_again_SOURCES = tests/agg/store_client/test_store_again.c
tests_agg_store_client_test_store_again_LDADD = $(comm_tests_link)
check_PROGRAMS += tests/agg/store_client/test_store_cut
TESTS += tests/agg/store_client/test_store_cut
tests_agg_store_client_test_store_cut_SOURCES = tests/agg/store_client/test_store_cut.c tests/agg/store_client/store_rig.h \
	tests/harness/cutting_proxy.c tests/harness/cutting_proxy.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_agg_store_client_test_store_cut_LDADD = $(comm_tests_link)
