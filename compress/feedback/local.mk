# SPDX-License-Identifier: BSD-3-Clause
libcompress_la_SOURCES += \
	compress/feedback/ef14.c \
	compress/feedback/ef21.c \
	compress/feedback/none.c
EXTRA_DIST += compress/feedback/README.md
