# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libboot.la
libtributary_all_la_LIBADD += libboot.la
libboot_la_SOURCES = \
	boot/board.c boot/board.h \
	boot/boot.c boot/boot.h \
	boot/launch_root.c \
	boot/launcher.c boot/launcher.h \
	boot/local.c \
	boot/meeting.c boot/meeting.h \
	boot/mpi.c boot/mpi.h \
	boot/pmi.c boot/pmi.h \
	boot/pmix.c \
	boot/root.c \
	boot/slurm.c boot/slurm.h \
	boot/tcp.c \
	boot/tcp_job.c boot/tcp_job.h \
	boot/tcp_net.c boot/tcp_net.h \
	boot/tcp_proto.c boot/tcp_proto.h \
	boot/tcp_server.c boot/tcp_server.h \
	boot/who.c boot/who.h
libboot_la_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)
