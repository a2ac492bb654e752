# SPDX-License-Identifier: BSD-3-Clause
libcompress_la_SOURCES += \
	compress/sparsify/sparse_ops.c \
	compress/sparsify/adacomp.c \
	compress/sparsify/blocks.c \
	compress/sparsify/dgc.c \
	compress/sparsify/randomk.c \
	compress/sparsify/select.c \
	compress/sparsify/selection.h \
	compress/sparsify/sparse_block.c \
	compress/sparsify/stratified.c compress/sparsify/stratified.h \
	compress/sparsify/threshold.c \
	compress/sparsify/topk.c
EXTRA_DIST += compress/sparsify/README.md
