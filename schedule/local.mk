# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libschedule.la
libtributary_all_la_LIBADD += libschedule.la
libschedule_la_SOURCES = \
	schedule/coll_traits.h \
	schedule/program.c schedule/program.h \
	schedule/schedule.c schedule/schedule.h
EXTRA_DIST += schedule/README.md
