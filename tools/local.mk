# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += trib-run
trib_run_SOURCES = tools/trib-run.c tools/run.h tools/run_output.c tools/run_ranks.c
trib_run_LDADD = libtributary.la -lm
