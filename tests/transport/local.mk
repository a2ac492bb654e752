# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/transport/auto/test_auto tests/transport/common/test_absence tests/transport/common/test_guard \
	tests/transport/common/test_handout tests/transport/common/test_handout_ask tests/transport/common/test_heartbeat \
	tests/transport/common/test_ip_endpoint tests/transport/common/test_net_addr tests/transport/common/test_net_fence \
	tests/transport/common/test_net_ways tests/transport/common/test_op_defaults tests/transport/common/test_own_memory \
	tests/transport/common/test_peer tests/transport/common/test_peer_liveness tests/transport/common/test_region_table \
	tests/transport/common/test_sealed_record tests/transport/common/test_segment \
	tests/transport/decorators/test_decorators tests/transport/multirail/test_multirail tests/transport/shm/test_shm \
	tests/transport/shm/test_shm_guard tests/transport/tcp/test_tcp_borrow tests/transport/tcp/test_tcp_connect \
	tests/transport/tcp/test_tcp_duplex tests/transport/tcp/test_tcp_listen tests/transport/tcp/test_tcp_proof \
	tests/transport/tcp/test_tcp_receive tests/transport/tcp/test_tcp_seal tests/transport/test_conformance \
	tests/transport/test_transport tests/transport/verbs/test_verbs_gid_select
conformance_sources = tests/transport/conformance.c tests/transport/conformance.h tests/transport/conformance_data.c tests/transport/conformance_detach.c \
	tests/transport/conformance_life.c tests/transport/conformance_main.c
tests_transport_test_conformance_SOURCES = tests/transport/test_conformance.c $(conformance_sources)
if TRIB_UCX
check_tests += tests/transport/ucx/test_ucx tests/transport/ucx/test_ucx_proof
endif
if TRIB_VERBS
check_tests += tests/transport/auto/test_auto_mem tests/transport/auto/test_auto_verbs \
	tests/transport/verbs/test_verbs tests/transport/verbs/test_verbs_adapter tests/transport/verbs/test_verbs_cache \
	tests/transport/verbs/test_verbs_cache_limits \
	tests/transport/verbs/test_verbs_conformance \
	tests/transport/verbs/test_verbs_conformance_no_srq tests/transport/verbs/test_verbs_conformance_rails \
	tests/transport/verbs/test_verbs_connect tests/transport/verbs/test_verbs_connect_many \
	tests/transport/verbs/test_verbs_failback tests/transport/verbs/test_verbs_final_loss \
	tests/transport/verbs/test_verbs_liveness \
	tests/transport/verbs/test_verbs_multiport tests/transport/verbs/test_verbs_oob_connect \
	tests/transport/verbs/test_verbs_oob_listener tests/transport/verbs/test_verbs_posts \
	tests/transport/verbs/test_verbs_select tests/transport/verbs/test_verbs_shared \
	tests/transport/verbs/test_verbs_traffic
fake_verbs_sources = tests/harness/fake_hub.h tests/harness/fake_async.c tests/harness/fake_cm.h \
	tests/harness/fake_cm_id.c tests/harness/fake_clock.c tests/harness/fake_cq.c tests/harness/fake_fabric.c tests/harness/fake_links.c \
	tests/harness/fake_memory.c tests/harness/fake_places.c tests/harness/fake_ports.c \
	tests/harness/fake_queue.h tests/harness/fake_queues.c tests/harness/fake_rdmacm.c \
	tests/harness/fake_requests.c tests/harness/fake_srq.c tests/harness/fake_sysfs.c \
	tests/harness/fake_pages.c tests/harness/fake_pages.h tests/harness/fake_verbs.c tests/harness/fake_verbs.h
tests_transport_auto_test_auto_verbs_SOURCES = tests/transport/auto/test_auto_verbs.c \
	tests/transport/auto/auto_verbs_rig.h tests/transport/pair.h $(fake_verbs_sources)
