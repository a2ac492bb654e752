# SPDX-License-Identifier: BSD-3-Clause
#
# One module per MPI, from the same sources: handles are integers in MPICH and pointers in Open
# MPI. A module links its MPI, so a program that loads MPI with dlopen uses the same library.
mpi_sources = \
	base/text.c \
	bindings/mpi/argument_check.c bindings/mpi/argument_check.h \
	bindings/mpi/attached.c bindings/mpi/attached.h \
	bindings/mpi/call_kinds.def bindings/mpi/call_kinds.h \
	bindings/mpi/call_report.c bindings/mpi/call_report.h \
	bindings/mpi/calls_completion.c \
	bindings/mpi/calls_job.c \
	bindings/mpi/calls_counts.c \
	bindings/mpi/calls_move.c \
	bindings/mpi/calls_nonblocking.c \
	bindings/mpi/calls_reduce.c \
	bindings/mpi/codec_plans.c bindings/mpi/codec_plans.h \
	bindings/mpi/count_list.h \
	bindings/mpi/device_context.c bindings/mpi/device_context.h \
	bindings/mpi/element.c bindings/mpi/element.h \
	bindings/mpi/entry.h \
	bindings/mpi/failure_class.c bindings/mpi/failure_class.h \
	bindings/mpi/generic_reduce.c bindings/mpi/generic_reduce.h \
	bindings/mpi/idle_progress.c bindings/mpi/idle_progress.h \
	bindings/mpi/library_comm.c bindings/mpi/library_comm.h \
	bindings/mpi/module.c bindings/mpi/module.h \
	bindings/mpi/mpi_settings.c bindings/mpi/mpi_settings.h \
	bindings/mpi/next.c bindings/mpi/next.def bindings/mpi/next.h \
	bindings/mpi/packing.c bindings/mpi/packing.h \
	bindings/mpi/pending.c bindings/mpi/pending.h \
	bindings/mpi/preload_list.c bindings/mpi/preload_list.h \
	bindings/mpi/request_error.c bindings/mpi/request_error.h \
	bindings/mpi/settings.def \
	bindings/mpi/settings_agreement.c bindings/mpi/settings_agreement.h \
	bindings/mpi/side_choice.c bindings/mpi/side_choice.h \
	bindings/mpi/dispatch.c bindings/mpi/dispatch.h \
	bindings/mpi/type_layout.c bindings/mpi/type_layout.h \
	bindings/mpi/typemap.c bindings/mpi/typemap.h
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

bin_SCRIPTS += bindings/mpi/trib-mpi
EXTRA_DIST += bindings/mpi/README.md bindings/mpi/trib-mpi.in
CLEANFILES += bindings/mpi/trib-mpi
bindings/mpi/trib-mpi: bindings/mpi/trib-mpi.in Makefile
	$(AM_V_GEN)$(MKDIR_P) bindings/mpi && sed -e 's|@modules@|$(pkglibdir)|;s|@version@|$(VERSION)|' $(srcdir)/bindings/mpi/trib-mpi.in >$@.new && \
		chmod +x $@.new && mv $@.new $@
