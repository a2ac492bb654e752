# SPDX-License-Identifier: BSD-3-Clause
libpipeline_la_SOURCES += \
	pipeline/payload/check.c pipeline/payload/check.h \
	pipeline/payload/checksum.c pipeline/payload/checksum.h \
	pipeline/payload/chunk_memory.c pipeline/payload/chunk_memory.h \
	pipeline/payload/contribution.c pipeline/payload/contribution.h \
	pipeline/payload/decode.c pipeline/payload/decode.h \
	pipeline/payload/encode.c pipeline/payload/encode.h \
	pipeline/payload/encode_ahead.c pipeline/payload/encode_ahead.h \
	pipeline/payload/error_feedback.c pipeline/payload/error_feedback.h \
	pipeline/payload/narrow.c pipeline/payload/narrow.h \
	pipeline/run/pair_regions.c pipeline/run/pair_regions.h \
	pipeline/payload/pair_sum.c pipeline/payload/pair_sum.h \
	pipeline/payload/encoded_pairs.c pipeline/payload/encoded_pairs.h \
	pipeline/payload/partial.c pipeline/payload/partial.h \
	pipeline/payload/payload_agree.c pipeline/payload/payload_agree.h \
	pipeline/payload/payload.h \
	pipeline/payload/payload_blocks.c pipeline/payload/payload_blocks.h \
	pipeline/payload/payload_coded.c pipeline/payload/payload_coded.h \
	pipeline/payload/payload_linear.c \
	pipeline/payload/payload_pairs.c pipeline/payload/payload_pairs.h \
	pipeline/payload/payload_raw.c pipeline/payload/payload_raw.h \
	pipeline/payload/payload_prepare.c pipeline/payload/payload_state.h \
	pipeline/run/result_store.c pipeline/run/result_store.h \
	pipeline/payload/run_codec.c pipeline/payload/run_codec.h \
	pipeline/payload/agg_sum.c pipeline/payload/agg_sum.h \
	pipeline/payload/undo_log.c pipeline/payload/undo_log.h \
	pipeline/payload/raw_sum.c pipeline/payload/raw_sum.h \
	pipeline/payload/chunk_parts.c pipeline/payload/chunk_parts.h \
	pipeline/payload/encoded_store.c pipeline/payload/encoded_store.h \
	pipeline/payload/peer_reads.c pipeline/payload/peer_reads.h
EXTRA_DIST += pipeline/payload/README.md