tests_transport_auto_test_auto_mem_SOURCES = tests/transport/auto/test_auto_mem.c \
	tests/transport/auto/auto_verbs_rig.h tests/transport/pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_SOURCES = tests/transport/verbs/test_verbs.c tests/transport/pair.h \
	tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_connect_SOURCES = tests/transport/verbs/test_verbs_connect.c tests/transport/pair.h \
	tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
verbs_cache_scene = tests/transport/pair.h tests/transport/verbs/verbs_cache_scene.h \
	tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_cache_SOURCES = tests/transport/verbs/test_verbs_cache.c $(verbs_cache_scene)
tests_transport_verbs_test_verbs_cache_limits_SOURCES = tests/transport/verbs/test_verbs_cache_limits.c $(verbs_cache_scene)
tests_transport_verbs_test_verbs_connect_many_SOURCES = tests/transport/verbs/test_verbs_connect_many.c \
	tests/transport/pair.h tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_adapter_SOURCES = tests/transport/verbs/test_verbs_adapter.c
tests_transport_verbs_test_verbs_shared_SOURCES = tests/transport/verbs/test_verbs_shared.c tests/transport/pair.h \
	tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
verbs_oob_pair = tests/transport/pair.h tests/transport/verbs/verbs_pair.h tests/transport/verbs/verbs_oob_pair.h \
	$(fake_verbs_sources)
tests_transport_verbs_test_verbs_oob_connect_SOURCES = tests/transport/verbs/test_verbs_oob_connect.c \
	$(verbs_oob_pair)
tests_transport_verbs_test_verbs_oob_listener_SOURCES = tests/transport/verbs/test_verbs_oob_listener.c \
	$(verbs_oob_pair)
check_PROGRAMS += tests/transport/verbs/verbs_post_loop
tests_transport_verbs_verbs_post_loop_SOURCES = tests/transport/verbs/verbs_post_loop.c tests/transport/pair.h \
	tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
check_scripts += tests/transport/verbs/test_verbs_cost.sh
tests_transport_verbs_test_verbs_posts_SOURCES = tests/transport/verbs/test_verbs_posts.c tests/transport/pair.h \
	tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_traffic_SOURCES = tests/transport/verbs/test_verbs_traffic.c \
	$(verbs_oob_pair)
tests_transport_verbs_test_verbs_liveness_SOURCES = tests/transport/verbs/test_verbs_liveness.c tests/transport/pair.h \
	tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_failback_SOURCES = tests/transport/verbs/test_verbs_failback.c tests/transport/pair.h \
	tests/transport/verbs/failback_rig.h tests/transport/verbs/verbs_pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_final_loss_SOURCES = tests/transport/verbs/test_verbs_final_loss.c \
	tests/transport/pair.h tests/transport/verbs/failback_rig.h tests/transport/verbs/verbs_pair.h \
	$(fake_verbs_sources)
tests_transport_verbs_test_verbs_multiport_SOURCES = tests/transport/verbs/test_verbs_multiport.c \
	tests/transport/pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_select_SOURCES = tests/transport/verbs/test_verbs_select.c \
	tests/transport/pair.h $(fake_verbs_sources)
tests_transport_verbs_test_verbs_conformance_SOURCES = tests/transport/verbs/test_verbs_conformance.c \
	$(conformance_sources) $(fake_verbs_sources)
tests_transport_verbs_test_verbs_conformance_rails_SOURCES = \
	tests/transport/verbs/test_verbs_conformance_rails.c $(conformance_sources) $(fake_verbs_sources)
tests_transport_verbs_test_verbs_conformance_no_srq_SOURCES = \
	tests/transport/verbs/test_verbs_conformance_no_srq.c $(conformance_sources) $(fake_verbs_sources)
endif

EXTRA_DIST += tests/transport/connect_to.h tests/transport/multirail/multirail_rig.h \
	tests/transport/shm/shm_guard_rig.h tests/transport/tcp/tcp_by_hand.h tests/transport/tcp/wiretap.h
