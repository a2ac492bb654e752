# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcompress.la
libtributary_all_la_LIBADD += libcompress.la
libcompress_la_SOURCES = \
	compress/registry/codec_create.c \
	compress/codec_ops.h \
	compress/codec_params.def \
	compress/registry/codec_table.c \
	compress/stages.c \
	compress/codec.c compress/codec.h \
	compress/codec_info.c compress/codec_info.h \
	compress/registry/codec_text.c \
	compress/feedback_ops.h \
	compress/registry/feedback_rule.c compress/feedback_rule.h \
	compress/feedback_rules.def \
	compress/vectors/robust_op.c compress/vectors/robust_op.h \
	compress/vectors/robust_f64.c \
	compress/vectors/robust_rows.h \
	compress/stages.h \
	compress/vectors/vector_scale.c compress/vectors/vector_scale.h \
	compress/vectors/vector_split.c compress/vectors/vector_split.h \
	compress/vector_stats.c compress/vector_stats.h \
	compress/vectors/vector_words.c compress/vectors/vector_words.h
libcompress_la_LIBADD =
libcompress_la_CFLAGS = $(KERNEL_CFLAGS)
EXTRA_DIST += compress/README.md compress/registry/README.md
