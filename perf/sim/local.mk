# SPDX-License-Identifier: BSD-3-Clause
noinst_PROGRAMS += perf/sim/trib-sim

# trib-sim builds plans without running them, so it links objects that libtributary hides.
perf_sim_trib_sim_SOURCES = \
	perf/sim/sim.h \
	perf/sim/sim_args.c \
	perf/sim/sim_cost.c \
	perf/sim/sim_plan.c perf/sim/sim_plan.h \
	perf/sim/sim_port.c perf/sim/sim_port.h \
	perf/sim/sim_rank.c perf/sim/sim_rank.h \
	perf/sim/sim_replay.c \
	perf/sim/sim_run.c \
	perf/sim/sim_shape.c \
	perf/sim/sim_write.c \
	perf/sim/simnet.cc perf/sim/simnet.h \
	perf/sim/trib-sim.c
perf_sim_trib_sim_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
# gcc 12 falsely reports a default function of SimGrid as uninitialised.
perf_sim_trib_sim_CXXFLAGS = -std=gnu++17 -Wall -Wextra -Wno-maybe-uninitialized $(SIMGRID_CFLAGS)
perf_sim_trib_sim_LDADD = libperf.la libtools.la libtributary_all.la $(TRIB_LIBS) $(SIMGRID_LIBS)
