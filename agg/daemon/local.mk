# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += agg/daemon/tribd
agg_daemon_tribd_SOURCES = \
	agg/daemon/admit.c \
	agg/daemon/archive.c agg/daemon/archive.h \
	agg/daemon/archive_file.c \
	agg/daemon/archive_limits.c \
	agg/daemon/archive_list.c agg/daemon/archive_parts.h \
	agg/daemon/archive_open.c \
	agg/daemon/archive_turns.c \
	agg/daemon/request_worker.c agg/daemon/request_worker.h \
	agg/daemon/listeners.c \
	agg/daemon/draining.c \
	agg/daemon/queries.c \
	agg/daemon/health.c agg/daemon/health.h \
	agg/daemon/worker.c agg/daemon/worker.h \
	agg/daemon/ctl_server.c agg/daemon/ctl_server.h \
	agg/daemon/aggregator.c agg/daemon/aggregator.h \
	agg/daemon/aggregator_step.c \
	agg/daemon/job_settings.c agg/daemon/job_settings.h \
	agg/daemon/orders.c \
	agg/daemon/quotas.c agg/daemon/quotas.h \
	agg/daemon/ready.c \
	agg/daemon/reload.c \
	agg/daemon/server_clients.c agg/daemon/server.h \
	agg/daemon/server_loop.c agg/daemon/server_parts.h \
	agg/daemon/server_open.c \
	agg/daemon/store_admit.c \
	agg/daemon/store_share.c \
	agg/daemon/store_turns.c agg/daemon/store_turns.h \
	agg/daemon/store_job.c agg/daemon/store_job.h \
	agg/daemon/store_thread.c agg/daemon/store_job_parts.h \
	agg/daemon/store_keeper.c agg/daemon/store_keeper.h \
	agg/daemon/tribd_settings.c agg/daemon/tribd_settings.def agg/daemon/tribd_settings.h \
	agg/daemon/systemd.c agg/daemon/systemd.h \
	agg/daemon/tribd.c \
	agg/daemon/aggregator_metrics.c agg/daemon/aggregator_metrics.h \
	agg/daemon/watchdog.c agg/daemon/watchdog.h \
	agg/daemon/credentials.c agg/daemon/credentials.h
agg_daemon_tribd_LDADD = libtools.la $(SERVICE_LIBS)

# Installed in --with-systemdsystemunitdir=FOLDER.
EXTRA_DIST += agg/daemon/tribd.service.in agg/daemon/tribd.sysusers
CLEANFILES += agg/daemon/tribd.service
agg/daemon/tribd.service: agg/daemon/tribd.service.in
	$(AM_V_GEN)mkdir -p agg/daemon && sed -e 's|@bindir[@]|$(bindir)|' -e 's|@sysconfdir[@]|$(sysconfdir)|' \
		$(srcdir)/agg/daemon/tribd.service.in >$@
if TRIB_SYSTEMD
nodist_systemdsystemunit_DATA = agg/daemon/tribd.service
# The user of the service, created by systemd-sysusers.
install-data-local: install-sysusers
install-sysusers:
	$(MKDIR_P) '$(DESTDIR)$(sysusersdir)'
	$(INSTALL_DATA) $(srcdir)/agg/daemon/tribd.sysusers '$(DESTDIR)$(sysusersdir)/tribd.conf'
uninstall-local: uninstall-sysusers
uninstall-sysusers:
	rm -f '$(DESTDIR)$(sysusersdir)/tribd.conf'
endif

bin_PROGRAMS += agg/daemon/tribctl
agg_daemon_tribctl_SOURCES = \
	agg/daemon/ctl_client.c agg/daemon/ctl_client.h \
	agg/daemon/ctl_server.h \
	agg/daemon/tribd_settings.c agg/daemon/tribd_settings.def agg/daemon/tribd_settings.h \
	agg/daemon/tribctl.c
agg_daemon_tribctl_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
agg_daemon_tribctl_LDADD = libtools.la libtributary_all.la $(TRIB_LIBS)
dist_man_MANS += man/tribctl.8
EXTRA_DIST += agg/daemon/README.md
