# SPDX-License-Identifier: BSD-3-Clause
libtopo_la_SOURCES += \
	inspect/draw/draw_tree.c inspect/draw/draw_tree.h \
	inspect/draw/draw_nodes.c inspect/draw/draw_nodes.h
EXTRA_DIST += inspect/draw/README.md
