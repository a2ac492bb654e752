# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tribd/tribd
tribd_tribd_SOURCES = \
	tribd/lane.c tribd/lane.h \
	tribd/node.c tribd/node.h \
	tribd/server.c tribd/server.h \
	tribd/settings.c tribd/settings.def tribd/settings.h \
	tribd/tribd.c \
	tribd/watch.c tribd/watch.h
tribd_tribd_LDADD = $(SERVICE_LIBS)
