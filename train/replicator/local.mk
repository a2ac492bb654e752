# SPDX-License-Identifier: BSD-3-Clause
libtrain_la_SOURCES += \
	train/replicator/kinds.def \
	train/replicator/ordered_sum.c \
	train/replicator/replica.c train/replicator/replica.h \
	train/replicator/replica_input.c \
	train/replicator/replica_map.c \
	train/replicator/replica_train.c \
	train/replicator/replicator.c \
	train/replicator/replicator_kind.c train/replicator/replicator_kind.h
EXTRA_DIST += train/replicator/README.md
