# SPDX-License-Identifier: BSD-3-Clause
libagg_la_SOURCES += \
	agg/protocol/auth.c agg/protocol/auth.h \
	agg/protocol/auth_key.c \
	agg/protocol/auth_methods.h \
	agg/protocol/auth_munge.c \
	agg/protocol/control.c agg/protocol/control.def agg/protocol/control.h \
	agg/protocol/control_conn.c agg/protocol/control_conn.h \
	agg/protocol/crypt.h \
	agg/protocol/handshake.c \
	agg/protocol/session.c agg/protocol/session.h
if TRIB_SODIUM
libagg_la_SOURCES += agg/protocol/crypt.c
else
libagg_la_SOURCES += agg/protocol/crypt_absent.c
endif
EXTRA_DIST += agg/protocol/README.md
