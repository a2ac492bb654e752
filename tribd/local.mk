# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tribd/tribd
tribd_tribd_SOURCES = \
	tribd/admit.c \
	tribd/archive.c tribd/archive.h \
	tribd/archive_file.c \
	tribd/archive_list.c tribd/archive_parts.h \
	tribd/archive_open.c \
	tribd/archive_turns.c \
	tribd/clerk.c tribd/clerk.h \
	tribd/doors.c \
	tribd/draining.c \
	tribd/inquiries.c \
	tribd/from.c \
	tribd/health.c tribd/health.h \
	tribd/worker.c tribd/worker.h \
	tribd/ctl_server.c tribd/ctl_server.h \
	tribd/aggregator.c tribd/aggregator.h \
	tribd/job_settings.c tribd/job_settings.h \
	tribd/orders.c \
	tribd/quotas.c tribd/quotas.h \
	tribd/ready.c \
	tribd/reload.c \
	tribd/server.c tribd/server.h \
	tribd/server_open.c tribd/server_parts.h \
	tribd/store_admit.c \
	tribd/store_share.c \
	tribd/store_turns.c tribd/store_turns.h \
	tribd/store_job.c tribd/store_job.h \
	tribd/store_thread.c tribd/store_job_parts.h \
	tribd/store_keeper.c tribd/store_keeper.h \
	tribd/tribd_settings.c tribd/tribd_settings.def tribd/tribd_settings.h \
	tribd/systemd.c tribd/systemd.h \
	tribd/tribd.c \
	tribd/aggregator_metrics.c tribd/aggregator_metrics.h \
	tribd/watchdog.c tribd/watchdog.h \
	tribd/credentials.c tribd/credentials.h
tribd_tribd_LDADD = libtools.la $(SERVICE_LIBS)

# Installed in --with-systemdsystemunitdir=FOLDER.
EXTRA_DIST += tribd/tribd.service.in tribd/tribd.sysusers
CLEANFILES += tribd/tribd.service
tribd/tribd.service: tribd/tribd.service.in
	$(AM_V_GEN)mkdir -p tribd && sed -e 's|@bindir[@]|$(bindir)|' -e 's|@sysconfdir[@]|$(sysconfdir)|' \
		$(srcdir)/tribd/tribd.service.in >$@
if TRIB_SYSTEMD
nodist_systemdsystemunit_DATA = tribd/tribd.service
# The user of the service, created by systemd-sysusers.
install-data-local: install-sysusers
install-sysusers:
	$(MKDIR_P) '$(DESTDIR)$(sysusersdir)'
	$(INSTALL_DATA) $(srcdir)/tribd/tribd.sysusers '$(DESTDIR)$(sysusersdir)/tribd.conf'
uninstall-local: uninstall-sysusers
uninstall-sysusers:
	rm -f '$(DESTDIR)$(sysusersdir)/tribd.conf'
endif

bin_PROGRAMS += tribd/tribctl
tribd_tribctl_SOURCES = \
	tribd/ctl_client.c tribd/ctl_client.h \
	tribd/ctl_server.h \
	tribd/tribd_settings.c tribd/tribd_settings.def tribd/tribd_settings.h \
	tribd/tribctl.c
tribd_tribctl_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tribd_tribctl_LDADD = libtools.la libtributary_all.la $(TRIB_LIBS)
dist_man_MANS += man/tribctl.8
EXTRA_DIST += tribd/README.md
