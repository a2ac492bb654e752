# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libtransport.la
libtributary_all_la_LIBADD += libtransport.la
libtransport_la_SOURCES = \
	transport/auto.c transport/auto.h \
	transport/auto_choose.c \
	transport/auto_region.c \
	transport/backends.h \
	transport/decorators.h \
	transport/guard.c transport/guard.h \
	transport/handout.c transport/handout.h \
	transport/handout_ask.c transport/handout_wire.h \
	transport/loop.c transport/loop.h \
	transport/loop_region.c \
	transport/net.c transport/net.h \
	transport/net_fence.c \
	transport/net_ways.c \
	transport/own_memory.c transport/own_memory.h \
	transport/params.c transport/params.h \
	transport/pulse.c transport/pulse.h \
	transport/rails.c transport/rails.h \
	transport/rails_address.c \
	transport/rails_connect.c \
	transport/rails_receive.c \
	transport/rails_recover.c \
	transport/rails_region.c \
	transport/rails_send.c \
	transport/rails_silence.c \
	transport/rails_wire.h \
	transport/region_table.c transport/region_table.h \
	transport/record.c transport/record.h \
	transport/segment.c transport/segment.h \
	transport/shm.c transport/shm.h \
	transport/shm_guard.c \
	transport/shm_layout.h \
	transport/shm_peer.c \
	transport/shm_region.c \
	transport/tcp.c transport/tcp.h \
	transport/tcp_both_ways.c \
	transport/tcp_connect.c \
	transport/tcp_devices.c \
	transport/tcp_listen.c \
	transport/tcp_proof.c \
	transport/tcp_receive.c \
	transport/tcp_region.c \
	transport/tcp_seal.c \
	transport/tcp_send.c \
	transport/transport.c transport/transport.h \
	transport/verbs_call.c transport/verbs_call.h \
	transport/verbs_gid.c transport/verbs_gid.h \
	transport/verbs_wire.h \
	transport/watch.c transport/watch.h \
	transport/wrap.c transport/wrap.h \
	transport/wrap_trace.c \
	transport/wrap_trouble.c
if TRIB_UCX
libtransport_la_SOURCES += \
	transport/ucx.c transport/ucx.h \
	transport/ucx_api.c transport/ucx_api.h \
	transport/ucx_connect.c \
	transport/ucx_life.c \
	transport/ucx_manager.c \
	transport/ucx_proof.c \
	transport/ucx_receive.c \
	transport/ucx_region.c \
	transport/ucx_text.c \
	transport/ucx_wire.h \
	transport/ucx_worker.c \
	transport/ucx_write.c
endif
if TRIB_VERBS
libtransport_la_SOURCES += \
	transport/verbs.c transport/verbs.h \
	transport/verbs_api.c transport/verbs_api.h \
	transport/verbs_connect.c \
	transport/verbs_device.c \
	transport/verbs_dial.c \
	transport/verbs_door.c \
	transport/verbs_life.c \
	transport/verbs_link.c \
	transport/verbs_manager.c \
	transport/verbs_poll.c \
	transport/verbs_proof.c \
	transport/verbs_rails.c \
	transport/verbs_region.c \
	transport/verbs_table.c \
	transport/verbs_text.c \
	transport/verbs_write.c
endif
