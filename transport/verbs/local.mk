# SPDX-License-Identifier: BSD-3-Clause
# Parts that can be tested without RDMA devices are always built.
libtransport_la_SOURCES += \
	transport/verbs/verbs_gid_select.c transport/verbs/verbs_gid_select.h \
	transport/verbs/verbs_oob_proto.c transport/verbs/verbs_oob_proto.h \
	transport/verbs/verbs_wire.h
if TRIB_VERBS
libtransport_la_SOURCES += \
	transport/verbs/verbs.c transport/verbs/verbs.h \
	transport/verbs/verbs_cm_thread.c \
	transport/verbs/verbs_connect.c \
	transport/verbs/verbs_connect_many.c \
	transport/verbs/verbs_address.c \
	transport/verbs/verbs_adapter.c transport/verbs/verbs_adapter.h \
	transport/verbs/verbs_cache.c transport/verbs/verbs_cache.h \
	transport/verbs/verbs_cq.c \
	transport/verbs/verbs_device.c \
	transport/verbs/verbs_dl_api.c transport/verbs/verbs_dl_api.h \
	transport/verbs/verbs_drain.c \
	transport/verbs/verbs_error_text.c \
	transport/verbs/verbs_events.c \
	transport/verbs/verbs_gid_table.c \
	transport/verbs/verbs_iova.c transport/verbs/verbs_iova.h \
	transport/verbs/verbs_liveness.c \
	transport/verbs/verbs_mr.c \
	transport/verbs/verbs_multiport.c \
	transport/verbs/verbs_oob_connect.c \
	transport/verbs/verbs_oob_listener.c \
	transport/verbs/verbs_open.c \
	transport/verbs/verbs_peer.c transport/verbs/verbs_peer.h \
	transport/verbs/verbs_post.c \
	transport/verbs/verbs_proof.c \
	transport/verbs/verbs_qp.c \
	transport/verbs/verbs_revive.c \
	transport/verbs/verbs_select.c transport/verbs/verbs_select.h \
	transport/verbs/verbs_speed.c transport/verbs/verbs_speed.h \
	transport/verbs/verbs_traffic.c \
	transport/verbs/verbs_wc.c transport/verbs/verbs_wc.h
endif
EXTRA_DIST += transport/verbs/README.md
