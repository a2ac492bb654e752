# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcollectives.la
libtributary_all_la_LIBADD += libcollectives.la
libcollectives_la_SOURCES = \
	collectives/barrier.c \
	collectives/builder.c collectives/builder.h \
	collectives/collectives.c collectives/collectives.h \
	collectives/direct.c \
	collectives/doubling.c \
	collectives/flat.c \
	collectives/halving_doubling.c \
	collectives/hierarchical.c \
	collectives/offload.c \
	collectives/pairwise.c \
	collectives/ring.c \
	collectives/tree.c
EXTRA_DIST += collectives/README.md
