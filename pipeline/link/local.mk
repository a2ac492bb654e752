# SPDX-License-Identifier: BSD-3-Clause
libpipeline_la_SOURCES += \
	pipeline/link/arena.c pipeline/link/arena.h pipeline/link/arena_layout.h \
	pipeline/link/billboard.h \
	pipeline/link/frame.c pipeline/link/frame.h \
	pipeline/link/grants.c pipeline/link/grants.h \
	pipeline/link/link.c pipeline/link/link.h pipeline/link/link_words.h \
	pipeline/link/notice.c \
	pipeline/link/link_import.c \
	pipeline/link/advert.c pipeline/link/advert.h \
	pipeline/link/registered.c pipeline/link/registered.h
EXTRA_DIST += pipeline/link/README.md
