# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcomm.la
libtributary_all_la_LIBADD += libcomm.la
libcomm_la_SOURCES = \
	comm/core/abort.c \
	comm/life/clock.c comm/life/clock.h \
	comm/core/communicator.c comm/core/communicator.h \
	comm/life/join.c comm/life/join.h \
	comm/members/leave.c comm/members/leave.h \
	comm/plan/exchange.c comm/plan/exchange.h \
	comm/plan/configured.c comm/plan/configured.h \
	comm/plan/contribution_check.c comm/plan/contribution_check.h \
	comm/calls/counted_calls.c \
	comm/plan/deterministic.c comm/plan/deterministic.h \
	comm/core/gate.c comm/core/gate.h \
	comm/members/grow.c comm/members/grow.h \
	comm/members/newcomer.c \
	comm/members/sync_state.c \
	comm/core/identity.c comm/core/identity.h \
	comm/core/local_create.c \
	comm/core/locality.c comm/core/locality.h \
	comm/members/losses.c \
	comm/core/memory.c \
	comm/calls/named_plans.c comm/calls/named_plans.h \
	comm/plan/plan.c comm/plan/plan.h \
	comm/plan/plan_agreement.c comm/plan/plan_parts.h \
	comm/auto/auto_carry.c comm/auto/auto_carry.h \
	comm/plan/auto_choice.c comm/plan/auto_choice.h \
	comm/auto/auto_trial.c comm/auto/auto_trial.h \
	comm/auto/auto_window.c comm/auto/auto_window.h \
	comm/auto/plan_auto.c comm/auto/plan_auto.h \
	comm/kinds/plan_blocks.c comm/kinds/plan_blocks.h \
	comm/calls/coll.c comm/calls/plan_cache.h \
	comm/plan/plan_check.c \
	comm/plan/plan_cut.c \
	comm/plan/plan_feedback.c comm/plan/plan_feedback.h \
	comm/plan/plan_make.c comm/plan/plan_make.h \
	comm/core/call_cache.h comm/core/comm_lock.h comm/core/comm_setup.h \
	comm/core/plan_kind.h comm/core/plan_ops.h comm/core/plan_struct.h \
	comm/core/rank_clock.h \
	comm/kinds/plan_message.c comm/kinds/plan_message.h \
	comm/plan/plan_model.c comm/plan/plan_model.h \
	comm/kinds/plan_neighbors.c comm/kinds/plan_neighbors.h \
	comm/kinds/neighbor_steps.c \
	comm/kinds/neighbor_words.c comm/kinds/neighbor_words.h \
	comm/plan/plan_notify.c comm/plan/plan_notify.h \
	comm/plan/plan_own.c \
	comm/state/offers.c comm/state/offers.h \
	comm/state/plan_residual.c \
	comm/plan/plan_scale.c comm/plan/plan_scale.h \
	comm/plan/plan_schedule.c comm/plan/plan_schedule.h \
	comm/kinds/plan_sparse.c comm/kinds/plan_sparse.h \
	comm/state/plan_state.c comm/state/plan_state.h \
	comm/plan/plan_stats.c comm/plan/plan_stats.h \
	comm/core/progress_thread.c comm/core/progress_thread.h \
	comm/plan/quorum_rule.c comm/plan/quorum_rule.h \
	comm/plan/quorum_text.c \
	comm/calls/requests.c comm/calls/requests.h \
	comm/members/survive.c comm/members/survive.h \
	comm/life/settings.c comm/life/settings.h \
	comm/state/same_state.c comm/core/usual_hash.h \
	comm/core/slot_budget.c comm/core/slot_budget.h \
	comm/kinds/sorted_pairs.c comm/kinds/sorted_pairs.h \
	comm/members/split.c comm/members/split.h \
	comm/members/survivors.c comm/members/survivors.h \
	comm/state/state_merge.c \
	comm/state/plan_state_move.c \
	comm/state/plan_move.c \
	comm/calls/plan_create.c comm/calls/plan_create.h \
	comm/members/wireup.c comm/members/wireup.h \
	comm/members/wireup_check.c comm/members/wireup_check.h
EXTRA_DIST += comm/README.md \
	comm/auto/README.md comm/calls/README.md comm/core/README.md \
	comm/kinds/README.md comm/life/README.md comm/members/README.md \
	comm/plan/README.md comm/state/README.md
