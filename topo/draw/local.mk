# SPDX-License-Identifier: BSD-3-Clause
libtopo_la_SOURCES += \
	topo/draw/draw_tree.c topo/draw/draw_tree.h \
	topo/draw/draw_nodes.c topo/draw/draw_nodes.h
EXTRA_DIST += topo/draw/README.md
