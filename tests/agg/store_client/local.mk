# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/agg/store_client/test_store
TESTS += tests/agg/store_client/test_store
check_PROGRAMS += tests/agg/store_client/test_store_forms
TESTS += tests/agg/store_client/test_store_forms
check_PROGRAMS += tests/agg/store_client/test_store_restore
TESTS += tests/agg/store_client/test_store_restore
tests_agg_store_client_test_store_restore_SOURCES = \
	tests/agg/store_client/test_store_restore.c tests/agg/store_client/snapshot_rig.c \
	tests/agg/store_client/snapshot_rig.h
check_PROGRAMS += tests/agg/store_client/test_store_snapshot
TESTS += tests/agg/store_client/test_store_snapshot
tests_agg_store_client_test_store_snapshot_SOURCES = \
	tests/agg/store_client/test_store_snapshot.c tests/agg/store_client/snapshot_rig.c \
	tests/agg/store_client/snapshot_rig.h
check_PROGRAMS += tests/agg/store_client/test_store_shards
TESTS += tests/agg/store_client/test_store_shards
tests_agg_store_client_test_store_shards_SOURCES = \
	tests/agg/store_client/test_store_shards.c tests/agg/store_client/snapshot_rig.c \
	tests/agg/store_client/snapshot_rig.h
check_PROGRAMS += tests/agg/store_client/test_store_silent
TESTS += tests/agg/store_client/test_store_silent
check_PROGRAMS += tests/agg/store_client/test_store_again
TESTS += tests/agg/store_client/test_store_again
check_PROGRAMS += tests/agg/store_client/test_store_cut
TESTS += tests/agg/store_client/test_store_cut

EXTRA_DIST += tests/agg/store_client/store_rig.h
