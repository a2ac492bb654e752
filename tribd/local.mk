# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tribd/tribd
tribd_tribd_SOURCES = \
	tribd/lane.c tribd/lane.h \
	tribd/node.c tribd/node.h \
	tribd/server.c tribd/server.h \
	tribd/settings.c tribd/settings.def tribd/settings.h \
	tribd/systemd.c tribd/systemd.h \
	tribd/tribd.c \
	tribd/who.c tribd/who.h
tribd_tribd_LDADD = $(SERVICE_LIBS)

# Where --with-systemdsystemunitdir=FOLDER asks for it.
EXTRA_DIST += tribd/tribd.service.in
if TRIB_SYSTEMD
systemdsystemunitdir = @systemdsystemunitdir@
nodist_systemdsystemunit_DATA = tribd/tribd.service
CLEANFILES += tribd/tribd.service
tribd/tribd.service: tribd/tribd.service.in
	$(AM_V_GEN)mkdir -p tribd && sed -e 's|@bindir[@]|$(bindir)|' -e 's|@sysconfdir[@]|$(sysconfdir)|' \
		$(srcdir)/tribd/tribd.service.in >$@
endif
