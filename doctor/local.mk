# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libdoctor.la
libtributary_all_la_LIBADD += libdoctor.la
libdoctor_la_SOURCES = \
	doctor/doctor.c doctor/doctor_parts.h \
	doctor/doctor_consistency.c \
	doctor/doctor_host.c \
	doctor/doctor_pairs.c \
	doctor/doctor_report.c doctor/doctor_report.h
EXTRA_DIST += doctor/README.md
