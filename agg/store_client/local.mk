# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libstore.la
libtributary_all_la_LIBADD += libstore.la
libstore_la_SOURCES = \
	agg/store_client/store_open.c agg/store_client/rank_store.h \
	agg/store_client/store_calls.c \
	agg/store_client/store_alive.c \
	agg/store_client/store_error.c \
	agg/store_client/store_parts.c \
	agg/store_client/store_exchange.c \
	agg/store_client/store_coded.c \
	agg/store_client/store_sparse.c \
	agg/store_client/store_restore.c \
	agg/store_client/store_shards.c
EXTRA_DIST += agg/store_client/README.md
