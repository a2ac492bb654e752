# SPDX-License-Identifier: BSD-3-Clause
libtransport_la_SOURCES += \
	transport/tcp/tcp.c transport/tcp/tcp.h \
	transport/tcp/tcp_connect.c \
	transport/tcp/tcp_devices.c \
	transport/tcp/tcp_duplex.c \
	transport/tcp/tcp_helper.c \
	transport/tcp/tcp_listen.c \
	transport/tcp/tcp_mem.c \
	transport/tcp/tcp_peer.c transport/tcp/tcp_peer.h \
	transport/tcp/tcp_proof.c \
	transport/tcp/tcp_receive.c \
	transport/tcp/tcp_seal.c \
	transport/tcp/tcp_send.c \
	transport/tcp/tcp_wire.h
EXTRA_DIST += transport/tcp/README.md
