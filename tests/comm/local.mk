# SPDX-License-Identifier: BSD-3-Clause
comm_tests = \
	tests/comm/test_bad_values \
	tests/comm/life/test_clock \
	tests/comm/calls/test_counted_calls \
	tests/comm/kinds/test_plan_blocks \
	tests/comm/plan/test_contribution_check \
	tests/comm/test_damaged \
	tests/comm/test_closed \
	tests/comm/core/test_communicator \
	tests/comm/test_ef21 \
	tests/comm/test_errors \
	tests/comm/test_feedback \
	tests/comm/test_feedback_caller \
	tests/comm/test_feedback_rules \
	tests/comm/test_fp_modes \
	tests/comm/test_halves \
	tests/comm/core/test_identity \
	tests/comm/life/test_join \
	tests/comm/core/test_gate \
	tests/comm/test_idle \
	tests/comm/plan/test_plan_notify \
	tests/comm/state/test_plan_residual \
	tests/comm/test_start_with \
	tests/comm/auto/test_auto_carry \
	tests/comm/plan/test_auto_choice \
	tests/comm/auto/test_auto_trial \
	tests/comm/auto/test_auto_window \
	tests/comm/auto/test_plan_auto \
	tests/comm/plan/test_configured \
	tests/comm/test_exact_sums \
	tests/comm/test_linear \
	tests/comm/test_lgc_plans \
	tests/comm/plan/test_plan_model \
	tests/comm/test_lossy \
	tests/comm/test_matrix \
	tests/comm/core/test_memory \
	tests/comm/calls/test_named_plans \
	tests/comm/plan/test_plan_feedback \
	tests/comm/plan/test_quorum_rule \
	tests/comm/plan/test_quorum_text \
	tests/comm/core/test_locality \
	tests/comm/test_old_structs \
	tests/comm/test_mismatch \
	tests/comm/test_placed \
	tests/comm/test_means \
	tests/comm/plan/test_deterministic \
	tests/comm/state/test_plan_state \
	tests/comm/plan/test_plan_stats \
	tests/comm/state/test_state_merge \
	tests/comm/test_state_moves \
	tests/comm/state/test_plan_state_move \
	tests/comm/state/test_plan_move \
	tests/comm/core/test_abort \
	tests/comm/plan/test_plan \
	tests/comm/test_repeat \
	tests/comm/calls/test_requests \
	tests/comm/test_robust \
	tests/comm/test_rounds \
	tests/comm/test_scale \
	tests/comm/test_sealed \
	tests/comm/members/test_losses \
	tests/comm/state/test_same_state \
	tests/comm/members/test_survivors \
	tests/comm/members/test_survive \
	tests/comm/members/test_grow \
	tests/comm/members/test_newcomer \
	tests/comm/members/test_sync_state \
	tests/comm/members/test_split \
	tests/comm/test_threads \
	tests/comm/test_plan_whole_k \
	tests/comm/core/test_slot_budget \
	tests/comm/kinds/test_sorted_pairs \
	tests/comm/members/test_leave \
	tests/comm/core/test_local_create \
	tests/comm/plan/test_plan_agreement \
	tests/comm/calls/test_coll \
	tests/comm/calls/test_plan_create \
	tests/comm/plan/test_exchange \
	tests/comm/plan/test_plan_check \
	tests/comm/plan/test_plan_cut \
	tests/comm/plan/test_plan_make \
	tests/comm/kinds/test_plan_message \
	tests/comm/kinds/test_plan_neighbors \
	tests/comm/kinds/test_neighbor_steps \
	tests/comm/kinds/test_neighbor_words \
	tests/comm/plan/test_plan_own \
	tests/comm/plan/test_plan_scale \
	tests/comm/plan/test_plan_schedule \
	tests/comm/kinds/test_plan_sparse \
	tests/comm/test_sparse_merges \
	tests/comm/test_sparse_volume \
	tests/comm/core/test_progress_thread \
	tests/comm/life/test_settings \
	tests/comm/members/test_wireup tests/comm/members/test_wireup_check
check_PROGRAMS += $(comm_tests)
TESTS += $(comm_tests)

