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
#
# What the daemon alone needs is a library of its own, which libtributary does not contain.
noinst_LTLIBRARIES += libservice.la
libservice_la_SOURCES = \
	agg/http.h \
	agg/http_address.c agg/http_address.h \
	agg/jobs.c agg/jobs.h \
	agg/jobs_fair.c agg/jobs_table.h \
	agg/jobs_text.c \
	agg/metrics.c agg/metrics.def agg/metrics.h \
	agg/metrics_json.c \
	agg/metrics_text.c \
	agg/process_view.c \
	agg/turns.c agg/turns.h
libservice_la_CFLAGS = $(AM_CFLAGS) $(MICROHTTPD_CFLAGS)
if TRIB_MICROHTTPD
libservice_la_SOURCES += agg/http.c
else
libservice_la_SOURCES += agg/http_absent.c
endif
SERVICE_LIBS = libservice.la libtributary_all.la $(TRIB_LIBS) $(MICROHTTPD_LIBS)

# The page as one string of C.
agg/page.inc: agg/page.html
	$(AM_V_GEN)$(MKDIR_P) agg && \
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $(srcdir)/agg/page.html >$@.new && \
	mv $@.new $@
BUILT_SOURCES += agg/page.inc
CLEANFILES += agg/page.inc
EXTRA_DIST += agg/page.html
