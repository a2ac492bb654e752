# SPDX-License-Identifier: BSD-3-Clause
if TRIB_ISAL
noinst_LTLIBRARIES += libcoded.la
libtrain_la_LIBADD += libcoded.la
libcoded_la_SOURCES = \
	train/coded/code_layout.c train/coded/code_layout.h \
	train/coded/code_table.c train/coded/code_table.h \
	train/coded/coded_blocks.c train/coded/coded_blocks.h \
	train/coded/coded_calls.c \
	train/coded/coded_fit.c \
	train/coded/coded_decode.c train/coded/coded_decode.h \
	train/coded/coded_setup.c \
	train/coded/coded_state.h \
	train/coded/codes.def \
	train/coded/gf_bytes.c train/coded/gf_bytes.h \
	train/coded/gradient_code.c \
	train/coded/linear_model.c train/coded/linear_model.h \
	train/coded/order_star.c train/coded/order_star.h \
	train/coded/order_star_state.h \
	train/coded/pivoted_qr.c train/coded/pivoted_qr.h \
	train/coded/request_serving.c \
	train/coded/sum_codes.c
libcoded_la_CFLAGS = $(AM_CFLAGS) $(ISAL_CFLAGS)
libcoded_la_LIBADD = $(ISAL_LIBS)
endif
EXTRA_DIST += train/coded/README.md
