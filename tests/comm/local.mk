# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/comm/auto/test_auto_carry tests/comm/auto/test_auto_trial tests/comm/auto/test_auto_window \
	tests/comm/auto/test_plan_auto tests/comm/calls/test_coll tests/comm/calls/test_counted_calls \
	tests/comm/calls/test_named_plans tests/comm/calls/test_plan_create tests/comm/calls/test_requests \
	tests/comm/core/test_abort tests/comm/core/test_communicator tests/comm/core/test_gate tests/comm/core/test_identity \
	tests/comm/core/test_local_create tests/comm/core/test_locality tests/comm/core/test_memory \
	tests/comm/core/test_progress_thread tests/comm/core/test_slot_budget tests/comm/kinds/test_neighbor_steps \
	tests/comm/kinds/test_neighbor_words tests/comm/kinds/test_plan_blocks tests/comm/kinds/test_plan_message \
	tests/comm/kinds/test_plan_neighbors tests/comm/kinds/test_plan_sparse tests/comm/kinds/test_sorted_pairs \
	tests/comm/life/test_clock tests/comm/life/test_join tests/comm/life/test_settings tests/comm/members/test_grow \
	tests/comm/members/test_leave tests/comm/members/test_losses tests/comm/members/test_newcomer \
	tests/comm/members/test_split tests/comm/members/test_survive tests/comm/members/test_survivors \
	tests/comm/members/test_sync_state tests/comm/members/test_wireup tests/comm/members/test_wireup_check \
	tests/comm/plan/test_auto_choice tests/comm/plan/test_configured tests/comm/plan/test_contribution_check \
	tests/comm/plan/test_deterministic tests/comm/plan/test_exchange tests/comm/plan/test_plan \
	tests/comm/plan/test_plan_agreement tests/comm/plan/test_plan_check tests/comm/plan/test_plan_cut \
	tests/comm/plan/test_plan_feedback tests/comm/plan/test_plan_make tests/comm/plan/test_plan_model \
	tests/comm/plan/test_plan_notify tests/comm/plan/test_plan_own tests/comm/plan/test_plan_scale \
	tests/comm/plan/test_plan_schedule tests/comm/plan/test_plan_stats tests/comm/plan/test_quorum_rule \
	tests/comm/plan/test_quorum_text tests/comm/state/test_offers tests/comm/state/test_plan_move \
	tests/comm/state/test_plan_residual \
	tests/comm/state/test_plan_state tests/comm/state/test_plan_state_move tests/comm/state/test_same_state \
	tests/comm/state/test_state_merge tests/comm/test_bad_values tests/comm/test_closed tests/comm/test_damaged \
	tests/comm/test_ef21 tests/comm/test_errors tests/comm/test_exact_sums tests/comm/test_feedback \
	tests/comm/test_feedback_caller tests/comm/test_feedback_rules tests/comm/test_fp_modes tests/comm/test_halves \
	tests/comm/test_idle tests/comm/test_lgc_plans tests/comm/test_linear tests/comm/test_lossy tests/comm/test_matrix \
	tests/comm/test_means tests/comm/test_mismatch tests/comm/test_old_structs tests/comm/test_placed \
	tests/comm/test_plan_whole_k tests/comm/test_repeat tests/comm/test_robust tests/comm/test_rounds \
	tests/comm/test_scale tests/comm/test_sealed tests/comm/test_sparse_merges tests/comm/test_sparse_volume \
	tests/comm/test_start_with tests/comm/test_state_moves tests/comm/test_threads

# The expected results of collectives.
libtribtest_la_SOURCES += tests/comm/algorithms.h tests/comm/oracle.c tests/comm/oracle.h perf/common/perf_number.c \
	perf/common/perf_number.h perf/common/perf_op.c perf/common/perf_op.h tests/comm/placed.c tests/comm/placed.h

# Error bounds of codecs are computed as in trib-perf.
tests_comm_test_rounds_LDADD = libperf.la $(LDADD)

# Communicators over verbs, with a device emulated in memory (tests/transport/local.mk).
if TRIB_VERBS
check_tests += tests/comm/test_borrowed tests/comm/test_late_rails tests/comm/test_late_writes tests/comm/test_matrix_verbs \
	tests/comm/test_over_verbs tests/comm/test_revoked
tests_comm_test_borrowed_SOURCES = tests/comm/test_borrowed.c $(fake_verbs_sources)
tests_comm_test_late_rails_SOURCES = tests/comm/test_late_rails.c $(fake_verbs_sources)
tests_comm_test_late_writes_SOURCES = tests/comm/test_late_writes.c $(fake_verbs_sources)
tests_comm_test_matrix_verbs_SOURCES = tests/comm/matrix_cases.h tests/comm/matrix_codecs.h tests/comm/sealed.h \
	tests/comm/test_matrix.c $(fake_verbs_sources)
tests_comm_test_matrix_verbs_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_VERBS
tests_comm_test_over_verbs_SOURCES = tests/comm/messages.h tests/comm/test_over_verbs.c $(fake_verbs_sources)
tests_comm_test_revoked_SOURCES = tests/agg/client/aggregators.h tests/comm/test_revoked.c $(fake_verbs_sources)
endif

EXTRA_DIST += tests/comm/deterministic_cases.h tests/comm/fed.h tests/comm/neighbor_graphs.h tests/comm/right_sums.h \
	tests/comm/shared_parts.h tests/comm/sparse_scene.h
