# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/agg/store_client/test_store tests/agg/store_client/test_store_again \
	tests/agg/store_client/test_store_cut tests/agg/store_client/test_store_forms \
	tests/agg/store_client/test_store_place tests/agg/store_client/test_store_restore \
	tests/agg/store_client/test_store_shards tests/agg/store_client/test_store_silent \
	tests/agg/store_client/test_store_snapshot
tests_agg_store_client_test_store_place_SOURCES = tests/agg/store_client/test_store_place.c \
	tests/agg/store_client/snapshot_rig.c tests/agg/store_client/snapshot_rig.h
tests_agg_store_client_test_store_restore_SOURCES = tests/agg/store_client/test_store_restore.c \
	tests/agg/store_client/snapshot_rig.c tests/agg/store_client/snapshot_rig.h
tests_agg_store_client_test_store_snapshot_SOURCES = tests/agg/store_client/test_store_snapshot.c \
	tests/agg/store_client/snapshot_rig.c tests/agg/store_client/snapshot_rig.h
tests_agg_store_client_test_store_shards_SOURCES = tests/agg/store_client/test_store_shards.c \
	tests/agg/store_client/snapshot_rig.c tests/agg/store_client/snapshot_rig.h

EXTRA_DIST += tests/agg/store_client/store_rig.h
