# SPDX-License-Identifier: BSD-3-Clause
libtransport_la_SOURCES += \
	transport/auto/auto_log.c \
	transport/auto/auto_blob.c \
	transport/auto/auto.c transport/auto/auto.h \
	transport/auto/auto_mem.c \
	transport/auto/auto_params.c transport/auto/auto_params.h \
	transport/auto/auto_peer.c transport/auto/auto_peer.h \
	transport/auto/auto_select.c
EXTRA_DIST += transport/auto/README.md
