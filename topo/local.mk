# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libtopo.la
libtributary_all_la_LIBADD += libtopo.la
libtopo_la_SOURCES = \
	topo/cost.c topo/cost.h \
	topo/cpus.c topo/cpus.h \
	topo/draw.c topo/draw.h \
	topo/draw_nodes.c topo/draw_nodes.h \
	topo/groups.c topo/groups.h \
	topo/hostlist.c topo/hostlist.h \
	topo/hwloc_open.h \
	topo/layout.c topo/layout.h \
	topo/layout_hwloc.c topo/layout_hwloc.h \
	topo/leaders.c topo/leaders.h \
	topo/machine.c topo/machine.h \
	topo/racks.c topo/racks.h \
	topo/racks_fabric.c topo/racks_fabric.h \
	topo/racks_fabric_tree.c \
	topo/racks_finish.c \
	topo/racks_ib.c \
	topo/racks_plain.c \
	topo/racks_reader.c topo/racks_reader.h \
	topo/racks_slurm.c \
	topo/rdma.c topo/rdma.h \
	topo/services.c topo/services.h \
	topo/sysfs.c
libtopo_la_CFLAGS = $(AM_CFLAGS) $(HWLOC_CFLAGS)
