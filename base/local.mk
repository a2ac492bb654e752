# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libbase.la
libtributary_all_la_LIBADD += libbase.la
libbase_la_SOURCES = \
	base/accept.c base/accept.h \
	base/acceptor.c base/acceptor.h \
	base/addresses.c base/addresses.h \
	base/cache_counts.c base/cache_counts.h \
	base/cgroup.c base/cgroup.h \
	base/config.c base/config.def base/config.h base/config_report.h \
	base/config_rows.c base/config_rows.h \
	base/cpu.c base/cpu.h \
	base/dial.c base/dial.h \
	base/digest.h \
	base/dtype.h \
	base/error.c base/error.h \
	base/fd.c base/fd.h \
	base/file.c base/file.h \
	base/fpenv.h \
	base/freezer.c base/freezer.h \
	base/host.c base/host.h \
	base/idle_function.c base/idle_function.h \
	base/ini.c base/ini.h \
	base/keyed_text.c base/keyed_text.h \
	base/library.c base/library.h \
	base/log.c base/log.h \
	base/log_pace.c base/log_pace.h \
	base/log_write.c base/log_write.h \
	base/minmax.h \
	base/map_watch.c base/map_watch.h \
	base/memfd.c base/memfd.h \
	base/meminfo.c base/meminfo.h \
	base/memlock.c base/memlock.h \
	base/number.c base/number.h \
	base/numa.c base/numa.h \
	base/plain.c base/plain.h \
	base/process.c base/process.h \
	base/proof.c base/proof.h \
	base/rdma_counters.c base/rdma_counters.def base/rdma_counters.h \
	base/release.c base/release.h \
	base/quiet.c base/quiet.h \
	base/quota.c base/quota.h \
	base/rng.h \
	base/secret.c base/secret.h \
	base/sections.c base/sections.h \
	base/sized.c base/sized.h \
	base/snapshot.h \
	base/sockets.c base/sockets.h \
	base/sodium.c base/sodium.h \
	base/spin_lock.c base/spin_lock.h \
	base/state_page.c base/state_page.h \
	base/status.c \
	base/unauthenticated.c base/unauthenticated.h \
	base/text.c base/text.h \
	base/time.h \
	base/token_bucket.h \
	base/trace.c base/trace.h \
	base/trace_dump.c \
	base/types.c \
	base/wait.c base/wait.h \
	base/workers.c base/workers.h
libbase_la_CFLAGS = $(AM_CFLAGS) $(INIH_CFLAGS) $(XXHASH_CFLAGS)
EXTRA_DIST += base/README.md
