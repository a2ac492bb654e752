# SPDX-License-Identifier: BSD-3-Clause
libcompress_la_SOURCES += \
	compress/quantise/dense_ops.c \
	compress/quantise/bounded.c compress/quantise/bounded.h \
	compress/quantise/bounded_merge.c compress/quantise/bounded_parts.h \
	compress/quantise/buckets.c compress/quantise/buckets.h \
	compress/quantise/dither.c \
	compress/quantise/exact_sum.c compress/quantise/exact_sum.h \
	compress/quantise/exact_limbs.c \
	compress/quantise/f8.c \
	compress/quantise/half.c \
	compress/quantise/natural.c \
	compress/quantise/packed_ints.c compress/quantise/packed_ints.h \
	compress/quantise/packed_ints_merge.c \
	compress/quantise/packed_ints_parts.h \
	compress/quantise/qsgd.c \
	compress/quantise/rng_keys.h \
	compress/quantise/shared_scale.c \
	compress/quantise/sign.c \
	compress/quantise/thc.c \
	compress/quantise/thc_table.c compress/quantise/thc_table.h
EXTRA_DIST += compress/quantise/README.md
