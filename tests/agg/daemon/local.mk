# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/agg/daemon/test_aggregator tests/agg/daemon/test_archive tests/agg/daemon/test_archive_deletions \
	tests/agg/daemon/test_archive_numbers tests/agg/daemon/test_archive_turns tests/agg/daemon/test_reload \
	tests/agg/daemon/test_request_worker tests/agg/daemon/test_store_admit tests/agg/daemon/test_store_end \
	tests/agg/daemon/test_store_job tests/agg/daemon/test_store_share tests/agg/daemon/test_store_turns \
	tests/agg/daemon/test_worker
check_scripts += tests/agg/daemon/test_tribd.sh tests/agg/daemon/test_tribd_attack.sh \
	tests/agg/daemon/test_tribd_files.sh tests/agg/daemon/test_tribd_hostile.sh tests/agg/daemon/test_tribd_lost.sh \
	tests/agg/daemon/test_tribd_munge.sh tests/agg/daemon/test_tribd_quorum.sh tests/agg/daemon/test_tribd_quota.sh \
	tests/agg/daemon/test_tribd_return.sh tests/agg/daemon/test_tribd_seal.sh tests/agg/daemon/test_tribd_store.sh \
	tests/agg/daemon/test_tribd_systemd.sh tests/agg/daemon/test_tribd_tree.sh \
	tests/agg/daemon/test_tribd_unauthenticated.sh tests/agg/daemon/test_tribd_users.sh
check_PROGRAMS += tests/agg/daemon/steps tests/agg/daemon/fake_systemd tests/agg/daemon/plans tests/agg/daemon/pushes \
	tests/agg/daemon/late tests/agg/daemon/idle tests/agg/daemon/hostile tests/agg/daemon/attack
tests_agg_daemon_hostile_SOURCES = tests/agg/client/rewriter.h tests/agg/daemon/caller.c tests/agg/daemon/caller.h \
	tests/agg/daemon/exact_jobs.h tests/agg/daemon/hostile.c tests/agg/daemon/hostile.h tests/agg/daemon/hostile_alone.c \
	tests/agg/daemon/hostile_unauthenticated.c
tests_agg_daemon_hostile_LDADD = $(SERVICE_LIBS)
tests_agg_daemon_attack_SOURCES = tests/agg/daemon/attack.c tests/agg/daemon/attack.h tests/agg/daemon/attack_beside.c \
	tests/agg/daemon/attack_flood.c tests/agg/daemon/attack_rank.c tests/agg/daemon/attack_words.c \
	tests/agg/daemon/caller.c tests/agg/daemon/caller.h tests/agg/daemon/exact_jobs.h
tests_agg_daemon_attack_LDADD = $(SERVICE_LIBS)
EXTRA_DIST += tests/agg/daemon/attacks.sh tests/agg/daemon/daemons.sh tests/agg/daemon/soak.sh
tests_agg_daemon_test_request_worker_SOURCES = tests/agg/daemon/test_request_worker.c agg/daemon/request_worker.c \
	agg/daemon/request_worker.h
tests_agg_daemon_test_request_worker_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)
tests_agg_daemon_test_worker_SOURCES = tests/agg/daemon/test_worker.c agg/daemon/worker.c agg/daemon/worker.h
tests_agg_daemon_test_worker_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)
tests_agg_daemon_test_aggregator_SOURCES = tests/agg/daemon/test_aggregator.c agg/daemon/worker.c agg/daemon/worker.h \
	agg/daemon/aggregator.c agg/daemon/aggregator.h agg/daemon/aggregator_step.c agg/daemon/job_settings.c \
	agg/daemon/job_settings.h agg/daemon/aggregator_metrics.c agg/daemon/aggregator_metrics.h
tests_agg_daemon_test_aggregator_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)
tests_agg_daemon_test_archive_SOURCES = tests/agg/daemon/test_archive.c tests/agg/daemon/archive_rig.h \
	agg/daemon/archive.h agg/daemon/archive_limits.c agg/daemon/archive_list.c agg/daemon/archive_parts.h \
	agg/daemon/archive_open.c agg/daemon/archive_turns.c agg/daemon/archive_file.c agg/daemon/quotas.c
tests_agg_daemon_test_archive_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)
tests_agg_daemon_test_archive_deletions_SOURCES = tests/agg/daemon/test_archive_deletions.c \
	tests/agg/daemon/archive_rig.h agg/daemon/archive.h agg/daemon/archive_limits.c agg/daemon/archive_list.c \
	agg/daemon/archive_parts.h agg/daemon/archive_open.c agg/daemon/archive_turns.c agg/daemon/archive_file.c \
	agg/daemon/quotas.c
tests_agg_daemon_test_archive_deletions_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)

tests_agg_daemon_test_archive_numbers_SOURCES = tests/agg/daemon/test_archive_numbers.c \
	tests/agg/daemon/archive_rig.h agg/daemon/archive.h agg/daemon/archive_limits.c agg/daemon/archive_list.c \
	agg/daemon/archive_parts.h agg/daemon/archive_open.c agg/daemon/archive_turns.c agg/daemon/archive_file.c \
	agg/daemon/quotas.c
tests_agg_daemon_test_archive_numbers_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)

tests_agg_daemon_test_archive_turns_SOURCES = tests/agg/daemon/test_archive_turns.c agg/daemon/archive_limits.c \
	agg/daemon/archive_list.c agg/daemon/archive_parts.h agg/daemon/archive_turns.c agg/daemon/quotas.c
tests_agg_daemon_test_archive_turns_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)

tests_agg_daemon_test_reload_SOURCES = tests/agg/daemon/test_reload.c
tests_agg_daemon_test_reload_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)

tests_agg_daemon_test_store_admit_SOURCES = tests/agg/daemon/test_store_admit.c agg/daemon/store_job.h
tests_agg_daemon_test_store_admit_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)

tests_agg_daemon_test_store_share_SOURCES = tests/agg/daemon/test_store_share.c agg/daemon/store_job.h \
	agg/daemon/quotas.c
tests_agg_daemon_test_store_share_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)

tests_agg_daemon_test_store_turns_SOURCES = tests/agg/daemon/test_store_turns.c agg/daemon/store_turns.c \
	agg/daemon/store_turns.h
tests_agg_daemon_test_store_turns_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)

tests_agg_daemon_test_store_job_SOURCES = tests/agg/daemon/test_store_job.c tests/agg/daemon/store_job_rig.h agg/daemon/store_job.h \
	agg/daemon/store_job_parts.h agg/daemon/archive.c agg/daemon/archive_file.c agg/daemon/archive_limits.c \
	agg/daemon/archive_list.c agg/daemon/archive_open.c agg/daemon/archive_turns.c agg/daemon/archive_parts.h \
	agg/daemon/credentials.c agg/daemon/quotas.c agg/daemon/store_turns.c
tests_agg_daemon_test_store_job_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)

tests_agg_daemon_test_store_end_SOURCES = tests/agg/daemon/test_store_end.c tests/agg/daemon/store_job_rig.h agg/daemon/store_job.h \
	agg/daemon/store_job_parts.h agg/daemon/archive.c agg/daemon/archive_file.c agg/daemon/archive_limits.c \
	agg/daemon/archive_list.c agg/daemon/archive_open.c agg/daemon/archive_turns.c agg/daemon/archive_parts.h \
	agg/daemon/credentials.c agg/daemon/quotas.c agg/daemon/store_turns.c
tests_agg_daemon_test_store_end_LDADD = $(SERVICE_LIBS) $(TEST_LIBS)
