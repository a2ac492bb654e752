# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libpipeline.la
libtributary_all_la_LIBADD += libpipeline.la
libpipeline_la_SOURCES =
EXTRA_DIST += pipeline/README.md
