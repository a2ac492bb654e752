# SPDX-License-Identifier: BSD-3-Clause
libtrain_la_SOURCES += \
	train/strategies/async_push_sum.c \
	train/strategies/easgd.c \
	train/strategies/election.c train/strategies/election.h \
	train/strategies/lsgd.c \
	train/strategies/local_steps.c \
	train/strategies/pipe.c \
	train/strategies/push_sum.c \
	train/strategies/push_weight.c train/strategies/push_weight.h \
	train/strategies/parameter_server.c \
	train/strategies/sync.c
EXTRA_DIST += train/strategies/README.md
