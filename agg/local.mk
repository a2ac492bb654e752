# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libagg.la
libtributary_all_la_LIBADD += libagg.la
libagg_la_SOURCES = \
	agg/auth.c agg/auth.h \
	agg/auth_key.c \
	agg/auth_methods.h \
	agg/auth_munge.c \
	agg/control.c agg/control.h \
	agg/control_conn.c agg/control_conn.h \
	agg/crypt.h \
	agg/handshake.c \
	agg/session.c agg/session.h
if TRIB_SODIUM
libagg_la_SOURCES += agg/crypt.c
else
libagg_la_SOURCES += agg/crypt_absent.c
endif
libagg_la_CFLAGS = $(AM_CFLAGS) $(SODIUM_CFLAGS)
