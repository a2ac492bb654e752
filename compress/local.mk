# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcompress.la
libtributary_all_la_LIBADD += libcompress.la
libcompress_la_SOURCES = \
	compress/codec_create.c \
	compress/codec_ops.h \
	compress/codec_params.def \
	compress/codec_table.c \
	compress/stages.c \
	compress/codec.c compress/codec.h \
	compress/codec_info.c compress/codec_info.h \
	compress/codec_text.c \
	compress/feedback_ops.h \
	compress/feedback_rule.c compress/feedback_rule.h \
	compress/feedback_rules.def \
	compress/robust_op.c compress/robust_op.h \
	compress/robust_f64.c \
	compress/robust_rows.h \
	compress/stages.h \
	compress/vector_scale.c compress/vector_scale.h \
	compress/vector_split.c compress/vector_split.h \
	compress/vector_stats.c compress/vector_stats.h \
	compress/vector_words.c compress/vector_words.h
libcompress_la_LIBADD =
libcompress_la_CFLAGS = $(KERNEL_CFLAGS)
EXTRA_DIST += compress/README.md
