# SPDX-License-Identifier: BSD-3-Clause
libpipeline_la_SOURCES += \
	pipeline/engine/engine.c pipeline/engine/engine.h \
	pipeline/engine/engine_open.c \
	pipeline/engine/engine_wait.c pipeline/engine/engine_wait.h \
	pipeline/engine/run_buffers.c \
	pipeline/engine/run_prepare.c
EXTRA_DIST += pipeline/engine/README.md
