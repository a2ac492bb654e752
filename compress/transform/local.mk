# SPDX-License-Identifier: BSD-3-Clause
libcompress_la_SOURCES += \
	compress/transform/rotated_ops.c \
	compress/transform/hadamard.c compress/transform/hadamard.h \
	compress/transform/rotated.c compress/transform/rotated.h
EXTRA_DIST += compress/transform/README.md
