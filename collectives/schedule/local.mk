# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libschedule.la
libtributary_all_la_LIBADD += libschedule.la
libschedule_la_SOURCES = \
	collectives/schedule/coll_traits.h \
	collectives/schedule/program.c collectives/schedule/program.h \
	collectives/schedule/schedule.c collectives/schedule/schedule.h
EXTRA_DIST += collectives/schedule/README.md
