# SPDX-License-Identifier: BSD-3-Clause
libtransport_la_SOURCES += \
	transport/common/op_defaults.c \
	transport/common/guard.c transport/common/guard.h \
	transport/common/handout.c transport/common/handout.h \
	transport/common/handout_ask.c \
	transport/common/handout_wire.h \
	transport/common/absence.c transport/common/absence.h \
	transport/common/beat.h \
	transport/common/heartbeat.c transport/common/heartbeat.h \
	transport/common/net_addr.c transport/common/net_addr.h \
	transport/common/net_fence.c \
	transport/common/net_ways.c \
	transport/common/ip_endpoint.c transport/common/ip_endpoint.h \
	transport/common/own_memory.c transport/common/own_memory.h \
	transport/common/peer.c transport/common/peer.h \
	transport/common/peer_liveness.c transport/common/peer_liveness.h \
	transport/common/region_table.c transport/common/region_table.h \
	transport/common/sealed_record.c transport/common/sealed_record.h \
	transport/common/segment.c transport/common/segment.h
EXTRA_DIST += transport/common/README.md
