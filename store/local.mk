# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libstore.la
libtributary_all_la_LIBADD += libstore.la
libstore_la_SOURCES = \
	store/store_open.c store/rank_store.h \
	store/store_calls.c \
	store/store_alive.c \
	store/store_parts.c \
	store/store_exchange.c \
	store/store_coded.c \
	store/store_sparse.c \
	store/store_restore.c \
	store/store_shards.c
EXTRA_DIST += store/README.md
