# SPDX-License-Identifier: BSD-3-Clause
include_HEADERS += include/tributary.h
tributaryincludedir = $(includedir)/tributary
tributaryinclude_HEADERS = \
	include/tributary/coll.h \
	include/tributary/comm.h \
	include/tributary/doctor.h \
	include/tributary/elastic.h \
	include/tributary/export.h \
	include/tributary/group.h \
	include/tributary/info.h \
	include/tributary/send.h \
	include/tributary/neighbors.h \
	include/tributary/request.h \
	include/tributary/replicator.h \
	include/tributary/sparse.h \
	include/tributary/status.h \
	include/tributary/store.h \
	include/tributary/topology.h \
	include/tributary/train.h \
	include/tributary/types.h
if TRIB_ISAL
tributaryinclude_HEADERS += include/tributary/coded.h
endif
