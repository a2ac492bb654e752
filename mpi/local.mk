# SPDX-License-Identifier: BSD-3-Clause
#
# One module per MPI, from the same sources: handles are integers in MPICH and pointers in Open
# MPI. A module links its MPI, so a program that loads MPI with dlopen uses the same library.
mpi_sources = \
	base/text.c \
	mpi/wrong_calls.c mpi/wrong_calls.h \
	mpi/attached.c mpi/attached.h \
	mpi/call_kinds.def mpi/call_kinds.h \
	mpi/call_report.c mpi/call_report.h \
	mpi/calls_completion.c \
	mpi/calls_job.c \
	mpi/calls_counts.c \
	mpi/calls_move.c \
	mpi/calls_nonblocking.c \
	mpi/calls_reduce.c \
	mpi/codec_plans.c mpi/codec_plans.h \
	mpi/count_list.h \
	mpi/device_context.c mpi/device_context.h \
	mpi/element.c mpi/element.h \
	mpi/entry.h \
	mpi/failure_class.c mpi/failure_class.h \
	mpi/generic_reduce.c mpi/generic_reduce.h \
	mpi/idle_progress.c mpi/idle_progress.h \
	mpi/library_comm.c mpi/library_comm.h \
	mpi/mpi_settings.c mpi/mpi_settings.h \
	mpi/next.c mpi/next.def mpi/next.h \
	mpi/packing.c mpi/packing.h \
	mpi/pending.c mpi/pending.h \
	mpi/preload_list.c mpi/preload_list.h \
	mpi/request_error.c mpi/request_error.h \
	mpi/settings.def \
	mpi/side_choice.c mpi/side_choice.h \
	mpi/turn.c mpi/turn.h \
	mpi/type_layout.c mpi/type_layout.h \
	mpi/typemap.c mpi/typemap.h
mpi_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared
mpi_cflags = $(AM_CFLAGS) -fvisibility=hidden -ftls-model=initial-exec

pkglib_LTLIBRARIES =
if TRIB_OPENMPI
pkglib_LTLIBRARIES += libtributary_mpi-openmpi.la
libtributary_mpi_openmpi_la_SOURCES = $(mpi_sources)
libtributary_mpi_openmpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(OPENMPI_SYSTEM)
libtributary_mpi_openmpi_la_CFLAGS = $(mpi_cflags)
libtributary_mpi_openmpi_la_LDFLAGS = $(mpi_ldflags)
libtributary_mpi_openmpi_la_LIBADD = libtributary.la $(OPENMPI_LIBS)
endif
if TRIB_MPICH
pkglib_LTLIBRARIES += libtributary_mpi-mpich.la
libtributary_mpi_mpich_la_SOURCES = $(mpi_sources)
libtributary_mpi_mpich_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPICH_SYSTEM)
libtributary_mpi_mpich_la_CFLAGS = $(mpi_cflags)
# The module references no symbol of MPICH directly, so the linker would drop the library.
libtributary_mpi_mpich_la_LDFLAGS = $(mpi_ldflags) $(filter -L%,$(MPICH_LIBS)) \
	-Wl,--push-state,--no-as-needed,$(firstword $(filter -lmpi%,$(MPICH_LIBS))),--pop-state
libtributary_mpi_mpich_la_LIBADD = libtributary.la
endif

bin_SCRIPTS += mpi/trib-mpi
EXTRA_DIST += mpi/README.md mpi/trib-mpi.in
CLEANFILES += mpi/trib-mpi
mpi/trib-mpi: mpi/trib-mpi.in Makefile
	$(AM_V_GEN)$(MKDIR_P) mpi && sed -e 's|@modules@|$(pkglibdir)|;s|@version@|$(VERSION)|' $(srcdir)/mpi/trib-mpi.in >$@.new && \
		chmod +x $@.new && mv $@.new $@
