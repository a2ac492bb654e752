# SPDX-License-Identifier: BSD-3-Clause
transport_tests = \
	tests/transport/auto/test_auto \
	tests/transport/test_conformance \
	tests/transport/common/test_handout \
	tests/transport/common/test_guard \
	tests/transport/common/test_handout_ask \
	tests/transport/common/test_ip_endpoint \
	tests/transport/common/test_net_addr \
	tests/transport/common/test_net_fence \
	tests/transport/common/test_net_ways \
	tests/transport/common/test_op_defaults \
	tests/transport/common/test_peer \
	tests/transport/common/test_peer_liveness \
	tests/transport/common/test_segment \
	tests/transport/common/test_own_memory \
	tests/transport/common/test_heartbeat \
	tests/transport/common/test_absence \
	tests/transport/multirail/test_multirail \
	tests/transport/common/test_sealed_record \
	tests/transport/common/test_region_table \
	tests/transport/shm/test_shm \
	tests/transport/shm/test_shm_guard \
	tests/transport/tcp/test_tcp_borrow \
	tests/transport/tcp/test_tcp_duplex \
	tests/transport/tcp/test_tcp_connect \
	tests/transport/tcp/test_tcp_listen \
	tests/transport/tcp/test_tcp_proof \
	tests/transport/tcp/test_tcp_receive \
	tests/transport/tcp/test_tcp_seal \
	tests/transport/test_transport \
	tests/transport/verbs/test_verbs_gid_select \
	tests/transport/decorators/test_decorators
check_PROGRAMS += $(transport_tests)
TESTS += $(transport_tests)
tests_transport_auto_test_auto_SOURCES = tests/transport/auto/test_auto.c tests/transport/pair.h
conformance_sources = \
	tests/transport/conformance.c tests/transport/conformance.h \
	tests/transport/conformance_data.c \
	tests/transport/conformance_life.c \
	tests/transport/conformance_main.c \
	tests/harness/spawn.c tests/harness/spawn.h
tests_transport_test_conformance_SOURCES = \
	tests/transport/test_conformance.c $(conformance_sources)
tests_transport_common_test_handout_SOURCES = tests/transport/common/test_handout.c
tests_transport_common_test_guard_SOURCES = tests/transport/common/test_guard.c
tests_transport_common_test_handout_ask_SOURCES = tests/transport/common/test_handout_ask.c
tests_transport_common_test_ip_endpoint_SOURCES = tests/transport/common/test_ip_endpoint.c
tests_transport_common_test_net_addr_SOURCES = tests/transport/common/test_net_addr.c tests/transport/connect_to.h
tests_transport_common_test_net_fence_SOURCES = tests/transport/common/test_net_fence.c
tests_transport_common_test_net_ways_SOURCES = tests/transport/common/test_net_ways.c
tests_transport_common_test_op_defaults_SOURCES = tests/transport/common/test_op_defaults.c
tests_transport_common_test_peer_SOURCES = tests/transport/common/test_peer.c
tests_transport_common_test_peer_liveness_SOURCES = tests/transport/common/test_peer_liveness.c
tests_transport_common_test_segment_SOURCES = tests/transport/common/test_segment.c
tests_transport_common_test_own_memory_SOURCES = tests/transport/common/test_own_memory.c
tests_transport_common_test_absence_SOURCES = tests/transport/common/test_absence.c
tests_transport_common_test_heartbeat_SOURCES = tests/transport/common/test_heartbeat.c
tests_transport_multirail_test_multirail_SOURCES = \
	tests/transport/multirail/test_multirail.c tests/transport/multirail/multirail_rig.h tests/transport/pair.h \
	tests/harness/rng_draw.h
tests_transport_common_test_sealed_record_SOURCES = tests/transport/common/test_sealed_record.c
tests_transport_common_test_region_table_SOURCES = tests/transport/common/test_region_table.c
tests_transport_shm_test_shm_SOURCES = \
	tests/transport/shm/test_shm.c tests/transport/pair.h \
	tests/harness/spawn.c tests/harness/spawn.h
tests_transport_shm_test_shm_guard_SOURCES = \
	tests/transport/shm/test_shm_guard.c tests/transport/shm/shm_guard_rig.h tests/transport/pair.h
tests_transport_tcp_test_tcp_borrow_SOURCES = \
	tests/transport/tcp/test_tcp_borrow.c tests/transport/pair.h
