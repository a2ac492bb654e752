# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libagg.la
libtributary_all_la_LIBADD += libagg.la
libagg_la_SOURCES = \
	agg/control.c agg/control.h \
	agg/control_conn.c agg/control_conn.h