# Ranks under a watchdog, and the expected results of collectives.
check_LTLIBRARIES += libranks.la
libranks_la_SOURCES = \
	tests/comm/algorithms.h \
	tests/comm/oracle.c tests/comm/oracle.h \
	tests/comm/placed.c tests/comm/placed.h \
	tests/harness/ranks.c tests/harness/ranks.h
comm_tests_link = libranks.la $(LDADD)

tests_comm_calls_test_counted_calls_SOURCES = tests/comm/calls/test_counted_calls.c
tests_comm_calls_test_counted_calls_LDADD = $(comm_tests_link)
tests_comm_kinds_test_plan_blocks_SOURCES = tests/comm/kinds/test_plan_blocks.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_comm_kinds_test_plan_blocks_LDADD = $(comm_tests_link)
tests_comm_plan_test_deterministic_SOURCES = tests/comm/plan/test_deterministic.c \
	tests/comm/deterministic_cases.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_comm_plan_test_deterministic_LDADD = $(comm_tests_link)
tests_comm_test_bad_values_SOURCES = tests/comm/test_bad_values.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_comm_test_bad_values_LDADD = $(comm_tests_link)
tests_comm_plan_test_contribution_check_SOURCES = tests/agg/client/aggregators.h tests/comm/plan/test_contribution_check.c
tests_comm_plan_test_contribution_check_LDADD = $(comm_tests_link)
tests_comm_test_damaged_SOURCES = tests/agg/client/aggregators.h tests/comm/test_damaged.c
tests_comm_test_damaged_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_stats_LDADD = $(comm_tests_link)
tests_comm_members_test_grow_SOURCES = tests/comm/growing.h tests/comm/right_sums.h tests/comm/members/test_grow.c
tests_comm_members_test_grow_LDADD = $(comm_tests_link)
tests_comm_members_test_newcomer_SOURCES = tests/comm/growing.h tests/comm/members/test_newcomer.c
tests_comm_members_test_newcomer_LDADD = $(comm_tests_link)
tests_comm_members_test_sync_state_SOURCES = tests/comm/growing.h tests/comm/members/test_sync_state.c
tests_comm_members_test_sync_state_LDADD = $(comm_tests_link)
tests_comm_members_test_leave_LDADD = $(comm_tests_link)
tests_comm_core_test_local_create_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_agreement_LDADD = $(comm_tests_link)
tests_comm_calls_test_coll_LDADD = $(comm_tests_link)
tests_comm_calls_test_plan_create_LDADD = $(comm_tests_link)
tests_comm_plan_test_exchange_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_check_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_cut_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_make_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_own_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_schedule_LDADD = $(comm_tests_link)
tests_comm_kinds_test_plan_sparse_SOURCES = tests/comm/sparse_scene.h tests/comm/kinds/test_plan_sparse.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_comm_kinds_test_plan_sparse_LDADD = $(comm_tests_link)
tests_comm_test_sparse_merges_SOURCES = tests/comm/sparse_scene.h tests/comm/test_sparse_merges.c
tests_comm_test_sparse_merges_LDADD = $(comm_tests_link)
tests_comm_test_sparse_volume_LDADD = $(comm_tests_link)
tests_comm_kinds_test_plan_neighbors_SOURCES = tests/comm/kinds/test_plan_neighbors.c tests/comm/neighbor_graphs.h
tests_comm_kinds_test_plan_neighbors_LDADD = $(comm_tests_link) -lm
tests_comm_kinds_test_neighbor_steps_SOURCES = tests/comm/kinds/test_neighbor_steps.c tests/comm/neighbor_graphs.h
tests_comm_kinds_test_neighbor_steps_LDADD = $(comm_tests_link) -lm
tests_comm_kinds_test_neighbor_words_SOURCES = tests/comm/kinds/test_neighbor_words.c tests/comm/neighbor_graphs.h
tests_comm_kinds_test_neighbor_words_LDADD = $(comm_tests_link) -lm
tests_comm_kinds_test_plan_message_SOURCES = tests/comm/kinds/test_plan_message.c tests/comm/messages.h \
	tests/harness/daemon.c tests/harness/daemon.h
