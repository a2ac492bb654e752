# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcore.la
libtributary_all_la_LIBADD += libcore.la
libcore_la_SOURCES = \
	offload/channel.c offload/channel.h \
	comm/contribution_check.c comm/contribution_check.h \
	comm/plan_cache.c \
	comm/comm.c \
	comm/comm.h \
	comm/configured.c comm/configured.h \
	doctor/doctor.c doctor/doctor.h \
	doctor/doctor_consistency.c \
	doctor/doctor_host.c \
	doctor/doctor_pairs.c \
	inspect/schedule_groups.c inspect/schedule_groups.h \
	inspect/schedule_text.c \
	comm/progress_thread.c \
	comm/identity.c comm/identity.h \
	inspect/info.c \
	comm/local_create.c \
	comm/wireup.c \
	comm/memory.c \
	comm/named_plans.c \
	comm/locality.c comm/locality.h \
	comm/plan.c \
	comm/plan_feedback.c \
	comm/plan_make.c \
	comm/plan_state.c comm/plan_model.c \
	comm/plan_stats.c comm/plan_stats.h \
	comm/quorum_rule.c comm/quorum_rule.h \
	inspect/reach.c \
	doctor/doctor_report.c doctor/doctor_report.h \
	offload/discovery.c \
	offload/offload_plan.c offload/offload_plan.h \
	offload/offload_partial.c \
	offload/fallback.c offload/fallback.h \
	offload/agreement.c \
	offload/admission.c \
	offload/tree_layout.c \
	offload/rejoin.c \
	offload/agg_tree.c offload/agg_tree.h \
	comm/settings.c \
	comm/split.c \
	offload/control_link.c offload/control_link.h \
	inspect/job_topology.c \
	comm/slot_budget.c comm/slot_budget.h
