# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libagg.la
libtributary_all_la_LIBADD += libagg.la
libagg_la_SOURCES =
libagg_la_CFLAGS = $(AM_CFLAGS) $(SODIUM_CFLAGS)

# Code for the daemon only is in a separate library, not in libtributary.
noinst_LTLIBRARIES += libservice.la
libservice_la_SOURCES =
libservice_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd $(MICROHTTPD_CFLAGS)
SERVICE_LIBS = libservice.la libtributary_all.la $(TRIB_LIBS) $(MICROHTTPD_LIBS)
EXTRA_DIST += agg/README.md
