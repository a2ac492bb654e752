# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += liboffload.la
libtributary_all_la_LIBADD += liboffload.la
liboffload_la_SOURCES = \
	offload/admission.c \
	offload/agg_comm.c offload/agg_comm.h \
	offload/agg_provider.h \
	offload/agg_tree.c offload/agg_tree.h \
	offload/agg_wireup.c \
	offload/agreement.c \
	offload/control_link.c offload/control_link.h \
	offload/discovery.c \
	offload/fallback.c offload/fallback.h \
	offload/job_request.c \
	offload/offload_calls.c \
	offload/offload_gate.c offload/offload_gate.h \
	offload/offload_memory.c \
	offload/offload_partial.c \
	offload/offload_plan.c offload/offload_plan.h \
	offload/offload_wait.c \
	offload/start_log.c \
	offload/rejoin.c \
	offload/tree_layout.c
EXTRA_DIST += offload/README.md
