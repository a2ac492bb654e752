# SPDX-License-Identifier: BSD-3-Clause
libpipeline_la_SOURCES += \
	pipeline/run/chunk.h \
	pipeline/engine/engine.c pipeline/engine/engine.h \
	pipeline/engine/engine_open.c \
	pipeline/run/engine_p2p.h \
	pipeline/run/engine_page.c pipeline/run/engine_page.h \
	pipeline/run/engine_state.h \
	pipeline/run/engine_trace.h \
	pipeline/run/events.c pipeline/run/events.h \
	pipeline/run/failure.c pipeline/run/failure.h \
	pipeline/run/run.c pipeline/run/run.h pipeline/run/run_desc.h \
	pipeline/run/run_buffers.c pipeline/run/run_buffers.h \
	pipeline/engine/run_prepare.c \
	pipeline/engine/short_billboard.c pipeline/engine/short_billboard.h \
	pipeline/engine/short_path.c pipeline/engine/short_path.h \
	pipeline/engine/engine_wait.c pipeline/engine/engine_wait.h
EXTRA_DIST += pipeline/engine/README.md
