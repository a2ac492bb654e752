# SPDX-License-Identifier: BSD-3-Clause
libtransport_la_SOURCES += \
	transport/multirail/multirail_state.c \
	transport/multirail/multirail.c transport/multirail/multirail.h \
	transport/multirail/multirail_address.c \
	transport/multirail/multirail_connect.c \
	transport/multirail/multirail_connect_many.c \
	transport/multirail/multirail_failback.c \
	transport/multirail/multirail_failover.c \
	transport/multirail/multirail_mem.c \
	transport/multirail/multirail_record.c \
	transport/multirail/multirail_reorder.c \
	transport/multirail/multirail_send.c \
	transport/multirail/multirail_timeout.c \
	transport/multirail/multirail_wire.h
EXTRA_DIST += transport/multirail/README.md
