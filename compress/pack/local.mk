# SPDX-License-Identifier: BSD-3-Clause
libcompress_la_SOURCES += \
	compress/pack/varlen_ops.c \
	compress/kernels/bitpack.h \
	compress/pack/elias_omega.c compress/pack/elias_omega.h \
	compress/pack/entropy.c \
	compress/pack/index_gaps.c compress/pack/index_gaps.h \
	compress/pack/varlen.c compress/pack/varlen.h
EXTRA_DIST += compress/pack/README.md
