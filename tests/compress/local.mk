# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/compress/kernels/check_kernels tests/compress/kernels/check_narrow \
	tests/compress/kernels/check_select_kernels tests/compress/kernels/test_crc tests/compress/kernels/test_elements \
	tests/compress/kernels/test_gemm tests/compress/models/test_autoencoder tests/compress/models/test_autoencoder_apart \
	tests/compress/models/test_conv1d tests/compress/models/test_lgc tests/compress/models/test_lgc_odd \
	tests/compress/models/test_model tests/compress/models/test_model_parts tests/compress/models/test_orthonormal \
	tests/compress/models/test_pca tests/compress/pack/test_bitpack tests/compress/pack/test_elias_omega \
	tests/compress/pack/test_index_gaps tests/compress/pack/test_varlen tests/compress/quantise/test_bounded \
	tests/compress/quantise/test_dither tests/compress/quantise/test_exact_sum tests/compress/quantise/test_f8 \
	tests/compress/quantise/test_half tests/compress/quantise/test_natural tests/compress/quantise/test_packed_ints \
	tests/compress/quantise/test_qsgd tests/compress/quantise/test_sign tests/compress/quantise/test_terngrad \
	tests/compress/quantise/test_thc tests/compress/quantise/test_thc_table tests/compress/registry/test_codec_text \
	tests/compress/registry/test_feedback_rule tests/compress/sparsify/test_adacomp tests/compress/sparsify/test_blocks \
	tests/compress/sparsify/test_dgc tests/compress/sparsify/test_randomk tests/compress/sparsify/test_select \
	tests/compress/sparsify/test_sparse_block tests/compress/sparsify/test_threshold tests/compress/sparsify/test_topk \
	tests/compress/sparsify/test_whole_k tests/compress/test_changing tests/compress/test_claims \
	tests/compress/test_codec tests/compress/test_codec_info tests/compress/test_contract tests/compress/test_extremes \
	tests/compress/test_fuzzed tests/compress/test_ill_conditioned tests/compress/test_ratio \
	tests/compress/test_vector_stats tests/compress/transform/test_hadamard tests/compress/transform/test_rotated \
	tests/compress/vectors/test_vector_split tests/compress/vectors/test_vector_words
check_PROGRAMS += tests/compress/kernels/bench_gemm
check_scripts += tests/compress/test_neon.sh
tests_compress_test_fuzzed_LDADD = libcorpus.la $(LDADD)
EXTRA_DIST += tests/compress/models/autoencoder_rig.h tests/compress/cross/cmocka.h tests/compress/guarded.h \
	tests/compress/kernels/bench_reduce.h tests/compress/kernels/check_bounded.h \
	tests/compress/quantise/packed_ints_words.h tests/compress/kernels/isas.h tests/compress/models/lgc_rig.h \
	tests/compress/quantise/bucket_checks.h tests/compress/vectors.h tests/data/README.md tests/data/gradient-early.f32 \
	tests/data/gradient-late.f32 tests/regress/ill_conditioned.csv tests/regress/ratio.csv
