# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += perf/trib-perf
noinst_PROGRAMS += perf/estimates
perf_estimates_SOURCES = perf/probes/estimates.c
perf_estimates_LDADD = libtributary-train.la libtributary.la -lm
# Calls the sums of plans, which libtributary hides.
noinst_PROGRAMS += perf/bounds
perf_bounds_SOURCES = perf/probes/bounds.c
perf_bounds_LDADD = libperf.la libtools.la libtributary_all.la $(TRIB_LIBS)
noinst_PROGRAMS += perf/cost perf/handed perf/probe perf/wan
noinst_LTLIBRARIES += libperf.la libput.la libcodecperf.la libaggperf.la libversus.la \
	libperfreport.la

# Shared by trib-perf, the probes and their tests; not part of libtributary.
libperf_la_SOURCES = \
	perf/coll/arguments.c perf/coll/arguments.h \
	perf/coll/calibrate.c perf/coll/calibrate.h \
	perf/coll/calibratefile.c \
	perf/coll/colls.h \
	perf/common/perf_interrupt.c perf/common/perf_interrupt.h \
	perf/coll/loss.c perf/coll/loss.h \
	perf/common/machine_json.c perf/common/machine_json.h \
	perf/coll/measure.c perf/coll/measure.h \
	perf/coll/wrong.c \
	perf/common/setters.c perf/common/setters.h \
	perf/coll/operation.c perf/coll/operation.h \
	perf/coll/perf_ranks.c perf/coll/perf_ranks.h \
	perf/common/perf_number.c perf/common/perf_number.h perf/common/perf_op.c perf/common/perf_op.h \
	perf/coll/perf_oracle.c perf/coll/perf_oracle.h \
	perf/common/columns.c perf/common/columns.h \
	perf/common/output.c perf/common/output.h \
	perf/coll/overlap_bounds.c perf/coll/overlap.h \
	perf/coll/pairs.c \
	perf/common/progress.c perf/common/progress.h \
	perf/common/samples.c perf/common/samples.h \
	perf/common/sizes.c perf/common/sizes.h \
	perf/common/smooth.c perf/common/smooth.h \
	perf/coll/writer.c perf/coll/writer.h
libperf_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

# trib-perf put works below the public API: it also links the hidden objects, after libtributary,
# so that public symbols are resolved only from libtributary.
libput_la_SOURCES = \
	perf/put/meet.c \
	perf/put/phases.c \
	perf/put/put.c perf/put/put.h \
	perf/put/putargs.c \
	perf/put/putreport.c \
	perf/put/endpoint.c perf/put/endpoint.h \
	perf/put/putsweep.c \
	perf/put/wire.c perf/put/wire.h
libput_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(XXHASH_CFLAGS)

# trib-perf codec does the same.
libcodecperf_la_SOURCES = \
	perf/codec/classes.c perf/codec/classes.h \
	perf/codec/codec_perf.c perf/codec/codec_perf.h \
	perf/codec/codecargs.c \
	perf/codec/codecreport.c \
	perf/codec/inputs.c \
	perf/codec/rates.c \
	perf/codec/stages_alone.c \
	perf/codec/work.c
libcodecperf_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

# trib-perf agg uses only the public API.
libaggperf_la_SOURCES = \
	perf/agg/agg.c perf/agg/agg.h \
	perf/agg/aggargs.c \
	perf/agg/aggreport.c \
	perf/agg/load_workers.c \
	perf/agg/load.c \
	perf/agg/results.c
libaggperf_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

# So do trib-perf groups, neighbors and store.
libversus_la_SOURCES = \
	perf/versus/versus.c perf/versus/versus.h \
	perf/versus/versus_options.c \
	perf/versus/versus_report.c \
	perf/versus/tensor_groups.c \
	perf/versus/neighbors.c \
	perf/versus/store_ways.c \
	perf/versus/vectors.c
libversus_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

# Output of results.
libperfreport_la_SOURCES = \
	perf/report/against.c \
	perf/report/html_page.c perf/report/html_page.h \
	perf/report/measured.c \
	perf/report/page_about.c \
	perf/report/page_across.c \
	perf/report/page_charts.c \
	perf/report/page_codecs.c \
	perf/report/page_lanes.c \
	perf/report/page_parts.h \
	perf/report/peers_launch.c perf/report/peers_launch.h \
	perf/report/peers_measure.c \
	perf/report/page_series.c \
	perf/report/perf_report.h \
	perf/report/report_commands.c \
	perf/report/result_file.c \
	perf/report/svg_chart.c perf/report/svg_chart.h \
	perf/report/svg_lanes.c perf/report/svg_lanes.h \
	perf/report/terminal_bars.c
