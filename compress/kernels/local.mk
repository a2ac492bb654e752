# SPDX-License-Identifier: BSD-3-Clause
# No contraction of a * b + c: every instruction set must produce the same bits.
KERNEL_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
libcompress_la_SOURCES += \
	compress/kernels/kernels.c compress/kernels/kernels.h \
	compress/kernels/kernels_c.c \
	compress/kernels/kernels_scalar.h \
	compress/kernels/kernels_scalar_bounded.h \
	compress/kernels/kernels_scalar_codec.h \
	compress/kernels/kernels_scalar_crc.h \
	compress/kernels/kernels_scalar_exact.h \
	compress/kernels/kernels_scalar_factor.h \
	compress/kernels/kernels_scalar_feedback.h \
	compress/kernels/kernels_scalar_gemm.h \
	compress/kernels/kernels_scalar_grid.h \
	compress/kernels/kernels_scalar_hadamard.h \
	compress/kernels/kernels_scalar_located.h \
	compress/kernels/kernels_scalar_shared_scale.h \
	compress/kernels/kernels_scalar_numbers.h \
	compress/kernels/kernels_scalar_quant.h \
	compress/kernels/kernels_scalar_select.h \
	compress/kernels/kernels_scalar_stratified.h \
	compress/kernels/kernels_table.h \
	compress/kernels/kernels_tables.h \
	compress/kernels/kernels_vec.h \
	compress/kernels/kernels_vec_bounded.h \
	compress/kernels/kernels_vec_codec.h \
	compress/kernels/kernels_vec_factor.h \
	compress/kernels/kernels_vec_feedback.h \
	compress/kernels/kernels_vec_gemm.h \
	compress/kernels/kernels_vec_grid.h \
	compress/kernels/kernels_vec_hadamard.h \
	compress/kernels/kernels_vec_shared_scale.h \
	compress/kernels/kernels_vec_narrow.h \
	compress/kernels/kernels_vec_quant.h \
	compress/kernels/kernels_vec_reduce.h \
	compress/kernels/kernels_vec_select.h \
	compress/kernels/kernels_vec_stratified.h \
	compress/kernels/kernels_x86_crc.h \
	compress/kernels/vec128.h \
	compress/kernels/vec128_linear.h \
	compress/kernels/vec256.h \
	compress/kernels/vec256_linear.h \
	compress/kernels/vec512.h \
	compress/kernels/vec512_linear.h \
	compress/kernels/vec_x86.h

if TRIB_AARCH64
libcompress_la_SOURCES += compress/kernels/kernels_neon.c
endif

if TRIB_X86_64
noinst_LTLIBRARIES += libkernels_avx2.la libkernels_avx512.la
libcompress_la_LIBADD += libkernels_avx2.la libkernels_avx512.la
libkernels_avx2_la_SOURCES = compress/kernels/kernels_avx2.c
libkernels_avx2_la_CFLAGS = $(KERNEL_CFLAGS) $(TRIB_KERNEL_CFLAGS) $(TRIB_AVX2_CFLAGS)
libkernels_avx512_la_SOURCES = compress/kernels/kernels_avx512.c
libkernels_avx512_la_CFLAGS = $(KERNEL_CFLAGS) $(TRIB_KERNEL_CFLAGS) $(TRIB_AVX512_CFLAGS)
endif
EXTRA_DIST += compress/kernels/README.md
