# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/trib-run
tools_trib_run_SOURCES = \
	tools/run_parts.h \
	tools/run_options.c \
	tools/run_output.c \
	tools/run_ranks.c \
	tools/tool.c tools/tool.h \
	tools/trace_merge.c tools/trace_merge.h \
	tools/trib-run.c
tools_trib_run_LDADD = libtributary.la

bin_PROGRAMS += tools/trib-info
tools_trib_info_SOURCES = \
	tools/info_doctor.c \
	tools/info_commands.h \
	tools/info_codecs.c \
	tools/info_reach.c \
	tools/info_schedule.c \
	tools/info_topo.c \
	tools/info_trace.c \
	tools/tool.c tools/tool.h \
	tools/trace_merge.c tools/trace_merge.h \
	tools/trib-info.c
tools_trib_info_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_trib_info_LDADD = libtributary.la $(JANSSON_LIBS)
EXTRA_DIST += tools/README.md