tests_comm_kinds_test_plan_message_LDADD = $(comm_tests_link)
tests_comm_kinds_test_sorted_pairs_LDADD = $(comm_tests_link)
tests_comm_core_test_progress_thread_LDADD = $(comm_tests_link)
tests_comm_life_test_settings_LDADD = $(comm_tests_link)
tests_comm_members_test_wireup_LDADD = $(comm_tests_link)
tests_comm_members_test_wireup_check_LDADD = $(comm_tests_link)
tests_comm_test_closed_LDADD = $(comm_tests_link)
tests_comm_core_test_communicator_LDADD = $(comm_tests_link)
tests_comm_calls_test_named_plans_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_feedback_LDADD = $(comm_tests_link)
tests_comm_plan_test_quorum_rule_LDADD = $(comm_tests_link)
tests_comm_plan_test_quorum_text_LDADD = $(comm_tests_link)
tests_comm_test_errors_LDADD = $(comm_tests_link)
tests_comm_test_ef21_SOURCES = tests/comm/fed.h tests/comm/test_ef21.c
tests_comm_test_ef21_LDADD = $(comm_tests_link)
tests_comm_test_feedback_SOURCES = tests/comm/fed.h tests/comm/test_feedback.c
tests_comm_test_feedback_LDADD = $(comm_tests_link)
tests_comm_test_feedback_caller_SOURCES = tests/comm/fed.h tests/comm/test_feedback_caller.c
tests_comm_test_feedback_caller_LDADD = $(comm_tests_link)
tests_comm_test_feedback_rules_SOURCES = tests/comm/fed.h tests/comm/test_feedback_rules.c
tests_comm_test_feedback_rules_LDADD = $(comm_tests_link)
tests_comm_state_test_plan_state_SOURCES = tests/comm/fed.h tests/comm/state/test_plan_state.c
tests_comm_state_test_plan_state_LDADD = $(comm_tests_link)
tests_comm_core_test_identity_SOURCES = tests/agg/client/aggregators.h tests/comm/core/test_identity.c
tests_comm_core_test_identity_LDADD = $(comm_tests_link)
tests_comm_life_test_join_LDADD = $(comm_tests_link)
tests_comm_state_test_plan_residual_SOURCES = \
	tests/comm/state/test_plan_residual.c \
	tests/agg/client/aggregators.h
tests_comm_state_test_plan_residual_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_notify_SOURCES = tests/comm/plan/test_plan_notify.c tests/harness/daemon.c tests/harness/daemon.h
tests_comm_plan_test_plan_notify_LDADD = $(comm_tests_link)
tests_comm_core_test_gate_SOURCES = tests/comm/core/test_gate.c tests/harness/daemon.c tests/harness/daemon.h
tests_comm_core_test_gate_LDADD = $(comm_tests_link)
tests_comm_test_idle_LDADD = $(comm_tests_link)
tests_comm_test_start_with_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_scale_LDADD = $(comm_tests_link)
tests_comm_plan_test_configured_LDADD = $(comm_tests_link)
tests_comm_auto_test_auto_carry_LDADD = $(comm_tests_link)
tests_comm_auto_test_plan_auto_LDADD = $(comm_tests_link)
tests_comm_test_fp_modes_LDADD = $(comm_tests_link)
tests_comm_test_halves_LDADD = $(comm_tests_link)
tests_comm_test_means_LDADD = $(comm_tests_link)
tests_comm_test_sealed_LDADD = $(comm_tests_link)
tests_comm_state_test_state_merge_SOURCES = tests/comm/fed.h tests/comm/state/test_state_merge.c
tests_comm_state_test_state_merge_LDADD = $(comm_tests_link)
tests_comm_test_state_moves_SOURCES = tests/comm/fed.h tests/comm/test_state_moves.c
tests_comm_test_state_moves_LDADD = $(comm_tests_link)
tests_comm_core_test_abort_SOURCES = tests/comm/core/test_abort.c \
	tests/harness/daemon.c \
	tests/harness/daemon.h
