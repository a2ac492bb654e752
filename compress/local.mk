# SPDX-License-Identifier: BSD-3-Clause
# The kernels may not contract a * b + c: every instruction set gives the same bits.
KERNEL_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
noinst_LTLIBRARIES += libcompress.la
libtributary_all_la_LIBADD += libcompress.la
libcompress_la_CFLAGS = $(KERNEL_CFLAGS)
libcompress_la_LIBADD =
libcompress_la_SOURCES = \
	compress/bitpack.h \
	compress/buckets.c compress/buckets.h \
	compress/codec.c compress/codec.h \
	compress/codec_text.c \
	compress/entropy.c \
	compress/f8.c \
	compress/gaps.c compress/gaps.h \
	compress/half.c \
	compress/kernels.c compress/kernels.h \
	compress/kernels_c.c \
	compress/kernels_scalar.h compress/kernels_scalar_codec.h \
	compress/kernels_scalar_quant.h \
	compress/kernels_tables.h \
	compress/kernels_vec.h compress/kernels_vec_codec.h \
	compress/kernels_vec_quant.h compress/kernels_vec_reduce.h \
	compress/levels.c \
	compress/noise.h \
	compress/octaves.c \
	compress/omega.c compress/omega.h \
	compress/powers.c \
	compress/select.c \
	compress/sign.c \
	compress/sparse.c \
	compress/stages.h \
	compress/topk.c \
	compress/variable.c compress/variable.h \
	compress/vec128.h compress/vec256.h compress/vec512.h

if TRIB_AARCH64
libcompress_la_SOURCES += compress/kernels_neon.c
endif

if TRIB_X86_64
noinst_LTLIBRARIES += libkernels_avx2.la libkernels_avx512.la
libcompress_la_LIBADD += libkernels_avx2.la libkernels_avx512.la
libkernels_avx2_la_SOURCES = compress/kernels_avx2.c
libkernels_avx2_la_CFLAGS = $(KERNEL_CFLAGS) $(TRIB_AVX2_CFLAGS)
libkernels_avx512_la_SOURCES = compress/kernels_avx512.c
libkernels_avx512_la_CFLAGS = $(KERNEL_CFLAGS) $(TRIB_AVX512_CFLAGS)
endif
