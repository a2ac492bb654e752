# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libtransport.la
libtributary_all_la_LIBADD += libtransport.la
libtransport_la_SOURCES = \
	transport/backends.h \
	transport/params.c transport/params.h \
	transport/op_defaults.h transport/open.h transport/ops.h \
	transport/transport.c transport/transport.h
EXTRA_DIST += transport/README.md
