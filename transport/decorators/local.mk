# SPDX-License-Identifier: BSD-3-Clause
libtransport_la_SOURCES += \
	transport/decorators/decorator_table.c \
	transport/decorators/decorator.c transport/decorators/decorator.h \
	transport/decorators/decorator_faults.c \
	transport/decorators/decorator_trace.c \
	transport/decorators/decorators.h
EXTRA_DIST += transport/decorators/README.md
