# SPDX-License-Identifier: BSD-3-Clause
compress_tests = \
	tests/compress/kernels/check_kernels \
	tests/compress/kernels/check_narrow \
	tests/compress/kernels/check_select_kernels \
	tests/compress/sparsify/test_adacomp \
	tests/compress/models/test_autoencoder \
	tests/compress/models/test_autoencoder_apart \
	tests/compress/pack/test_bitpack \
	tests/compress/sparsify/test_blocks \
	tests/compress/test_changing \
	tests/compress/test_claims \
	tests/compress/test_codec \
	tests/compress/registry/test_codec_text \
	tests/compress/test_contract \
	tests/compress/kernels/test_crc \
	tests/compress/kernels/test_elements \
	tests/compress/models/test_conv1d \
	tests/compress/sparsify/test_dgc \
	tests/compress/quantise/test_bounded \
	tests/compress/quantise/test_exact_sum \
	tests/compress/test_extremes \
	tests/compress/quantise/test_f8 \
	tests/compress/registry/test_feedback_rule \
	tests/compress/test_fuzzed \
	tests/compress/pack/test_index_gaps \
	tests/compress/kernels/test_gemm \
	tests/compress/transform/test_hadamard \
	tests/compress/quantise/test_half \
	tests/compress/test_ill_conditioned \
	tests/compress/quantise/test_packed_ints \
	tests/compress/models/test_lgc \
	tests/compress/models/test_lgc_odd \
	tests/compress/test_vector_stats \
	tests/compress/vectors/test_vector_words \
	tests/compress/quantise/test_natural \
	tests/compress/pack/test_elias_omega \
	tests/compress/models/test_model_parts \
	tests/compress/models/test_orthonormal \
	tests/compress/models/test_model \
	tests/compress/models/test_pca \
	tests/compress/quantise/test_dither \
	tests/compress/quantise/test_qsgd \
	tests/compress/sparsify/test_randomk \
	tests/compress/test_ratio \
	tests/compress/transform/test_rotated \
	tests/compress/sparsify/test_select \
	tests/compress/test_codec_info \
	tests/compress/quantise/test_sign \
	tests/compress/sparsify/test_sparse_block \
	tests/compress/quantise/test_terngrad \
	tests/compress/quantise/test_thc \
	tests/compress/quantise/test_thc_table \
	tests/compress/sparsify/test_threshold \
	tests/compress/sparsify/test_topk \
	tests/compress/sparsify/test_whole_k \
	tests/compress/pack/test_varlen
compress_tests += tests/compress/vectors/test_vector_split
check_PROGRAMS += $(compress_tests) tests/compress/kernels/bench_gemm
TESTS += $(compress_tests) tests/compress/test_neon.sh
tests_compress_test_fuzzed_LDADD = libcorpus.la $(LDADD)
EXTRA_DIST += tests/compress/models/autoencoder_rig.h tests/compress/cross/cmocka.h \
	tests/compress/guarded.h tests/compress/kernels/bench_reduce.h tests/compress/kernels/check_bounded.h \
	tests/compress/quantise/packed_ints_words.h tests/compress/kernels/isas.h tests/compress/models/lgc_rig.h tests/compress/test_neon.sh \
	tests/compress/quantise/bucket_checks.h tests/compress/vectors.h tests/data/README.md tests/data/gradient-early.f32 \
	tests/data/gradient-late.f32 tests/regress/ill_conditioned.csv tests/regress/ratio.csv
