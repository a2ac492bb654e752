# SPDX-License-Identifier: BSD-3-Clause
libservice_la_SOURCES += \
	agg/store/store_image.c agg/store/store_image.h \
	agg/store/store_peer.c agg/store/store_peer.h \
	agg/store/store_rule.c agg/store/store_rule.h \
	agg/store/store_snapshot.c agg/store/store_snapshot.h \
	agg/store/store_table.c agg/store/store_table.h \
	agg/store/store_form.c agg/store/store_form.h \
	agg/store/store_push.c \
	agg/store/store_walk.c agg/store/store_walk.h \
	agg/store/store_vectors.h
EXTRA_DIST += agg/store/README.md
