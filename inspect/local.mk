# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libinspect.la
libtributary_all_la_LIBADD += libinspect.la
libinspect_la_SOURCES = \
	inspect/info.c \
	inspect/job_topology.c \
	inspect/rank_pages.c inspect/rank_pages.h \
	inspect/rank_text.c \
	inspect/rank_states.c \
	inspect/reach.c \
	inspect/schedule_groups.c inspect/schedule_groups.h \
	inspect/schedule_text.c
EXTRA_DIST += inspect/README.md
