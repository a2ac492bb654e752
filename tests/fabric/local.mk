# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/fabric/README.md tests/fabric/fabric.sh
if TRIB_VERBS
# In the place of libibverbs and librdmacm; never installed.
check_LTLIBRARIES += tests/fabric/libfabric.la
tests_fabric_libfabric_la_SOURCES = tests/fabric/fabric_library.c tests/fabric/fabric_paths.c \
	tests/fabric/fabric_paths.h $(fake_verbs_sources)
# Its symbols are those of libibverbs and librdmacm.
tests_fabric_libfabric_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
tests_fabric_libfabric_la_LIBADD = libbase.la -lpthread -ldl
tests_fabric_libfabric_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
check_PROGRAMS += tests/fabric/fabric
tests_fabric_fabric_SOURCES = tests/fabric/fabric_file.c tests/fabric/fabric_settings.c \
	tests/fabric/fabric_settings.h $(fake_verbs_sources)
tests_fabric_fabric_LDADD = libbase.la -lpthread
check_tests += tests/fabric/test_fabric_device
tests_fabric_test_fabric_device_SOURCES = tests/fabric/test_fabric_device.c tests/fabric/fabric_end.h \
	$(fake_verbs_sources)
check_tests += tests/fabric/test_fabric_rails
tests_fabric_test_fabric_rails_SOURCES = tests/fabric/test_fabric_rails.c $(conformance_sources) $(fake_verbs_sources)
check_tests += tests/fabric/test_fabric_ranks
tests_fabric_test_fabric_ranks_SOURCES = tests/fabric/test_fabric_ranks.c $(fake_verbs_sources)
check_scripts += tests/fabric/test_fabric.sh
endif
