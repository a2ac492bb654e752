# SPDX-License-Identifier: BSD-3-Clause
libtransport_la_SOURCES += \
	transport/loop/loop.c transport/loop/loop.h \
	transport/loop/loop_mem.c
EXTRA_DIST += transport/loop/README.md
