# SPDX-License-Identifier: BSD-3-Clause
libtopo_la_SOURCES += \
	topo/racks/racks_hosts.c \
	topo/racks/racks.c topo/racks/racks.h \
	topo/racks/racks_fabric.c topo/racks/racks_fabric.h \
	topo/racks/racks_fabric_tree.c \
	topo/racks/racks_finish.c \
	topo/racks/racks_ib.c \
	topo/racks/racks_plain.c \
	topo/racks/racks_reader.c topo/racks/racks_reader.h \
	topo/racks/racks_slurm.c \
	topo/racks/agg_groups.c topo/racks/agg_groups.h
EXTRA_DIST += topo/racks/README.md
