# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcomm.la
libtributary_all_la_LIBADD += libcomm.la
libcomm_la_SOURCES = \
	comm/abort.c \
	comm/clock.c comm/clock.h \
	comm/communicator.c comm/communicator.h \
	comm/comm_life.c \
	comm/configured.c comm/configured.h \
	comm/contribution_check.c comm/contribution_check.h \
	comm/counted_calls.c \
	comm/deterministic.c comm/deterministic.h \
	comm/gate.c comm/gate.h \
	comm/grow.c comm/grow.h \
	comm/newcomer.c \
	comm/sync_state.c \
	comm/identity.c comm/identity.h \
	comm/local_create.c \
	comm/locality.c comm/locality.h \
	comm/losses.c \
	comm/memory.c \
	comm/named_plans.c \
	comm/plan.c \
	comm/plan_agreement.c comm/plan_parts.h \
	comm/auto_carry.c comm/auto_carry.h \
	comm/auto_choice.c comm/auto_choice.h \
	comm/auto_trial.c comm/auto_trial.h \
	comm/auto_window.c comm/auto_window.h \
	comm/plan_auto.c comm/plan_auto.h \
	comm/plan_blocks.c comm/plan_blocks.h \
	comm/plan_cache.c \
	comm/plan_check.c \
	comm/plan_cut.c \
	comm/plan_feedback.c \
	comm/plan_make.c comm/plan_ops.h \
	comm/plan_message.c comm/plan_message.h \
	comm/plan_model.c \
	comm/plan_neighbors.c comm/plan_neighbors.h \
	comm/neighbor_steps.c \
	comm/neighbor_words.c comm/neighbor_words.h \
	comm/plan_notify.c \
	comm/plan_own.c \
	comm/plan_residual.c \
	comm/plan_scale.c comm/plan_scale.h \
	comm/plan_schedule.c \
	comm/plan_sparse.c comm/plan_sparse.h \
	comm/plan_state.c comm/plan_state.h \
	comm/plan_stats.c comm/plan_stats.h \
	comm/progress_thread.c \
	comm/quorum_rule.c comm/quorum_rule.h \
	comm/quorum_text.c \
	comm/requests.c \
	comm/survive.c \
	comm/settings.c \
	comm/same_state.c comm/usual_hash.h \
	comm/slot_budget.c comm/slot_budget.h \
	comm/sorted_pairs.c comm/sorted_pairs.h \
	comm/split.c \
	comm/survivors.c comm/survivors.h \
	comm/state_merge.c \
	comm/plan_state_move.c \
	comm/plan_move.c comm/plan_move.h \
	comm/wireup.c \
	comm/wireup_check.c comm/wireup_check.h
EXTRA_DIST += comm/README.md
