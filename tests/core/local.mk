# SPDX-License-Identifier: BSD-3-Clause
core_tests = \
	tests/core/test_bad_values \
	tests/core/test_channel \
	tests/core/test_check \
	tests/core/test_checksum \
	tests/core/test_closed \
	tests/core/test_doctor \
	tests/core/test_ef21 \
	tests/core/test_errors \
	tests/core/test_feedback \
	tests/core/test_fp_modes \
	tests/core/test_halves \
	tests/core/test_identity \
	tests/core/test_start_with \
	tests/core/test_configured \
	tests/core/test_exact_sums \
	tests/core/test_linear \
	tests/core/test_lgc_plans \
	tests/core/test_models \
	tests/core/test_lossy \
	tests/core/test_matrix \
	tests/core/test_memory \
	tests/core/test_near \
	tests/core/test_old_structs \
	tests/core/test_mismatch \
	tests/core/test_placed \
	tests/core/test_means \
	tests/core/test_plan_state \
	tests/core/test_plan_stats \
	tests/core/test_service_sum \
	tests/core/test_state_moves \
	tests/core/test_plan \
	tests/core/test_quorum \
	tests/core/test_repeat \
	tests/core/test_rewritten \
	tests/core/test_robust \
	tests/core/test_rounds \
	tests/core/test_scale \
	tests/core/test_sealed \
	tests/core/test_service \
	tests/core/test_service_tree \
	tests/core/test_split \
	tests/core/test_threads \
	tests/core/test_whole_k \
	tests/core/test_window
check_PROGRAMS += $(core_tests)
TESTS += $(core_tests)

# Ranks under a watchdog, and what a collective must give.
check_LTLIBRARIES += libranks.la
libranks_la_SOURCES = \
	tests/core/oracle.c tests/core/oracle.h \
	tests/core/placed.c tests/core/placed.h \
	tests/harness/ranks.c tests/harness/ranks.h
core_tests_link = libranks.la $(LDADD)

tests_core_test_channel_SOURCES = tests/core/matrix_codecs.h tests/core/nodes.h \
	tests/core/test_channel.c
tests_core_test_bad_values_SOURCES = tests/core/test_bad_values.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_core_test_bad_values_LDADD = $(core_tests_link)
tests_core_test_channel_LDADD = $(core_tests_link)
tests_core_test_rewritten_SOURCES = tests/core/nodes.h tests/core/rewriter.h \
	tests/core/test_rewritten.c
tests_core_test_rewritten_LDADD = $(core_tests_link)
tests_core_test_check_SOURCES = tests/core/nodes.h tests/core/test_check.c
tests_core_test_check_LDADD = $(core_tests_link)
tests_core_test_checksum_SOURCES = tests/core/nodes.h tests/core/test_checksum.c
tests_core_test_checksum_LDADD = $(core_tests_link)
tests_core_test_plan_stats_LDADD = $(core_tests_link)
tests_core_test_closed_LDADD = $(core_tests_link)
tests_core_test_errors_LDADD = $(core_tests_link)
tests_core_test_ef21_SOURCES = tests/core/fed.h tests/core/test_ef21.c
tests_core_test_ef21_LDADD = $(core_tests_link)
tests_core_test_feedback_SOURCES = tests/core/fed.h tests/core/test_feedback.c
tests_core_test_feedback_LDADD = $(core_tests_link)
tests_core_test_plan_state_SOURCES = tests/core/fed.h tests/core/test_plan_state.c
tests_core_test_plan_state_LDADD = $(core_tests_link)
tests_core_test_identity_SOURCES = tests/core/nodes.h tests/core/test_identity.c
tests_core_test_identity_LDADD = $(core_tests_link)
tests_core_test_start_with_LDADD = $(core_tests_link)
tests_core_test_configured_LDADD = $(core_tests_link)
tests_core_test_fp_modes_LDADD = $(core_tests_link)
tests_core_test_halves_LDADD = $(core_tests_link)
tests_core_test_means_LDADD = $(core_tests_link)
tests_core_test_sealed_LDADD = $(core_tests_link)
tests_core_test_service_sum_SOURCES = tests/core/nodes.h tests/core/test_service_sum.c
tests_core_test_service_sum_LDADD = $(core_tests_link)
tests_core_test_state_moves_SOURCES = tests/core/fed.h tests/core/test_state_moves.c
tests_core_test_state_moves_LDADD = $(core_tests_link)
tests_core_test_exact_sums_LDADD = $(core_tests_link)
tests_core_test_linear_LDADD = $(core_tests_link)
tests_core_test_lgc_plans_LDADD = $(core_tests_link)
tests_core_test_models_LDADD = $(core_tests_link)
tests_core_test_lossy_LDADD = $(core_tests_link)
tests_core_test_matrix_SOURCES = tests/core/matrix_codecs.h tests/core/sealed.h \
	tests/core/test_matrix.c
tests_core_test_matrix_LDADD = $(core_tests_link)
tests_core_test_memory_LDADD = $(core_tests_link)
tests_core_test_near_LDADD = $(core_tests_link)
tests_core_test_old_structs_LDADD = $(core_tests_link)
tests_core_test_mismatch_LDADD = $(core_tests_link)
tests_core_test_placed_LDADD = $(core_tests_link)
tests_core_test_whole_k_LDADD = $(core_tests_link)
tests_core_test_plan_LDADD = $(core_tests_link)
tests_core_test_quorum_SOURCES = tests/core/nodes.h tests/core/test_quorum.c
tests_core_test_quorum_LDADD = $(core_tests_link)
tests_core_test_repeat_SOURCES = tests/core/nodes.h tests/core/test_repeat.c
tests_core_test_repeat_LDADD = $(core_tests_link)
# What a codec may lose is reckoned as trib-perf does it.
tests_core_test_robust_SOURCES = tests/core/nodes.h tests/core/test_robust.c
tests_core_test_robust_LDADD = $(core_tests_link)
tests_core_test_rounds_SOURCES = tests/core/nodes.h tests/core/test_rounds.c
tests_core_test_rounds_LDADD = libranks.la libperf.la $(LDADD)
tests_core_test_service_SOURCES = tests/core/nodes.h tests/core/test_service.c
tests_core_test_service_LDADD = $(core_tests_link)
tests_core_test_split_LDADD = $(core_tests_link)
tests_core_test_threads_SOURCES = tests/core/fed.h tests/core/test_threads.c
tests_core_test_threads_LDADD = $(core_tests_link)

# Communicators over verbs: the device is one in memory (tests/transport/local.mk).
if TRIB_VERBS
core_verbs_tests = \
	tests/core/test_matrix_verbs \
	tests/core/test_over_verbs tests/core/test_revoked
check_PROGRAMS += $(core_verbs_tests)
TESTS += $(core_verbs_tests)
tests_core_test_matrix_verbs_SOURCES = \
	tests/core/matrix_codecs.h tests/core/sealed.h tests/core/test_matrix.c \
	$(fake_verbs_sources)
tests_core_test_matrix_verbs_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_VERBS
tests_core_test_matrix_verbs_LDADD = $(core_tests_link)
tests_core_test_over_verbs_SOURCES = \
	tests/core/test_over_verbs.c $(fake_verbs_sources)
tests_core_test_over_verbs_LDADD = $(core_tests_link)
tests_core_test_revoked_SOURCES = \
	tests/core/nodes.h tests/core/test_revoked.c $(fake_verbs_sources)
tests_core_test_revoked_LDADD = $(core_tests_link)
endif