tests_comm_core_test_abort_LDADD = $(comm_tests_link)
tests_comm_state_test_plan_state_move_SOURCES = tests/comm/fed.h tests/comm/state/test_plan_state_move.c
tests_comm_state_test_plan_state_move_LDADD = $(comm_tests_link)
tests_comm_state_test_plan_move_SOURCES = tests/comm/fed.h tests/comm/state/test_plan_move.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_comm_state_test_plan_move_LDADD = $(comm_tests_link)
tests_comm_test_exact_sums_LDADD = $(comm_tests_link)
tests_comm_test_linear_LDADD = $(comm_tests_link)
tests_comm_test_lgc_plans_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_model_LDADD = $(comm_tests_link)
tests_comm_test_lossy_LDADD = $(comm_tests_link)
tests_comm_test_matrix_SOURCES = tests/comm/matrix_cases.h tests/comm/matrix_codecs.h tests/comm/sealed.h \
	tests/comm/test_matrix.c
tests_comm_test_matrix_LDADD = $(comm_tests_link)
tests_comm_core_test_memory_LDADD = $(comm_tests_link)
tests_comm_core_test_locality_LDADD = $(comm_tests_link)
tests_comm_test_old_structs_LDADD = $(comm_tests_link)
tests_comm_test_mismatch_LDADD = $(comm_tests_link)
tests_comm_test_placed_LDADD = $(comm_tests_link)
tests_comm_test_plan_whole_k_LDADD = $(comm_tests_link)
tests_comm_plan_test_plan_LDADD = $(comm_tests_link)
tests_comm_test_repeat_SOURCES = tests/agg/client/aggregators.h tests/comm/test_repeat.c
tests_comm_test_repeat_LDADD = $(comm_tests_link)
tests_comm_calls_test_requests_LDADD = $(comm_tests_link)
# Error bounds of codecs are computed as in trib-perf.
tests_comm_test_robust_SOURCES = tests/agg/client/aggregators.h tests/comm/test_robust.c
tests_comm_test_robust_LDADD = $(comm_tests_link)
tests_comm_test_rounds_SOURCES = tests/agg/client/aggregators.h tests/comm/test_rounds.c
tests_comm_test_rounds_LDADD = libranks.la libperf.la $(LDADD)
tests_comm_members_test_survive_LDADD = $(comm_tests_link)
tests_comm_members_test_survivors_LDADD = $(comm_tests_link)
tests_comm_state_test_same_state_LDADD = $(comm_tests_link)
tests_comm_members_test_losses_LDADD = $(comm_tests_link)
tests_comm_members_test_split_LDADD = $(comm_tests_link)
tests_comm_test_threads_SOURCES = tests/comm/fed.h tests/comm/test_threads.c
tests_comm_test_threads_LDADD = $(comm_tests_link)

# Communicators over verbs, with a device emulated in memory (tests/transport/local.mk).
if TRIB_VERBS
comm_verbs_tests = \
	tests/comm/test_late_rails \
	tests/comm/test_matrix_verbs \
	tests/comm/test_over_verbs \
	tests/comm/test_revoked
check_PROGRAMS += $(comm_verbs_tests)
TESTS += $(comm_verbs_tests)
tests_comm_test_late_rails_SOURCES = tests/comm/test_late_rails.c $(fake_verbs_sources)
tests_comm_test_late_rails_LDADD = $(comm_tests_link)
tests_comm_test_matrix_verbs_SOURCES = \
	tests/comm/matrix_cases.h tests/comm/matrix_codecs.h tests/comm/sealed.h tests/comm/test_matrix.c \
	$(fake_verbs_sources)
tests_comm_test_matrix_verbs_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_VERBS
tests_comm_test_matrix_verbs_LDADD = $(comm_tests_link)
tests_comm_test_over_verbs_SOURCES = \
	tests/comm/messages.h tests/comm/test_over_verbs.c $(fake_verbs_sources)
tests_comm_test_over_verbs_LDADD = $(comm_tests_link)
tests_comm_test_revoked_SOURCES = \
	tests/agg/client/aggregators.h tests/comm/test_revoked.c $(fake_verbs_sources)
tests_comm_test_revoked_LDADD = $(comm_tests_link)
endif
