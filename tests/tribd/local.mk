# SPDX-License-Identifier: BSD-3-Clause
dist_check_SCRIPTS += tests/tribd/test_tribd.sh tests/tribd/test_tribd_hostile.sh \
	tests/tribd/test_tribd_attack.sh \
	tests/tribd/test_tribd_files.sh \
	tests/tribd/test_tribd_lost.sh \
	tests/tribd/test_tribd_quorum.sh tests/tribd/test_tribd_quota.sh tests/tribd/test_tribd_seal.sh \
	tests/tribd/test_tribd_return.sh \
	tests/tribd/test_tribd_store.sh \
	tests/tribd/test_tribd_strangers.sh \
	tests/tribd/test_tribd_munge.sh tests/tribd/test_tribd_tree.sh \
	tests/tribd/test_tribd_users.sh tests/tribd/test_tribd_systemd.sh
TESTS += tests/tribd/test_tribd.sh tests/tribd/test_tribd_hostile.sh \
	tests/tribd/test_tribd_attack.sh \
	tests/tribd/test_tribd_files.sh \
	tests/tribd/test_tribd_lost.sh \
	tests/tribd/test_tribd_quorum.sh tests/tribd/test_tribd_quota.sh tests/tribd/test_tribd_seal.sh \
	tests/tribd/test_tribd_return.sh \
	tests/tribd/test_tribd_store.sh \
	tests/tribd/test_tribd_strangers.sh \
	tests/tribd/test_tribd_munge.sh tests/tribd/test_tribd_tree.sh \
	tests/tribd/test_tribd_users.sh tests/tribd/test_tribd_systemd.sh
check_PROGRAMS += tests/tribd/steps
tests_tribd_steps_SOURCES = tests/tribd/exact_jobs.h tests/tribd/steps.c
check_PROGRAMS += tests/tribd/fake_systemd
tests_tribd_fake_systemd_SOURCES = tests/tribd/fake_systemd.c
check_PROGRAMS += tests/tribd/plans
tests_tribd_plans_SOURCES = tests/tribd/exact_jobs.h tests/tribd/plans.c
check_PROGRAMS += tests/tribd/pushes
tests_tribd_pushes_SOURCES = tests/tribd/pushes.c
check_PROGRAMS += tests/tribd/late
tests_tribd_late_SOURCES = tests/tribd/exact_jobs.h tests/tribd/late.c
check_PROGRAMS += tests/tribd/idle
tests_tribd_idle_SOURCES = tests/tribd/idle.c
check_PROGRAMS += tests/tribd/hostile
tests_tribd_hostile_SOURCES = tests/offload/rewriter.h tests/tribd/caller.c tests/tribd/caller.h \
	tests/tribd/exact_jobs.h tests/tribd/hostile.c tests/tribd/hostile.h \
	tests/tribd/hostile_alone.c tests/tribd/hostile_strangers.c
tests_tribd_hostile_LDADD = $(SERVICE_LIBS)
check_PROGRAMS += tests/tribd/attack
tests_tribd_attack_SOURCES = tests/tribd/attack.c tests/tribd/attack.h tests/tribd/attack_beside.c \
	tests/tribd/attack_flood.c tests/tribd/attack_rank.c tests/tribd/attack_words.c \
	tests/tribd/caller.c tests/tribd/caller.h tests/tribd/exact_jobs.h
tests_tribd_attack_LDADD = $(SERVICE_LIBS)
EXTRA_DIST += tests/tribd/attacks.sh tests/tribd/daemons.sh tests/tribd/soak.sh
check_PROGRAMS += tests/tribd/test_clerk tests/tribd/test_worker tests/tribd/test_aggregator
TESTS += tests/tribd/test_clerk tests/tribd/test_worker tests/tribd/test_aggregator
tests_tribd_test_clerk_SOURCES = tests/tribd/test_clerk.c tribd/clerk.c tribd/clerk.h
tests_tribd_test_clerk_LDADD = $(SERVICE_LIBS) $(CMOCKA_LIBS)
tests_tribd_test_worker_SOURCES = tests/tribd/test_worker.c tribd/worker.c tribd/worker.h
tests_tribd_test_worker_LDADD = $(SERVICE_LIBS) $(CMOCKA_LIBS)
tests_tribd_test_aggregator_SOURCES = tests/tribd/test_aggregator.c \
	tribd/worker.c tribd/worker.h \
	tribd/aggregator.c tribd/aggregator.h \
	tribd/job_settings.c tribd/job_settings.h \
	tribd/aggregator_metrics.c tribd/aggregator_metrics.h
tests_tribd_test_aggregator_LDADD = $(SERVICE_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/tribd/test_archive
TESTS += tests/tribd/test_archive
tests_tribd_test_archive_SOURCES = tests/tribd/test_archive.c \
	tests/tribd/archive_rig.h tribd/archive.h \
	tribd/archive_list.c tribd/archive_parts.h tribd/archive_open.c tribd/archive_turns.c \
	tribd/archive_file.c \
	tribd/quotas.c
tests_tribd_test_archive_LDADD = $(SERVICE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/tribd/test_archive_turns
TESTS += tests/tribd/test_archive_turns
tests_tribd_test_archive_turns_SOURCES = tests/tribd/test_archive_turns.c \
	tribd/archive_list.c tribd/archive_parts.h tribd/archive_turns.c tribd/quotas.c
tests_tribd_test_archive_turns_LDADD = $(SERVICE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += tests/tribd/test_store_turns
TESTS += tests/tribd/test_store_turns
tests_tribd_test_store_turns_SOURCES = tests/tribd/test_store_turns.c \
	tribd/store_turns.c tribd/store_turns.h
tests_tribd_test_store_turns_LDADD = $(SERVICE_LIBS) $(CMOCKA_LIBS)
