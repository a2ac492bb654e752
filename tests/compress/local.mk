# SPDX-License-Identifier: BSD-3-Clause
compress_tests = \
	tests/compress/check_kernels \
	tests/compress/check_narrow \
	tests/compress/check_select_kernels \
	tests/compress/test_adacomp \
	tests/compress/test_autoencoder \
	tests/compress/test_autoencoder_apart \
	tests/compress/test_bitpack \
	tests/compress/test_blocks \
	tests/compress/test_changing \
	tests/compress/test_codec \
	tests/compress/test_codec_text \
	tests/compress/test_contract \
	tests/compress/test_crc \
	tests/compress/test_conv1d \
	tests/compress/test_dgc \
	tests/compress/test_exact \
	tests/compress/test_extremes \
	tests/compress/test_f8 \
	tests/compress/test_feedback_rule \
	tests/compress/test_fuzzed \
	tests/compress/test_gaps \
	tests/compress/test_gemm \
	tests/compress/test_hadamard \
	tests/compress/test_half \
	tests/compress/test_ill_conditioned \
	tests/compress/test_lanes \
	tests/compress/test_lgc \
	tests/compress/test_lgc_odd \
	tests/compress/test_numbers \
	tests/compress/test_octaves \
	tests/compress/test_omega \
	tests/compress/test_orthonormal \
	tests/compress/test_model \
	tests/compress/test_pca \
	tests/compress/test_powers \
	tests/compress/test_qsgd \
	tests/compress/test_randomk \
	tests/compress/test_ratio \
	tests/compress/test_rotated \
	tests/compress/test_select \
	tests/compress/test_sheet \
	tests/compress/test_sign \
	tests/compress/test_sparse \
	tests/compress/test_terngrad \
	tests/compress/test_thc \
	tests/compress/test_thc_table \
	tests/compress/test_threshold \
	tests/compress/test_topk \
	tests/compress/test_whole_k \
	tests/compress/test_variable
check_PROGRAMS += $(compress_tests) tests/compress/bench_gemm
TESTS += $(compress_tests) tests/compress/test_neon.sh
# the library of that name judges what gaps.c packs
tests_compress_test_gaps_LDADD = $(LDADD) $(STREAMVBYTE_LIBS)
EXTRA_DIST += tests/compress/autoencoder_rig.h tests/compress/cross/cmocka.h \
	tests/compress/guarded.h tests/compress/isas.h tests/compress/lgc_rig.h tests/compress/test_neon.sh \
	tests/compress/vectors.h tests/data/README.md tests/data/gradient-early.f32 \
	tests/data/gradient-late.f32 tests/regress/ill_conditioned.csv tests/regress/ratio.csv
