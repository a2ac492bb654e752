# SPDX-License-Identifier: BSD-3-Clause
libboot_la_SOURCES += \
	boot/tcp/tcp_boot.c \
	boot/tcp/tcp_client.c boot/tcp/tcp_client.h \
	boot/tcp/listener_parts.h boot/tcp/listener_slots.c \
	boot/tcp/tcp_listener.c \
	boot/tcp/tcp_newcomer.c boot/tcp/tcp_newcomer.h \
	boot/tcp/tcp_job.c boot/tcp/tcp_job.h \
	boot/tcp/tcp_proto.c boot/tcp/tcp_proto.h \
	boot/tcp/tcp_server.c boot/tcp/tcp_server.h
EXTRA_DIST += boot/tcp/README.md
