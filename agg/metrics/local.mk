# SPDX-License-Identifier: BSD-3-Clause
libservice_la_SOURCES += \
	agg/metrics/http.h \
	agg/metrics/http_address.c agg/metrics/http_address.h \
	agg/metrics/metrics.c agg/metrics/metrics.def agg/metrics/metrics.h \
	agg/metrics/metrics_json.c \
	agg/metrics/metrics_prometheus.c \
	agg/metrics/process_view.c
if TRIB_MICROHTTPD
libservice_la_SOURCES += agg/metrics/http.c
else
libservice_la_SOURCES += agg/metrics/http_absent.c
endif

# The page as a C string.
agg/metrics/page.inc: agg/metrics/page.html
	$(AM_V_GEN)$(MKDIR_P) agg/metrics && \
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $(srcdir)/agg/metrics/page.html >$@.new && \
	mv $@.new $@
BUILT_SOURCES += agg/metrics/page.inc
CLEANFILES += agg/metrics/page.inc
EXTRA_DIST += agg/metrics/page.html
EXTRA_DIST += agg/metrics/README.md
