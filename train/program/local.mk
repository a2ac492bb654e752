# SPDX-License-Identifier: BSD-3-Clause
if TRIB_EXAMPLES
bin_PROGRAMS += train/program/trib-train
train_program_trib_train_SOURCES = \
	train/program/compare.c train/program/compare.h \
	train/program/compare_links.c \
	train/program/compare_parts.h \
	train/program/compare_plot.c \
	train/program/compare_rows.c train/program/compare_rows.h \
	train/program/compare_rows.def \
	train/program/compare_run.c \
	train/program/compare_stragglers.c \
	train/program/compare_tell.c \
	train/program/hosts.c train/program/hosts.h \
	train/program/own_tribd.c train/program/own_tribd.h \
	train/program/progress_line.c train/program/progress_line.h \
	train/program/record.c train/program/record.h \
	train/program/text_grid.c train/program/text_grid.h \
	train/program/train_args.c train/program/train_args.h \
	train/program/train_coded.h \
	train/program/train_comm.c train/program/train_comm.h \
	train/program/train_figures.c \
	train/program/train_files.c \
	train/program/train_list.c train/program/train_list.h \
	train/program/train_replicas.c train/program/train_replicas.h \
	train/program/train_pace.c train/program/train_pace.h \
	train/program/train_run.c train/program/train_run.h \
	train/program/train_start.c train/program/train_start.h \
	train/program/train_table.c train/program/train_table.h \
	train/program/train_texts.c train/program/train_texts.h \
	train/program/train_until.c train/program/train_until.h \
	train/program/trib-train.c
if TRIB_ISAL
train_program_trib_train_SOURCES += train/program/train_coded.c
else
train_program_trib_train_SOURCES += train/program/train_uncoded.c
endif
train_program_trib_train_CFLAGS = $(AM_CFLAGS) $(OPENBLAS_CFLAGS) $(JANSSON_CFLAGS)
train_program_trib_train_LDADD = $(TASKS_LIBS) libtrain.la libtrain_base.la \
	libtools.la libtributary.la $(JANSSON_LIBS) $(XXHASH_LIBS) -lm
endif
EXTRA_DIST += train/program/README.md