libperfreport_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libperfreport_la_CPPFLAGS = $(AM_CPPFLAGS) -DTRIB_PEERS='"$(pkgdatadir)/perf/peers"'


PERF_LIBS = libperf.la libtools.la libtributary.la $(JANSSON_LIBS) -lm -lpthread
PUT_LIBS = libput.la $(PERF_LIBS) libboot.la libtransport.la libbase.la $(INIH_LIBS) \
	$(XXHASH_LIBS)
perf_trib_perf_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
perf_trib_perf_SOURCES = perf/trib-perf.c perf/coll/overlap_measure.c
perf_trib_perf_LDADD = libperfreport.la libversus.la libaggperf.la libcodecperf.la libcompress.la $(PUT_LIBS) $(HTSCODECS_LIBS)
perf_handed_SOURCES = perf/codec/handed.c
perf_handed_LDADD = libcompress.la $(PUT_LIBS) $(HTSCODECS_LIBS)
perf_cost_SOURCES = perf/codec/least_cost.c
perf_cost_LDADD = libcodecperf.la libcompress.la $(PUT_LIBS) $(HTSCODECS_LIBS)
perf_wan_SOURCES = perf/probes/wan.c
perf_probe_SOURCES = perf/probes/probe.c
perf_probe_LDADD = $(PERF_LIBS)

# trib-perf --peers builds these if the peers are installed.
peersdir = $(pkgdatadir)/perf/peers
dist_peers_DATA = \
	perf/peers/gloo_allreduce.cc \
	perf/peers/mpi_collectives.c \
	perf/peers/timing.h
dist_peers_SCRIPTS = perf/peers/peers.sh perf/peers/run-peer.sh

# The benches build the installed peers, each with its own compiler.
EXTRA_DIST += \
	perf/bench/allreduce.awk \
	perf/bench/allreduce.sh \
	perf/bench/codec.awk \
	perf/bench/codec.sh \
	perf/bench/collectives.sh \
	perf/bench/core.awk \
	perf/bench/core.sh \
	perf/bench/two_processes.sh \
	perf/bench/estimates.sh \
	perf/bench/hosts.awk \
	perf/bench/hosts.sh \
	perf/bench/put.awk \
	perf/bench/put.sh \
	perf/bench/results.awk \
	perf/bench/show.awk \
	perf/bench/rxe.awk \
	perf/bench/rxe.sh \
	perf/bench/coded.awk \
	perf/bench/auto.awk \
	perf/bench/auto.sh \
	perf/bench/cost.awk \
	perf/bench/cost.sh \
	perf/bench/mpi.awk \
	perf/bench/mpi.sh \
	perf/bench/coded.sh \
	perf/bench/overlap.awk \
	perf/bench/overlap.sh \
	perf/bench/service.awk \
	perf/bench/service.sh \
	perf/bench/sim.awk \
	perf/bench/sim.sh \
	perf/bench/torch-accuracy.awk \
	perf/bench/torch.awk \
	perf/bench/torch.sh \
	perf/bench/wan.awk \
	perf/bench/wan.sh \
	perf/bench/train.sh \
	perf/bench/tables.awk \
	perf/bench/driver.sh \
	perf/bench/between_hosts.sh \
	perf/peers/codec_torch.py \
	perf/peers/ddp_steps.py \
	perf/peers/mpi_sums.c \
	perf/bench/scaling.awk \
	perf/bench/scaling.sh
# Results of the benches; --write updates the tables between markers.
EXTRA_DIST += \
	perf/results/README.md \
	perf/results/allreduce.md \
	perf/results/auto.md \
	perf/results/calibrate.md \
	perf/results/codec-learning.md \
	perf/results/codec-selection.md \
	perf/results/codec.md \
	perf/results/coded.md \
	perf/results/collectives.md \
	perf/results/core.md \
	perf/results/cost.md \
	perf/results/elastic.md \
	perf/results/estimates.md \
	perf/results/hosts.md \
	perf/results/mpi.md \
	perf/results/overlap.md \
	perf/results/put.md \
	perf/results/rxe.md \
	perf/results/seal.md \
	perf/results/service.md \
	perf/results/store.md \
	perf/results/tcp.md \
	perf/results/torch.md \
	perf/results/training.md \
	perf/results/wan.md
EXTRA_DIST += perf/README.md \
	perf/agg/README.md \
	perf/bench/README.md \
	perf/versus/README.md \
	perf/codec/README.md \
	perf/coll/README.md \
	perf/common/README.md \
	perf/peers/README.md \
	perf/probes/README.md \
	perf/put/README.md \
	perf/report/README.md \
	perf/sim/README.md
