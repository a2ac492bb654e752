# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/trib-run
tools_trib_run_SOURCES = \
	tools/run.h \
	tools/run_output.c \
	tools/run_ranks.c \
	tools/trib-run.c
tools_trib_run_LDADD = libtributary.la
