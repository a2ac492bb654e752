# SPDX-License-Identifier: BSD-3-Clause
transport_tests = \
	tests/transport/test_conformance
check_PROGRAMS += $(transport_tests)
TESTS += $(transport_tests)
tests_transport_test_conformance_SOURCES = \
	tests/transport/test_conformance.c \
	tests/transport/conformance.c tests/transport/conformance.h \
	tests/transport/conformance_data.c \
	tests/transport/conformance_life.c \
	tests/harness/spawn.c tests/harness/spawn.h
