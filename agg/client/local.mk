# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += liboffload.la
libtributary_all_la_LIBADD += liboffload.la
liboffload_la_SOURCES = \
	agg/client/admission.c \
	agg/client/agg_comm.c agg/client/agg_comm.h \
	agg/client/agg_provider.h \
	agg/client/agg_tree.c agg/client/agg_tree.h \
	agg/client/agg_wireup.c \
	agg/client/agreement.c \
	agg/client/control_link.c agg/client/control_link.h \
	agg/client/discovery.c \
	agg/client/fallback.c agg/client/fallback.h \
	agg/client/job_request.c \
	agg/client/offload_calls.c \
	agg/client/offload_gate.c agg/client/offload_gate.h \
	agg/client/offload_memory.c \
	agg/client/offload_partial.c \
	agg/client/offload_plan.c agg/client/offload_plan.h \
	agg/client/offload_wait.c \
	agg/client/start_log.c \
	agg/client/rejoin.c \
	agg/client/tree_layout.c
EXTRA_DIST += agg/client/README.md
