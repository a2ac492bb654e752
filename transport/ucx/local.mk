# SPDX-License-Identifier: BSD-3-Clause
if TRIB_UCX
libtransport_la_SOURCES += \
	transport/ucx/ucx_endpoint.c \
	transport/ucx/ucx.c transport/ucx/ucx.h \
	transport/ucx/ucx_cm_thread.c \
	transport/ucx/ucx_connect.c \
	transport/ucx/ucx_dl_api.c transport/ucx/ucx_dl_api.h \
	transport/ucx/ucx_error_text.c \
	transport/ucx/ucx_helper.c \
	transport/ucx/ucx_liveness.c \
	transport/ucx/ucx_mem.c \
	transport/ucx/ucx_proof.c \
	transport/ucx/ucx_receive.c \
	transport/ucx/ucx_wire.h \
	transport/ucx/ucx_worker.c \
	transport/ucx/ucx_write.c
endif
EXTRA_DIST += transport/ucx/README.md
