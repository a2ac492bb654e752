# SPDX-License-Identifier: BSD-3-Clause
libpipeline_la_SOURCES += \
	pipeline/engine/chunk.h \
	pipeline/engine/engine.c pipeline/engine/engine.h \
	pipeline/engine/engine_open.c \
	pipeline/engine/engine_p2p.h \
	pipeline/engine/engine_page.c pipeline/engine/engine_page.h \
	pipeline/engine/engine_state.h \
	pipeline/engine/engine_trace.h \
	pipeline/engine/events.c pipeline/engine/events.h \
	pipeline/engine/failure.c pipeline/engine/failure.h \
	pipeline/engine/run.c pipeline/engine/run.h pipeline/engine/run_desc.h \
	pipeline/engine/run_buffers.c pipeline/engine/run_buffers.h \
	pipeline/engine/run_prepare.c \
	pipeline/engine/short_billboard.c pipeline/engine/short_billboard.h \
	pipeline/engine/short_path.c pipeline/engine/short_path.h \
	pipeline/engine/engine_wait.c pipeline/engine/engine_wait.h
EXTRA_DIST += pipeline/engine/README.md
