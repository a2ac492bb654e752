# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libapi.la
libtributary_all_la_LIBADD += libapi.la
libapi_la_SOURCES = \
	api/api.h \
	api/enlarge.c \
	api/init.c api/shrink.c
EXTRA_DIST += api/README.md
