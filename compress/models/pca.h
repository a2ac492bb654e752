/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The basis of GradiVeQ: principal components of slices of a gradient (Yu et al.,
 * "GradiVeQ: vector quantization for bandwidth-efficient gradient aggregation in
 * distributed CNN training", NeurIPS 2018).
 *
 * A gradient is cut into slices of `slice` floats, the last one filled up with zeros
 * (which decode to something else, that is dropped: a short slice comes out as a bit
 * less than its projection). Over
 * some steps, aggregated gradients are added (trib_pca_add), then the basis U, slice x
 * kept, is fitted: the eigenvectors of the slices' covariance with the largest
 * eigenvalues. From then on a slice x is the `kept` coefficients U^T (x - share *
 * mean), and they become U c + share * mean, the orthogonal projection of x. That is
 * linear: coefficients may be added, if shares are, too: n ranks encode with a share of
 * 1 / n and decode their sum with 1.
 *
 * Basis: of the same slices another machine, or another number of threads of the linear
 * algebra library, may make other last bits, and another basis where eigenvalues are
 * equal. So one rank fits, the others import what it exports; trib_pca_digest tells
 * whether they agree. Coefficients and their decoding have the same bits everywhere.
 *
 * Not finite: a slice with NaN or Inf is not added. Encoded, it has coefficients of
 * NaN; other slices do not notice. Denormals and FLT_MAX: added slices are scaled, so
 * they do not matter; coefficients overflow to Inf where |x| does in float32. No
 * slices, or none but zeros: the basis is some orthonormal one, and trib_pca_dropped is
 * 0.
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
    size_t slice; /* 1 … TRIB_PCA_SLICE_MAX; of the paper: 768 */
    size_t kept; /* 1 … slice; 96 */
    bool centre; /* about the mean slice; else about 0 */
};

/**
 * trib_pca_create - no slices, no basis yet. Takes about 20 slice^2 + 12 slice *
 * kept bytes.
 *
 * kernels  NULL: the fastest for this CPU
 * errors   TRIB_ERR_INVALID (sizes), TRIB_ERR_NO_MEMORY
 * owner    trib_pca_destroy; NULL is allowed there
 * thread   one at a time for what is not const; any number for what is
 */
trib_status_t trib_pca_create(const struct trib_pca_opts *opts,
                              const struct trib_kernels *kernels,
                              struct trib_error *err, struct trib_pca **out);
void trib_pca_destroy(struct trib_pca *pca);

/** trib_pca_add - the slices of an aggregated gradient of n floats. */
void trib_pca_add(struct trib_pca *pca, const float *x, size_t n);

/**
 * trib_pca_fade - slices added so far count `weight` as much from now on, below 1; 0:
 * they are forgotten. The basis stays.
 */
void trib_pca_fade(struct trib_pca *pca, double weight);

/**
 * trib_pca_fit - the basis from the slices added so far, which stay.
 *
 * LAPACK's dsyevr, of the OpenBLAS that is opened at run time here, the first time; its
 * number of threads is left as the program has it.
 * errors   TRIB_ERR_UNSUPPORTED (OpenBLAS is not installed), TRIB_ERR_INVALID (it found
 *          no eigenvectors)
 */
trib_status_t trib_pca_fit(struct trib_pca *pca, struct trib_error *err);

/** trib_pca_available - errors as trib_pca_fit's: OpenBLAS is not installed. */
trib_status_t trib_pca_available(struct trib_error *err);

/** trib_pca_dropped - share of the fitted slices' energy that lies outside of the
 * basis. */
double trib_pca_dropped(const struct trib_pca *pca);

/** trib_pca_basis - U, slice x kept, row-major; NULL: no basis yet. */
const float *trib_pca_basis(const struct trib_pca *pca);

/** trib_pca_coefficients - how many n floats have: ceil(n / slice) * kept. */
size_t trib_pca_coefficients(const struct trib_pca *pca, size_t n);

/** trib_pca_scratch - bytes, 64-aligned, that encode and decode want. */
size_t trib_pca_scratch(const struct trib_pca *pca);

/**
 * trib_pca_encode, trib_pca_decode - n floats to coefficients and back; there is a
 * basis.
 *
 * share    of the mean, as above; without `centre` it does not matter
 * x, c     do not overlap
 */
void trib_pca_encode(const struct trib_pca *pca, const float *x, size_t n, float share,
                     float *c_out, void *scratch);
void trib_pca_decode(const struct trib_pca *pca, const float *c, size_t n, float share,
                     float *x_out, void *scratch);

/**
 * trib_pca_export, trib_pca_import - the basis as bytes: for others, or to be saved.
 *
 *     | u32 slice | u32 kept | u32 centre | u32 0 | f64 dropped |
 *     | f32 mean[slice] | f32 U[slice][kept] |
 *
 * bytes    trib_pca_bytes; there is a basis
 * errors   TRIB_ERR_MISMATCH where the bytes are no basis of these sizes; then the
 *          basis is what it was
 */
size_t trib_pca_bytes(const struct trib_pca *pca);
void trib_pca_export(const struct trib_pca *pca, uint8_t *bytes_out);
trib_status_t trib_pca_import(struct trib_pca *pca, const uint8_t *bytes, size_t len,
                              struct trib_error *err);

/**
 * trib_pca_get, trib_pca_set - the basis as trib_pca_floats floats: share of energy
 * dropped, mean, U. For ranks of one job.
 *
 * errors   TRIB_ERR_MISMATCH: they are not finite; then the basis is what it was
 */
size_t trib_pca_floats(const struct trib_pca *pca);
void trib_pca_get(const struct trib_pca *pca, float *floats_out);
trib_status_t trib_pca_set(struct trib_pca *pca, const float *floats,
                           struct trib_error *err);

/**
 * trib_pca_sums_write, trib_pca_sums_read - what was added so far, as bytes, to go on
 * later.
 *
 * bytes    trib_pca_sums_bytes
 * check    TRIB_ERR_MISMATCH where they are not finite; reading does not look
 */
size_t trib_pca_sums_bytes(const struct trib_pca *pca);
void trib_pca_sums_write(const struct trib_pca *pca, uint8_t *out);
trib_status_t trib_pca_sums_check(const struct trib_pca *pca, const uint8_t *src,
                                  struct trib_error *err);
void trib_pca_sums_read(struct trib_pca *pca, const uint8_t *src);

/** trib_pca_digest - of what would be exported: ranks compare it. There is a basis. */
uint64_t trib_pca_digest(const struct trib_pca *pca);

#endif
