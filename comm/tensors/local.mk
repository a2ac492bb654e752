# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libtensors.la
libtributary_all_la_LIBADD += libtensors.la
libtensors_la_SOURCES = \
	comm/tensors/bucket_plans.c \
	comm/tensors/bucket_packing.c \
	comm/tensors/cycle.c \
	comm/tensors/group_compare.c \
	comm/tensors/group_report.c \
	comm/tensors/group_describe.c comm/tensors/group_describe.h \
	comm/tensors/group_move.c \
	comm/tensors/group_notify.c \
	comm/tensors/group_state.c \
	comm/tensors/group_take.c \
	comm/tensors/step.c \
	comm/tensors/tensor_group.c comm/tensors/tensor_group.h
EXTRA_DIST += comm/tensors/README.md
