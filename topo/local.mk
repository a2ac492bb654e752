# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libtopo.la
libtributary_all_la_LIBADD += libtopo.la
libtopo_la_SOURCES = \
	topo/layout_free.c \
	topo/calibration.c topo/calibration.h \
	topo/cost.c topo/cost.h \
	topo/cpus.c topo/cpus.h \
	topo/groups.c topo/groups.h \
	topo/hostlist.c topo/hostlist.h \
	topo/hwloc_open.h \
	topo/layout.c topo/layout.h \
	topo/layout_hwloc.c topo/layout_hwloc.h \
	topo/leaders.c topo/leaders.h \
	topo/machine.c topo/machine.h \
	topo/rdma.c topo/rdma.h \
	topo/sysfs.c
libtopo_la_CFLAGS = $(AM_CFLAGS) $(HWLOC_CFLAGS) $(JANSSON_CFLAGS)
EXTRA_DIST += topo/README.md
