# SPDX-License-Identifier: BSD-3-Clause
# The kernels may not contract a * b + c: every instruction set gives the same bits.
KERNEL_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
noinst_LTLIBRARIES += libcompress.la
libtributary_all_la_LIBADD += libcompress.la
libcompress_la_CFLAGS = $(KERNEL_CFLAGS)
libcompress_la_LIBADD =
libcompress_la_SOURCES = \
	compress/autoencoder.c compress/autoencoder.h \
	compress/bitpack.h \
	compress/adacomp.c \
	compress/blocks.c \
	compress/buckets.c compress/buckets.h \
	compress/codec.c compress/codec.h \
	compress/codec_text.c \
	compress/conv1d.c compress/conv1d.h \
	compress/dgc.c \
	compress/entropy.c \
	compress/exact.c compress/exact.h compress/exact_limbs.c \
	compress/f8.c \
	compress/feedback_rule.c compress/feedback_rule.h \
	compress/gaps.c compress/gaps.h \
	compress/hadamard.c compress/hadamard.h \
	compress/half.c \
	compress/integers.c \
	compress/kernels.c compress/kernels.h \
	compress/kernels_c.c \
	compress/kernels_scalar.h compress/kernels_scalar_codec.h \
	compress/kernels_scalar_crc.h compress/kernels_scalar_exact.h \
	compress/kernels_scalar_feedback.h compress/kernels_scalar_gemm.h \
	compress/kernels_scalar_grid.h compress/kernels_scalar_hadamard.h \
	compress/kernels_scalar_integers.h compress/kernels_scalar_numbers.h \
	compress/kernels_scalar_quant.h \
	compress/kernels_scalar_select.h \
	compress/kernels_tables.h compress/kernels_x86_crc.h \
	compress/kernels_vec.h compress/kernels_vec_codec.h \
	compress/kernels_vec_feedback.h compress/kernels_vec_gemm.h \
	compress/kernels_vec_grid.h compress/kernels_vec_hadamard.h \
	compress/kernels_vec_integers.h compress/kernels_vec_quant.h \
	compress/kernels_scalar_strata.h compress/kernels_vec_strata.h \
	compress/kernels_vec_reduce.h compress/kernels_vec_select.h \
	compress/lanes.c compress/lanes.h \
	compress/model.c compress/model.h compress/model_kind.h \
	compress/model_teach.c compress/powersgd.c compress/gradiveq.c \
	compress/levels.c \
	compress/lgc.c compress/lgc.h compress/lgc_ps.c compress/lgc_ring.c \
	compress/noise.h \
	compress/number.c compress/number.h compress/numbers.c compress/numbers.h \
	compress/octaves.c \
	compress/omega.c compress/omega.h \
	compress/orthonormal.c compress/orthonormal.h \
	compress/pca.c compress/pca.h \
	compress/powers.c \
	compress/randomk.c \
	compress/robust.c compress/robust.h compress/robust_f64.c compress/robust_rows.h \
	compress/rotated.c compress/rotated.h \
	compress/select.c compress/selection.h \
	compress/sheet.c compress/sheet.h \
	compress/sign.c \
	compress/sparse.c \
	compress/stages.h \
	compress/strata.c compress/strata.h \
	compress/thc.c \
	compress/thc_table.c compress/thc_table.h \
	compress/threshold.c \
	compress/topk.c \
	compress/variable.c compress/variable.h \
	compress/vec128.h compress/vec128_linear.h \
	compress/vec256.h compress/vec256_linear.h \
	compress/vec512.h compress/vec512_linear.h

if TRIB_AARCH64
libcompress_la_SOURCES += compress/kernels_neon.c
endif

if TRIB_X86_64
noinst_LTLIBRARIES += libkernels_avx2.la libkernels_avx512.la
libcompress_la_LIBADD += libkernels_avx2.la libkernels_avx512.la
libkernels_avx2_la_SOURCES = compress/kernels_avx2.c
libkernels_avx2_la_CFLAGS = $(KERNEL_CFLAGS) $(TRIB_KERNEL_CFLAGS) $(TRIB_AVX2_CFLAGS)
libkernels_avx512_la_SOURCES = compress/kernels_avx512.c
libkernels_avx512_la_CFLAGS = $(KERNEL_CFLAGS) $(TRIB_KERNEL_CFLAGS) $(TRIB_AVX512_CFLAGS)
endif
