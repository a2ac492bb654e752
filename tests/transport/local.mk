# SPDX-License-Identifier: BSD-3-Clause
transport_tests = \
	tests/transport/test_auto \
	tests/transport/test_conformance \
	tests/transport/test_handout \
	tests/transport/test_own_memory \
	tests/transport/test_pulse \
	tests/transport/test_rails \
	tests/transport/test_record \
	tests/transport/test_region_table \
	tests/transport/test_shm \
	tests/transport/test_shm_guard \
	tests/transport/test_tcp_both_ways \
	tests/transport/test_tcp_connect \
	tests/transport/test_tcp_listen \
	tests/transport/test_tcp_receive \
	tests/transport/test_tcp_seal \
	tests/transport/test_transport \
	tests/transport/test_verbs_gid \
	tests/transport/test_wrap
check_PROGRAMS += $(transport_tests)
TESTS += $(transport_tests)
tests_transport_test_auto_SOURCES = tests/transport/test_auto.c tests/transport/pair.h
conformance_sources = \
	tests/transport/conformance.c tests/transport/conformance.h \
	tests/transport/conformance_data.c \
	tests/transport/conformance_life.c \
	tests/transport/conformance_main.c \
	tests/harness/spawn.c tests/harness/spawn.h
tests_transport_test_conformance_SOURCES = \
	tests/transport/test_conformance.c $(conformance_sources)
tests_transport_test_handout_SOURCES = tests/transport/test_handout.c
tests_transport_test_own_memory_SOURCES = tests/transport/test_own_memory.c
tests_transport_test_pulse_SOURCES = tests/transport/test_pulse.c
tests_transport_test_rails_SOURCES = \
	tests/transport/test_rails.c tests/transport/rails_rig.h tests/transport/pair.h \
	tests/harness/draw.h
tests_transport_test_record_SOURCES = tests/transport/test_record.c
tests_transport_test_region_table_SOURCES = tests/transport/test_region_table.c
tests_transport_test_shm_SOURCES = \
	tests/transport/test_shm.c tests/transport/pair.h \
	tests/harness/spawn.c tests/harness/spawn.h
tests_transport_test_shm_guard_SOURCES = \
	tests/transport/test_shm_guard.c tests/transport/pair.h
tests_transport_test_tcp_both_ways_SOURCES = \
	tests/transport/test_tcp_both_ways.c tests/transport/pair.h
tests_transport_test_tcp_connect_SOURCES = \
	tests/transport/test_tcp_connect.c tests/transport/pair.h
tests_transport_test_tcp_listen_SOURCES = \
	tests/transport/test_tcp_listen.c tests/transport/pair.h
tests_transport_test_tcp_receive_SOURCES = \
	tests/transport/test_tcp_receive.c tests/transport/pair.h
tests_transport_test_tcp_seal_SOURCES = \
	tests/transport/test_tcp_seal.c tests/transport/wiretap.h tests/transport/pair.h
tests_transport_test_transport_SOURCES = \
	tests/transport/test_transport.c tests/transport/pair.h
tests_transport_test_verbs_gid_SOURCES = tests/transport/test_verbs_gid.c
tests_transport_test_wrap_SOURCES = tests/transport/test_wrap.c tests/transport/pair.h
if TRIB_UCX
check_PROGRAMS += tests/transport/test_ucx
TESTS += tests/transport/test_ucx
tests_transport_test_ucx_SOURCES = tests/transport/test_ucx.c tests/transport/pair.h
endif
if TRIB_VERBS
verbs_tests = \
	tests/transport/test_auto_verbs \
	tests/transport/test_verbs \
	tests/transport/test_verbs_conformance \
	tests/transport/test_verbs_dial \
	tests/transport/test_verbs_life \
	tests/transport/test_verbs_rails
check_PROGRAMS += $(verbs_tests)
TESTS += $(verbs_tests)
fake_verbs_sources = \
	tests/harness/fake_hub.h \
	tests/harness/fake_queues.c \
	tests/harness/fake_rdmacm.c \
	tests/harness/fake_verbs.c tests/harness/fake_verbs.h
tests_transport_test_auto_verbs_SOURCES = \
	tests/transport/test_auto_verbs.c tests/transport/pair.h $(fake_verbs_sources)
tests_transport_test_verbs_SOURCES = \
	tests/transport/test_verbs.c tests/transport/pair.h tests/transport/verbs_pair.h \
	$(fake_verbs_sources)
tests_transport_test_verbs_dial_SOURCES = \
	tests/transport/test_verbs_dial.c tests/transport/pair.h \
	tests/transport/verbs_pair.h $(fake_verbs_sources)
tests_transport_test_verbs_life_SOURCES = \
	tests/transport/test_verbs_life.c tests/transport/pair.h \
	tests/transport/verbs_pair.h $(fake_verbs_sources)
tests_transport_test_verbs_rails_SOURCES = \
	tests/transport/test_verbs_rails.c tests/transport/pair.h $(fake_verbs_sources)
tests_transport_test_verbs_conformance_SOURCES = \
	tests/transport/test_verbs_conformance.c $(conformance_sources) \
	$(fake_verbs_sources)
endif
