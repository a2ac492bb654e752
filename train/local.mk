# SPDX-License-Identifier: BSD-3-Clause
lib_LTLIBRARIES += libtributary-train.la
noinst_LTLIBRARIES += libtrain.la libtrain_base.la
# Text, error and number functions that libtributary.la hides.
libtrain_base_la_SOURCES = \
	base/error.c \
	base/keyed_text.c \
	base/number.c \
	base/plain.c \
	base/sections.c \
	base/sized.c \
	base/text.c
libtrain_la_SOURCES = \
	train/trainer/checkpoint.c \
	train/trainer/estimate.c train/trainer/estimate.h \
	train/trainer/graph.c train/trainer/graph.h \
	train/trainer/optimizer.c train/trainer/optimizer.h \
	train/trainer/parts.c train/trainer/parts.h \
	train/trainer/rate.c train/trainer/rate.h \
	train/trainer/run_share.c train/trainer/run_share.h \
	train/trainer/strategies.def \
	train/trainer/strategy.h \
	train/trainer/strategy_table.c \
	train/trainer/train_sum.c train/trainer/train_sum.h \
	train/trainer/trainer.c train/trainer/trainer.h \
	train/trainer/trainer_create.c train/trainer/trainer_desc.c \
	train/trainer/trainer_move.c train/trainer/trainer_state.c \
	train/trainer/tuning.c train/trainer/tuning.h
libtrain_la_LIBADD =
libtrain_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd
libtributary_train_la_SOURCES =
libtributary_train_la_LIBADD = libtrain.la libtrain_base.la libtributary.la $(XXHASH_LIBS) -lm
libtributary_train_la_LDFLAGS = $(AM_LDFLAGS) $(TRIB_LIB_LDFLAGS) -version-info 0:0:0 \
	-Wl,--version-script=$(srcdir)/train/train.map
EXTRA_libtributary_train_la_DEPENDENCIES = train/train.map
EXTRA_DIST += train/README.md train/trainer/README.md train/train.map
pkgconfig_DATA += tributary-train.pc
