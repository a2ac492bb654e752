/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The basis of GradiVeQ: principal components of slices of a gradient (Yu et al.,
 * "GradiVeQ: vector quantization for bandwidth-efficient gradient aggregation in
 * distributed CNN training", NeurIPS 2018).
 *
 * A gradient is cut into slices of `slice` floats, the last one padded with zeros. (The
 * padding decodes to other values, which are dropped, so a short slice loses a little
 * of its projection.) Aggregated gradients are added over some steps (trib_pca_add).
 * Then the basis U, slice x kept, is fitted: the eigenvectors of the slices' covariance
 * with the largest eigenvalues. From then on a slice x is encoded as `kept`
 * coefficients U^T (x - share * mean) and decoded to U c + share * mean, its orthogonal
 * projection. This is linear: coefficients may be added if shares are added too. So n
 * ranks encode with a share of 1 / n and decode their sum with 1.
 *
 * Reproducibility: for the same slices, other machines or thread counts of the linear
 * algebra library may yield other low bits, and another basis for equal eigenvalues. So
 * one rank fits the basis, and the others import it. Coefficients and their decoding
 * have the same bits everywhere.
 *
 * Range: a slice with NaN or Inf is not added; it encodes to coefficients of NaN, and
 * other slices are not affected. Added slices are scaled, so denormals and FLT_MAX are
 * safe; coefficients overflow to Inf if |x| overflows in float32. With no slices, or
 * only zeros, the basis is an arbitrary orthonormal one, and trib_pca_dropped is 0.
 */
#ifndef COMPRESS_MODELS_PCA_H
#define COMPRESS_MODELS_PCA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;
struct trib_kernels;
struct trib_pca;

enum { TRIB_PCA_SLICE_MAX = 4096 };

struct trib_pca_opts {
    size_t slice; /* 1 … TRIB_PCA_SLICE_MAX; in the paper: 768 */
    size_t kept; /* 1 … slice; in the paper: 96 */
    bool centre; /* centred on the mean slice; else on 0 */
};

/**
 * trib_pca_create - create an empty object, without slices or basis.
 *
 * Takes about 20 slice^2 + 12 slice * kept bytes.
 * kernels  NULL: the fastest for this CPU
 * errors   TRIB_ERR_INVALID (sizes), TRIB_ERR_NO_MEMORY
 * owner    caller; free with trib_pca_destroy, which accepts NULL
 * thread   one at a time for non-const calls; any number for const calls
 */
trib_status_t trib_pca_create(const struct trib_pca_opts *opts,
                              const struct trib_kernels *kernels,
                              struct trib_error *err, struct trib_pca **out);
void trib_pca_destroy(struct trib_pca *pca);

/** trib_pca_add - add the slices of an aggregated gradient of n floats. */
void trib_pca_add(struct trib_pca *pca, const float *x, size_t n);

/** trib_pca_fade - multiply the weight of all slices added so far by `weight`, below 1;
 * 0: forget them. The basis stays. */
void trib_pca_fade(struct trib_pca *pca, double weight);

/**
 * trib_pca_fit - fit the basis to the slices added so far, which are kept.
 *
 * Uses LAPACK's dsyevr from OpenBLAS, which is loaded on first use; its number of
 * threads is not changed.
 * errors   TRIB_ERR_UNSUPPORTED (OpenBLAS is not installed), TRIB_ERR_INVALID (no
 *          eigenvectors found)
 */
trib_status_t trib_pca_fit(struct trib_pca *pca, struct trib_error *err);

/** trib_pca_available - check that OpenBLAS is installed; errors as trib_pca_fit. */
trib_status_t trib_pca_available(struct trib_error *err);

/** trib_pca_dropped - return the fraction of the fitted slices' energy outside the
 * basis. */
double trib_pca_dropped(const struct trib_pca *pca);

/** trib_pca_scratch - return the scratch bytes, 64-aligned, for encode and decode. */
size_t trib_pca_scratch(const struct trib_pca *pca);

/**
 * trib_pca_encode, trib_pca_decode - convert n floats to coefficients and back;
 * requires a basis.
 *
 * share    of the mean, as above; irrelevant without `centre`
 * x, c     must not overlap
 */
void trib_pca_encode(const struct trib_pca *pca, const float *x, size_t n, float share,
                     float *c_out, void *scratch);
void trib_pca_decode(const struct trib_pca *pca, const float *c, size_t n, float share,
                     float *x_out, void *scratch);

/**
 * trib_pca_export, trib_pca_import - write and read the basis as bytes.
 *
 *     | u32 slice | u32 kept | u32 centre | u32 0 | f64 dropped |
 *     | f32 mean[slice] | f32 U[slice][kept] |
 *
 * bytes    trib_pca_bytes; export requires a basis
 * errors   TRIB_ERR_MISMATCH if the bytes are not a basis of these sizes; the basis is
 *          then unchanged
 */
size_t trib_pca_bytes(const struct trib_pca *pca);
void trib_pca_export(const struct trib_pca *pca, uint8_t *bytes_out);
trib_status_t trib_pca_import(struct trib_pca *pca, const uint8_t *bytes, size_t len,
                              struct trib_error *err);

/**
 * trib_pca_get, trib_pca_set - copy the basis to and from trib_pca_floats floats:
 * fraction dropped, mean, U.
 *
 * For ranks of one job.
 * errors   TRIB_ERR_MISMATCH: not finite; the basis is then unchanged
 */
size_t trib_pca_floats(const struct trib_pca *pca);
void trib_pca_get(const struct trib_pca *pca, float *floats_out);
trib_status_t trib_pca_set(struct trib_pca *pca, const float *floats,
                           struct trib_error *err);

/**
 * trib_pca_sums_write, trib_pca_sums_read - save and restore the sums of slices, to
 * continue later.
 *
 * bytes    trib_pca_sums_bytes
 * check    TRIB_ERR_MISMATCH if they are not finite; trib_pca_sums_read does not check
 */
size_t trib_pca_sums_bytes(const struct trib_pca *pca);
void trib_pca_sums_write(const struct trib_pca *pca, uint8_t *out);
trib_status_t trib_pca_sums_check(const struct trib_pca *pca, const uint8_t *src,
                                  struct trib_error *err);
void trib_pca_sums_read(struct trib_pca *pca, const uint8_t *src);

#endif
