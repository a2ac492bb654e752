# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libboot.la
libtributary_all_la_LIBADD += libboot.la
libboot_la_SOURCES = \
	boot/boot_secret.c \
	boot/launch_offer.c \
	boot/boot.c boot/boot.h \
	boot/launch_root.c \
	boot/launcher.c boot/launcher.h \
	boot/local.c \
	boot/local_root.c boot/local_root.h \
	boot/mpi.c boot/mpi.h \
	boot/newcomers.h \
	boot/pmi.c boot/pmi.h \
	boot/pmix.c \
	boot/rank_names.c boot/rank_names.h \
	boot/root.c boot/root_place.h \
	boot/shm_rendezvous.c boot/shm_rendezvous.h \
	boot/slurm.c boot/slurm.h \
	boot/user_exchange.c
libboot_la_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)
EXTRA_DIST += boot/README.md
