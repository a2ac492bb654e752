# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libtensors.la
libtributary_all_la_LIBADD += libtensors.la
libtensors_la_SOURCES = \
	tensors/bucket_plans.c \
	tensors/bucket_packing.c \
	tensors/cycle.c \
	tensors/group_compare.c \
	tensors/group_report.c \
	tensors/group_describe.c tensors/group_describe.h \
	tensors/group_move.c \
	tensors/group_notify.c \
	tensors/group_state.c \
	tensors/group_take.c \
	tensors/step.c \
	tensors/tensor_group.c tensors/tensor_group.h
EXTRA_DIST += tensors/README.md
