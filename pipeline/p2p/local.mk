# SPDX-License-Identifier: BSD-3-Clause
libpipeline_la_SOURCES += \
	pipeline/p2p/direct_write.c pipeline/p2p/direct_write.h \
	pipeline/p2p/mailbox.c pipeline/p2p/mailbox.h \
	pipeline/p2p/matching.c pipeline/p2p/matching.h \
	pipeline/p2p/message.c pipeline/p2p/message.h \
	pipeline/p2p/p2p.c pipeline/p2p/p2p.h \
	pipeline/p2p/p2p_open.c pipeline/p2p/p2p_send.c \
	pipeline/p2p/p2p_state.h \
	pipeline/p2p/pull.c pipeline/p2p/pull.h
EXTRA_DIST += pipeline/p2p/README.md
