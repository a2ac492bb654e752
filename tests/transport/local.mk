# SPDX-License-Identifier: BSD-3-Clause
transport_tests = \
	tests/transport/test_auto \
	tests/transport/test_conformance \
	tests/transport/test_pulse \
	tests/transport/test_shm \
	tests/transport/test_tcp_connect \
	tests/transport/test_tcp_listen \
	tests/transport/test_transport \
	tests/transport/test_wrap
check_PROGRAMS += $(transport_tests)
TESTS += $(transport_tests)
tests_transport_test_auto_SOURCES = tests/transport/test_auto.c tests/transport/pair.h
tests_transport_test_conformance_SOURCES = \
	tests/transport/test_conformance.c \
	tests/transport/conformance.c tests/transport/conformance.h \
	tests/transport/conformance_data.c \
	tests/transport/conformance_life.c \
	tests/harness/spawn.c tests/harness/spawn.h
tests_transport_test_pulse_SOURCES = tests/transport/test_pulse.c
tests_transport_test_shm_SOURCES = \
	tests/transport/test_shm.c tests/transport/pair.h \
	tests/harness/spawn.c tests/harness/spawn.h
tests_transport_test_tcp_connect_SOURCES = \
	tests/transport/test_tcp_connect.c tests/transport/pair.h
tests_transport_test_tcp_listen_SOURCES = \
	tests/transport/test_tcp_listen.c tests/transport/pair.h
tests_transport_test_transport_SOURCES = \
	tests/transport/test_transport.c tests/transport/pair.h
tests_transport_test_wrap_SOURCES = tests/transport/test_wrap.c tests/transport/pair.h
