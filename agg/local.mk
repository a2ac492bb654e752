# SPDX-License-Identifier: BSD-3-Clause
#
# What the daemon alone needs is a library of its own, which libtributary does not contain.
noinst_LTLIBRARIES += libservice.la
libservice_la_SOURCES = \
	agg/jobs.c agg/jobs.h \
	agg/jobs_fair.c agg/jobs_table.h \
	agg/jobs_text.c \
	agg/metrics.c agg/metrics.def agg/metrics.h \
	agg/metrics_json.c \
	agg/metrics_text.c \
	agg/share.c agg/share.h
SERVICE_LIBS = libservice.la libtributary_all.la $(TRIB_LIBS)
