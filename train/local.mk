# SPDX-License-Identifier: BSD-3-Clause
lib_LTLIBRARIES += libtributary-train.la
noinst_LTLIBRARIES += libtrain.la libtrain_base.la
# Text, error and number functions that libtributary.la hides.
libtrain_base_la_SOURCES = \
	base/error.c \
	base/keyed_text.c \
	base/number.c \
	base/plain.c \
	base/sized.c \
	base/text.c
libtrain_la_SOURCES = \
	train/estimate.c train/estimate.h \
	train/graph.c train/graph.h \
	train/optimizer.c train/optimizer.h \
	train/parts.c train/parts.h \
	train/rate.c train/rate.h \
	train/run_share.c train/run_share.h \
	train/state.c \
	train/strategies.def \
	train/strategy.h \
	train/strategy_table.c \
	train/train_sum.c train/train_sum.h \
	train/trainer.c train/trainer_desc.c train/trainer.h \
	train/trainer_move.c \
	train/tuning.c train/tuning.h
libtrain_la_LIBADD =
libtrain_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd
libtributary_train_la_SOURCES =
libtributary_train_la_LIBADD = libtrain.la libtrain_base.la libtributary.la $(XXHASH_LIBS) -lm
libtributary_train_la_LDFLAGS = $(AM_LDFLAGS) $(TRIB_LIB_LDFLAGS) -version-info 0:0:0 \
	-Wl,--version-script=$(srcdir)/train/train.map
EXTRA_libtributary_train_la_DEPENDENCIES = train/train.map
EXTRA_DIST += train/README.md train/train.map
pkgconfig_DATA += tributary-train.pc
