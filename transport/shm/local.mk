# SPDX-License-Identifier: BSD-3-Clause
libtransport_la_SOURCES += \
	transport/shm/shm_loss.c \
	transport/shm/shm.c transport/shm/shm.h \
	transport/shm/shm_cma.c \
	transport/shm/shm_guard.c \
	transport/shm/shm_layout.h \
	transport/shm/shm_mem.c \
	transport/shm/shm_peer.c
EXTRA_DIST += transport/shm/README.md
