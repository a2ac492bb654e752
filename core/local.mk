# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcore.la
libtributary_all_la_LIBADD += libcore.la
libcore_la_SOURCES = \
	core/channel.c core/channel.h \
	core/check.c core/check.h \
	core/coll.c \
	core/comm.c \
	core/comm.h \
	core/configured.c core/configured.h \
	core/doctor.c core/doctor.h \
	core/doctor_agree.c \
	core/doctor_host.c \
	core/doctor_reach.c \
	core/draw_groups.c core/draw_groups.h \
	core/draw_schedule.c \
	core/driver.c \
	core/identity.c core/identity.h \
	core/info.c \
	core/meeting_place.c \
	core/meet.c \
	core/memory.c \
	core/named.c \
	core/near.c core/near.h \
	core/plan.c \
	core/plan_feedback.c \
	core/plan_make.c \
	core/plan_state.c core/plan_model.c \
	core/plan_stats.c core/plan_stats.h \
	core/quorum.c core/quorum.h \
	core/reach.c \
	core/report.c core/report.h \
	core/scout.c \
	core/served.c core/served.h \
	core/served_quorum.c \
	core/service.c core/service.h \
	core/service_council.c \
	core/service_join.c \
	core/service_lay.c \
	core/service_return.c \
	core/service_tree.c core/service_tree.h \
	core/settings.c \
	core/split.c \
	core/sponsor.c core/sponsor.h \
	core/topology.c \
	core/window.c core/window.h