tests_transport_tcp_test_tcp_duplex_SOURCES = \
	tests/transport/tcp/test_tcp_duplex.c tests/transport/pair.h
tests_transport_tcp_test_tcp_connect_SOURCES = \
	tests/transport/tcp/test_tcp_connect.c tests/transport/pair.h
tests_transport_tcp_test_tcp_listen_SOURCES = \
	tests/transport/tcp/test_tcp_listen.c tests/transport/tcp/tcp_by_hand.h tests/transport/pair.h
tests_transport_tcp_test_tcp_proof_SOURCES = \
	tests/transport/tcp/test_tcp_proof.c tests/transport/tcp/tcp_by_hand.h tests/transport/pair.h
tests_transport_tcp_test_tcp_receive_SOURCES = \
	tests/transport/tcp/test_tcp_receive.c tests/transport/pair.h
tests_transport_tcp_test_tcp_seal_SOURCES = \
	tests/transport/tcp/test_tcp_seal.c tests/transport/tcp/wiretap.h tests/transport/pair.h
tests_transport_test_transport_SOURCES = \
	tests/transport/test_transport.c tests/transport/pair.h
tests_transport_verbs_test_verbs_gid_select_SOURCES = tests/transport/verbs/test_verbs_gid_select.c
tests_transport_decorators_test_decorators_SOURCES = tests/transport/decorators/test_decorators.c tests/transport/pair.h
if TRIB_UCX
check_PROGRAMS += tests/transport/ucx/test_ucx
TESTS += tests/transport/ucx/test_ucx
tests_transport_ucx_test_ucx_SOURCES = tests/transport/ucx/test_ucx.c tests/transport/pair.h
endif
if TRIB_VERBS
verbs_tests = \
	tests/transport/auto/test_auto_mem \
	tests/transport/auto/test_auto_verbs \
	tests/transport/verbs/test_verbs \
	tests/transport/verbs/test_verbs_conformance \
	tests/transport/verbs/test_verbs_connect \
	tests/transport/verbs/test_verbs_oob_connect \
	tests/transport/verbs/test_verbs_oob_listener \
	tests/transport/verbs/test_verbs_liveness \
	tests/transport/verbs/test_verbs_multiport
check_PROGRAMS += $(verbs_tests)
TESTS += $(verbs_tests)
fake_verbs_sources = \
	tests/harness/fake_hub.h \
	tests/harness/fake_cq.c \
	tests/harness/fake_memory.c \
	tests/harness/fake_queues.c \
	tests/harness/fake_rdmacm.c \
	tests/harness/fake_verbs.c tests/harness/fake_verbs.h
tests_transport_auto_test_auto_verbs_SOURCES = \
	tests/transport/auto/test_auto_verbs.c tests/transport/auto/auto_verbs_rig.h \
	tests/transport/pair.h $(fake_verbs_sources)
tests_transport_auto_test_auto_mem_SOURCES = \
	tests/transport/auto/test_auto_mem.c tests/transport/auto/auto_verbs_rig.h \
	tests/transport/pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_SOURCES = \
	tests/transport/verbs/test_verbs.c tests/transport/pair.h tests/transport/verbs/verbs_pair.h \
	$(fake_verbs_sources)
tests_transport_verbs_test_verbs_connect_SOURCES = \
	tests/transport/verbs/test_verbs_connect.c tests/transport/pair.h \
	tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
verbs_oob_pair = tests/transport/pair.h tests/transport/verbs/verbs_pair.h \
	tests/transport/verbs/verbs_oob_pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_oob_connect_SOURCES = \
	tests/transport/verbs/test_verbs_oob_connect.c $(verbs_oob_pair)
tests_transport_verbs_test_verbs_oob_listener_SOURCES = \
	tests/transport/verbs/test_verbs_oob_listener.c $(verbs_oob_pair)
tests_transport_verbs_test_verbs_liveness_SOURCES = \
	tests/transport/verbs/test_verbs_liveness.c tests/transport/pair.h \
	tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_multiport_SOURCES = \
	tests/transport/verbs/test_verbs_multiport.c tests/transport/pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_conformance_SOURCES = \
	tests/transport/verbs/test_verbs_conformance.c $(conformance_sources) \
	$(fake_verbs_sources)
endif
