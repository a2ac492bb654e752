# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libpipeline.la
libtributary_all_la_LIBADD += libpipeline.la
libpipeline_la_SOURCES = \
	pipeline/ahead.c \
	pipeline/ahead.h \
	pipeline/buffers.c \
	pipeline/check.c pipeline/check.h \
	pipeline/checksum.c pipeline/checksum.h \
	pipeline/engine.c \
	pipeline/engine.h \
	pipeline/engine_open.c \
	pipeline/feedback.c \
	pipeline/feedback.h \
	pipeline/frame.c \
	pipeline/frame.h \
	pipeline/keep.c pipeline/keep.h \
	pipeline/link.c \
	pipeline/link.h \
	pipeline/link_import.c \
	pipeline/memory.c \
	pipeline/memory.h \
	pipeline/move.c \
	pipeline/move.h \
	pipeline/move_coded.c \
	pipeline/narrow.c pipeline/narrow.h \
	pipeline/open.c \
	pipeline/open.h \
	pipeline/move_linear.c \
	pipeline/prepare.c \
	pipeline/program.c \
	pipeline/program.h \
	pipeline/quorum.c pipeline/quorum.h \
	pipeline/schedule.c \
	pipeline/service_sum.c pipeline/service_sum.h \
	pipeline/schedule.h \
	pipeline/share.c \
	pipeline/share.h \
	pipeline/idle.c \
	pipeline/idle.h
