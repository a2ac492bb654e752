# SPDX-License-Identifier: BSD-3-Clause
libservice_la_SOURCES += \
	agg/jobs/limits.c \
	agg/jobs/drr.c agg/jobs/drr.h \
	agg/jobs/jobs.c agg/jobs/jobs.h \
	agg/jobs/jobs_admit.c \
	agg/jobs/jobs_fair.c \
	agg/jobs/jobs_table.h \
	agg/jobs/jobs_text.c
EXTRA_DIST += agg/jobs/README.md
