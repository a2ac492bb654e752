# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libdoctor.la
libtributary_all_la_LIBADD += libdoctor.la
libdoctor_la_SOURCES = \
	inspect/doctor/doctor.c inspect/doctor/doctor_parts.h \
	inspect/doctor/doctor_consistency.c \
	inspect/doctor/doctor_counters.c \
	inspect/doctor/doctor_host.c \
	inspect/doctor/doctor_pairs.c \
	inspect/doctor/doctor_report.c inspect/doctor/doctor_report.h
EXTRA_DIST += inspect/doctor/README.md
