# SPDX-License-Identifier: BSD-3-Clause
if TRIB_EXAMPLES
noinst_LTLIBRARIES += libtasks.la
libtasks_la_SOURCES = \
	train/tasks/image.c \
	train/tasks/linear.c train/tasks/linear.h \
	train/tasks/lstm.c train/tasks/lstm.h \
	train/tasks/mnist.c train/tasks/mnist.h \
	train/tasks/network.c train/tasks/network.h \
	train/tasks/rows.h \
	train/tasks/shares.c train/tasks/shares.h \
	train/tasks/task.h \
	train/tasks/task_table.c \
	train/tasks/tasks.def \
	train/tasks/characters.c
libtasks_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd -fno-trapping-math $(OPENBLAS_CFLAGS) $(ZLIB_CFLAGS)
TASKS_LIBS = libtasks.la $(OPENBLAS_LIBS) $(ZLIB_LIBS) -lm
endif
EXTRA_DIST += train/tasks/README.md
