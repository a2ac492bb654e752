# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/pipeline/engine/test_engine tests/pipeline/engine/test_engine_open \
	tests/pipeline/engine/test_engine_wait tests/pipeline/engine/test_relay tests/pipeline/engine/test_run_prepare \
	tests/pipeline/engine/test_short_billboard tests/pipeline/engine/test_short_path tests/pipeline/link/test_advert \
	tests/pipeline/link/test_arena tests/pipeline/link/test_billboard tests/pipeline/link/test_frame \
	tests/pipeline/link/test_grants \
	tests/pipeline/link/test_link tests/pipeline/link/test_link_import tests/pipeline/link/test_notice \
	tests/pipeline/link/test_registered tests/pipeline/link/test_shared_layout tests/pipeline/p2p/test_mailbox \
	tests/pipeline/p2p/test_matching tests/pipeline/p2p/test_message tests/pipeline/p2p/test_p2p \
	tests/pipeline/p2p/test_direct_write tests/pipeline/p2p/test_p2p_open tests/pipeline/p2p/test_p2p_send \
	tests/pipeline/p2p/test_pull tests/pipeline/payload/test_agg_sum \
	tests/pipeline/payload/test_check tests/pipeline/payload/test_checksum tests/pipeline/payload/test_chunk_memory \
	tests/pipeline/payload/test_contribution tests/pipeline/payload/test_decode tests/pipeline/payload/test_encode \
	tests/pipeline/payload/test_encode_ahead tests/pipeline/payload/test_error_feedback \
	tests/pipeline/payload/test_narrow tests/pipeline/payload/test_pair_sum tests/pipeline/payload/test_encoded_pairs \
	tests/pipeline/payload/test_partial tests/pipeline/payload/test_payload_agree \
	tests/pipeline/payload/test_payload_blocks tests/pipeline/payload/test_payload_coded \
	tests/pipeline/payload/test_payload_linear tests/pipeline/payload/test_payload_pairs \
	tests/pipeline/payload/test_payload_prepare tests/pipeline/payload/test_payload_raw \
	tests/pipeline/payload/test_chunk_parts tests/pipeline/payload/test_raw_sum \
	tests/pipeline/payload/test_peer_reads tests/pipeline/payload/test_run_codec tests/pipeline/payload/test_undo_log \
	tests/pipeline/payload/test_encoded_store tests/pipeline/run/test_engine_page tests/pipeline/run/test_events \
	tests/pipeline/run/test_failure tests/pipeline/run/test_pair_regions tests/pipeline/run/test_result_store \
	tests/pipeline/run/test_run tests/pipeline/run/test_run_buffers

EXTRA_DIST += tests/pipeline/engine/engines.h tests/pipeline/link/link_pair.h tests/pipeline/p2p/talk.h \
	tests/pipeline/payload/payload_rig.h
