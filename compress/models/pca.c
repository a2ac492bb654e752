/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/models/pca.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/library.h"
#include "compress/kernels/kernels.h"

#define LIBRARY "libopenblas.so.0"

enum { BATCH = 128 /* slices multiplied in float before they are added in double */ };

struct head {
    uint32_t slice;
    uint32_t kept;
    uint32_t centre;
    uint32_t zero;
    double dropped;
};
_Static_assert(sizeof(struct head) == 24, "no padding: written as raw bytes");

struct trib_pca {
    struct head head;
    const struct trib_kernels *kernels;
    bool fitted;
    /* contiguous, as they are exported */
    float *mean; /* [slice] */
    float *basis;
    float *mean_part; /* U^T mean, [kept] */

    uint64_t count; /* slices added */
    double *products; /* sum of x x^T */
    double *sum; /* of x */
    float *batch; /* BATCH slices */
    float *square; /* slice x slice */
    void *scratch;
    /* work space of dsyevr */
    double *matrix, *vectors, *values, *work;
    int *iwork, *support;
    int work_size, iwork_size;
};

/* ---- memory --------------------------------------------------------------------- */

enum { BLOCKED_COLUMNS = 72 /* minimum for dsyevr is 26; blocked, so faster */ };

static bool allocate(struct trib_pca *p)
{
    const size_t m = p->head.slice, k = p->head.kept;
    p->work_size = (int)(BLOCKED_COLUMNS * m);
    p->iwork_size = (int)(10 * m);
    p->mean = calloc(m + m * k + k, sizeof(float));
    p->products = calloc(m * m, sizeof(double));
    p->sum = calloc(m, sizeof(double));
    p->batch = malloc(BATCH * m * sizeof(float));
    p->square = malloc(m * m * sizeof(float));
    p->matrix = malloc(m * m * sizeof(double));
    p->vectors = malloc(m * k * sizeof(double));
    p->values = malloc(m * sizeof(double));
    p->work = malloc((size_t)p->work_size * sizeof(double));
    p->iwork = malloc((size_t)p->iwork_size * sizeof(int));
    p->support = malloc(2 * m * sizeof(int));
    if (posix_memalign(&p->scratch, 64, TRIB_GEMM_SCRATCH))
        p->scratch = NULL;
    p->basis = p->mean ? p->mean + m : NULL;
    p->mean_part = p->mean ? p->basis + m * k : NULL;
    return p->mean && p->products && p->sum && p->batch && p->square && p->matrix &&
           p->vectors && p->values && p->work && p->iwork && p->support && p->scratch;
}

trib_status_t trib_pca_create(const struct trib_pca_opts *opts,
                              const struct trib_kernels *kernels,
                              struct trib_error *err, struct trib_pca **out)
{
    *out = NULL;
    if (opts->slice < 1 || opts->slice > TRIB_PCA_SLICE_MAX)
        return trib_fail(err, TRIB_ERR_INVALID, "a slice has 1 to %d elements, not %zu",
                         TRIB_PCA_SLICE_MAX, opts->slice);
    if (opts->kept < 1 || opts->kept > opts->slice)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "a slice of %zu elements keeps 1 to %zu coefficients, not %zu",
                         opts->slice, opts->slice, opts->kept);
    struct trib_pca *p = calloc(1, sizeof *p);
    if (p) {
        p->head.slice = (uint32_t)opts->slice, p->head.kept = (uint32_t)opts->kept;
        p->head.centre = opts->centre;
        p->kernels = kernels ? kernels : trib_kernels_get(NULL);
    }
    if (!p || !allocate(p)) {
        trib_pca_destroy(p);
        return trib_fail(err, TRIB_ERR_NO_MEMORY,
                         "no memory for principal components of slices of %zu elements",
                         opts->slice);
    }
    *out = p;
    return TRIB_OK;
}

void trib_pca_destroy(struct trib_pca *pca)
{
    if (!pca)
        return;
    free(pca->mean), free(pca->products), free(pca->sum), free(pca->batch),
        free(pca->square);
    free(pca->matrix), free(pca->vectors), free(pca->values), free(pca->work);
    free(pca->iwork), free(pca->support), free(pca->scratch);
    free(pca);
}

/* ---- slices --------------------------------------------------------------------- */

/* Return the factor that scales a magnitude, given as bits, to [1, 2); denormals end up
 * below. */
static float scale_for(uint32_t magnitude)
{
    const int exponent = (int)(magnitude >> 23) - 127;
    return ldexpf(1.0f, exponent > -126 ? -exponent : 126);
}

/* Add the `count` slices in batch, times 1 / scale. */
static void add_batch(struct trib_pca *p, size_t count, float scale)
{
    const size_t m = p->head.slice;
    const struct trib_gemm g = {.m = m, .n = m, .k = count,
                                .a = p->batch, .b = p->batch, .c = p->square,
                                .lda = m, .ldb = m, .ldc = m,
                                .a_transposed = true, .scratch = p->scratch};
    const double back = 1 / (double)scale;
    p->kernels->gemm(&g);
    for (size_t i = 0; i < m * m; i++)
        p->products[i] += back * back * (double)p->square[i];
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < m; j++)
            p->sum[j] += back * (double)p->batch[i * m + j];
    p->count += count;
}

/* Copy the finite slices of n floats to batch, with a common scale; return their
 * number. */
static size_t gather(struct trib_pca *p, const float *x, size_t n, float *scale_out)
{
    const size_t m = p->head.slice;
    uint32_t largest = 0;
    size_t count = 0;
    for (size_t i = 0; i < n; i += m) {
        const size_t here = n - i < m ? n - i : m;
        const uint32_t magnitude = p->kernels->max_magnitude(x + i, here);
        if (magnitude >= 0x7f800000u)
            continue;
        float *to = p->batch + m * count++;
        memcpy(to, x + i, here * sizeof *to);
        memset(to + here, 0, (m - here) * sizeof *to);
        largest = magnitude > largest ? magnitude : largest;
    }
    *scale_out = scale_for(largest);
    for (size_t i = 0; i < m * count; i++)
        p->batch[i] *= *scale_out;
    return count;
}

void trib_pca_add(struct trib_pca *pca, const float *x, size_t n)
{
    const size_t step = (size_t)BATCH * pca->head.slice;
    for (size_t i = 0; i < n; i += step) {
        float scale;
        const size_t count = gather(pca, x + i, n - i < step ? n - i : step, &scale);
        add_batch(pca, count, scale);
    }
}

/* The count stays an integer, and the sums are reduced by the same factor. */
void trib_pca_fade(struct trib_pca *pca, double weight)
{
    const size_t m = pca->head.slice;
    const uint64_t count = (uint64_t)((double)pca->count * weight);
    const double rest = pca->count ? (double)count / (double)pca->count : 0;

    assert(weight >= 0 && weight < 1);
    pca->count = count;
    for (size_t i = 0; i < m * m; i++)
        pca->products[i] *= rest;
    for (size_t i = 0; i < m; i++)
        pca->sum[i] *= rest;
}

/* ---- fit ------------------------------------------------------------------------ */

/* Fortran interface: all arguments by pointer, then the lengths of the three
 * strings. */
struct lapack {
    void (*dsyevr)(const char *jobz, const char *range, const char *uplo, const int *n,
                   double *a, const int *lda, const double *vl, const double *vu,
                   const int *il, const int *iu, const double *abstol, int *found,
                   double *w, double *z, const int *ldz, int *support, double *work,
                   const int *lwork, int *iwork, const int *liwork, int *info, size_t,
                   size_t, size_t);
};

static trib_status_t open_lapack(struct lapack *lapack, struct trib_error *err)
{
    static const struct trib_symbol symbols[] = {
        {.name = "dsyevr_", .at = offsetof(struct lapack, dsyevr)}};
    char why[160];
    if (trib_library_open(LIBRARY, symbols, 1, lapack, why, sizeof why))
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                     "principal components need OpenBLAS: %s; install libopenblas0",
                     why);
}

/* Compute the `kept` largest eigenvalues of matrix, in increasing order, and their
 * eigenvectors, contiguous. Computing all of them would take 1.3 to 1.8 times as
 * long. */
static int eigen(struct trib_pca *p, const struct lapack *lapack)
{
    const int m = (int)p->head.slice, kept = (int)p->head.kept, first = m - kept + 1;
    const double zero = 0;
    int found = 0, info = 0;
    lapack->dsyevr("V", "I", "U", &m, p->matrix, &m, &zero, &zero, &first, &m, &zero,
                   &found, p->values, p->vectors, &m, p->support, p->work,
                   &p->work_size, p->iwork, &p->iwork_size, &info, 1, 1, 1);
    return info ? info : found == kept ? 0 : -1;
}

static void covariance(struct trib_pca *p)
{
    const size_t m = p->head.slice;
    const double share = p->count ? 1 / (double)p->count : 0;
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < m; j++) {
            const double about =
                p->head.centre ? p->sum[i] * share * p->sum[j] * share : 0;
            p->matrix[i * m + j] = p->products[i * m + j] * share - about;
        }
    }
}

/* Copy the vectors with the largest values to the basis as columns, with the sign that
 * makes their largest entry (the first of equal ones) positive. */
static void take_basis(struct trib_pca *p)
{
    const size_t m = p->head.slice, k = p->head.kept;
    for (size_t j = 0; j < k; j++) {
        const double *v = p->vectors + (k - 1 - j) * m;
        size_t largest = 0;
        for (size_t i = 1; i < m; i++)
            largest = fabs(v[i]) > fabs(v[largest]) ? i : largest;
        const double sign = v[largest] < 0 ? -1 : 1;
        for (size_t i = 0; i < m; i++)
            p->basis[i * k + j] = (float)(sign * v[i]);
    }
}

static void take_mean_part(struct trib_pca *p)
{
    const size_t m = p->head.slice, k = p->head.kept;
    const struct trib_gemm g = {.m = 1, .n = k, .k = m,
                                .a = p->mean, .b = p->basis, .c = p->mean_part,
                                .lda = m, .ldb = k, .ldc = k, .scratch = p->scratch};
    p->kernels->gemm(&g);
}

trib_status_t trib_pca_available(struct trib_error *err)
{
    struct lapack lapack;
    return open_lapack(&lapack, err);
}

/* Return the sum of all eigenvalues: the trace of `matrix`, before dsyevr overwrites
 * it. */
static double trace_of(const struct trib_pca *p)
{
    double trace = 0;
    for (size_t i = 0; i < p->head.slice; i++)
        trace += p->matrix[i * p->head.slice + i];
    return trace;
}

static double dropped_of(const struct trib_pca *p, double trace)
{
    double kept = 0;
    for (size_t i = 0; i < p->head.kept; i++)
        kept += p->values[i] > 0 ? p->values[i] : 0;
    return p->head.kept < p->head.slice && trace > kept ? (trace - kept) / trace : 0;
}

trib_status_t trib_pca_fit(struct trib_pca *pca, struct trib_error *err)
{
    struct lapack lapack;
    const trib_status_t status = open_lapack(&lapack, err);
    if (status != TRIB_OK)
        return status;
    covariance(pca);
    const double trace = trace_of(pca);
    const int info = eigen(pca, &lapack);
    if (info)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "LAPACK's dsyevr found no eigenvectors (info %d)", info);
    for (size_t i = 0; i < pca->head.slice; i++)
        pca->mean[i] = pca->head.centre && pca->count
                           ? (float)(pca->sum[i] / (double)pca->count)
                           : 0.0f;
    take_basis(pca);
    take_mean_part(pca);
    pca->head.dropped = dropped_of(pca, trace);
    pca->fitted = true;
    return TRIB_OK;
}

double trib_pca_dropped(const struct trib_pca *pca)
{
    return pca->head.dropped;
}

/* ---- coefficients --------------------------------------------------------------- */

size_t trib_pca_scratch(const struct trib_pca *pca)
{
    return TRIB_GEMM_SCRATCH + pca->head.slice * sizeof(float);
}

static float *slice_in(void *scratch)
{
    return (float *)((char *)scratch + TRIB_GEMM_SCRATCH);
}

/* of `count` whole slices */
static void encode_slices(const struct trib_pca *p, const float *x, size_t count,
                          float share, float *c, void *scratch)
{
    const size_t m = p->head.slice, k = p->head.kept;
    const struct trib_gemm g = {.m = count, .n = k, .k = m,
                                .a = x, .b = p->basis, .c = c,
                                .lda = m, .ldb = k, .ldc = k, .scratch = scratch};
    p->kernels->gemm(&g);
    for (size_t i = 0; p->head.centre && i < count; i++)
        for (size_t j = 0; j < k; j++)
            c[i * k + j] -= share * p->mean_part[j];
}

void trib_pca_encode(const struct trib_pca *pca, const float *x, size_t n, float share,
                     float *c_out, void *scratch)
{
    const size_t m = pca->head.slice, whole = n / m, rest = n % m;
    assert(pca->fitted);
    encode_slices(pca, x, whole, share, c_out, scratch);
    if (!rest)
        return;
    float *last = slice_in(scratch);
    memcpy(last, x + whole * m, rest * sizeof *last);
    memset(last + rest, 0, (m - rest) * sizeof *last);
    encode_slices(pca, last, 1, share, c_out + whole * pca->head.kept, scratch);
}

static void decode_slices(const struct trib_pca *p, const float *c, size_t count,
                          float share, float *x, void *scratch)
{
    const size_t m = p->head.slice, k = p->head.kept;
    const struct trib_gemm g = {.m = count,
                                .n = m,
                                .k = k,
                                .a = c,
                                .b = p->basis,
                                .c = x,
                                .lda = k,
                                .ldb = k,
                                .ldc = m,
                                .b_transposed = true,
                                .add = p->head.centre,
                                .scratch = scratch};
    for (size_t i = 0; g.add && i < count; i++)
        for (size_t j = 0; j < m; j++)
            x[i * m + j] = share * p->mean[j];
    p->kernels->gemm(&g);
}

void trib_pca_decode(const struct trib_pca *pca, const float *c, size_t n, float share,
                     float *x_out, void *scratch)
{
    const size_t m = pca->head.slice, whole = n / m, rest = n % m;
    assert(pca->fitted);
    decode_slices(pca, c, whole, share, x_out, scratch);
    if (!rest)
        return;
    decode_slices(pca, c + whole * pca->head.kept, 1, share, slice_in(scratch),
                  scratch);
    memcpy(x_out + whole * m, slice_in(scratch), rest * sizeof *x_out);
}

/* ---- bytes ---------------------------------------------------------------------- */

/* Return the floats of mean and basis. */
static size_t floats_of(const struct trib_pca *p)
{
    return p->head.slice + (size_t)p->head.slice * p->head.kept;
}

size_t trib_pca_bytes(const struct trib_pca *pca)
{
    return sizeof pca->head + floats_of(pca) * sizeof(float);
}

void trib_pca_export(const struct trib_pca *pca, uint8_t *bytes_out)
{
    assert(pca->fitted);
    memcpy(bytes_out, &pca->head, sizeof pca->head);
    memcpy(bytes_out + sizeof pca->head, pca->mean, floats_of(pca) * sizeof(float));
}

static bool all_finite(const struct trib_pca *p, const uint8_t *floats, size_t n)
{
    float part[256];
    for (size_t i = 0; i < n; i += 256) {
        const size_t here = n - i < 256 ? n - i : 256;
        memcpy(part, floats + i * sizeof *part, here * sizeof *part);
        if (p->kernels->max_magnitude(part, here) >= 0x7f800000u)
            return false;
    }
    return true;
}

trib_status_t trib_pca_import(struct trib_pca *pca, const uint8_t *bytes, size_t len,
                              struct trib_error *err)
{
    struct head head = {0};
    memcpy(&head, bytes, len < sizeof head ? len : sizeof head);
    if (len != trib_pca_bytes(pca) || head.slice != pca->head.slice ||
        head.kept != pca->head.kept || head.centre != pca->head.centre)
        return trib_fail(
            err, TRIB_ERR_MISMATCH,
            "%zu bytes are not a basis of %u coefficients for slices of %u elements%s",
            len, pca->head.kept, pca->head.slice,
            pca->head.centre ? " centred on their mean" : "");
    if (head.zero || !(head.dropped >= 0 && head.dropped <= 1) ||
        !all_finite(pca, bytes + sizeof head, floats_of(pca)))
        return trib_fail(err, TRIB_ERR_MISMATCH, "the saved basis is damaged");
    pca->head = head;
    memcpy(pca->mean, bytes + sizeof head, floats_of(pca) * sizeof(float));
    take_mean_part(pca);
    pca->fitted = true;
    return TRIB_OK;
}

size_t trib_pca_floats(const struct trib_pca *pca)
{
    return 1 + floats_of(pca);
}

void trib_pca_get(const struct trib_pca *pca, float *floats_out)
{
    assert(pca->fitted);
    floats_out[0] = (float)pca->head.dropped;
    memcpy(floats_out + 1, pca->mean, floats_of(pca) * sizeof *floats_out);
}

trib_status_t trib_pca_set(struct trib_pca *pca, const float *floats,
                           struct trib_error *err)
{
    const uint8_t *basis = (const uint8_t *)(floats + 1);
    if (!(floats[0] >= 0 && floats[0] <= 1) || !all_finite(pca, basis, floats_of(pca)))
        return trib_fail(err, TRIB_ERR_MISMATCH, "the received basis is damaged");
    pca->head.dropped = (double)floats[0];
    memcpy(pca->mean, basis, floats_of(pca) * sizeof *floats);
    take_mean_part(pca);
    pca->fitted = true;
    return TRIB_OK;
}

/* products, then sum, then the count */
static size_t sums_of(const struct trib_pca *p)
{
    return (size_t)p->head.slice * p->head.slice + p->head.slice;
}

size_t trib_pca_sums_bytes(const struct trib_pca *pca)
{
    return sums_of(pca) * sizeof(double) + sizeof pca->count;
}

void trib_pca_sums_write(const struct trib_pca *pca, uint8_t *out)
{
    const size_t square = (size_t)pca->head.slice * pca->head.slice * sizeof(double);
    const size_t sum = pca->head.slice * sizeof(double);
    memcpy(out, pca->products, square);
    memcpy(out + square, pca->sum, sum);
    memcpy(out + square + sum, &pca->count, sizeof pca->count);
}

trib_status_t trib_pca_sums_check(const struct trib_pca *pca, const uint8_t *src,
                                  struct trib_error *err)
{
    for (size_t i = 0; i < sums_of(pca); i++) {
        double v;
        memcpy(&v, src + i * sizeof v, sizeof v);
        if (!isfinite(v))
            return trib_fail(err, TRIB_ERR_MISMATCH, "the sums of slices are damaged");
    }
    return TRIB_OK;
}

void trib_pca_sums_read(struct trib_pca *pca, const uint8_t *src)
{
    const size_t square = (size_t)pca->head.slice * pca->head.slice * sizeof(double);
    const size_t sum = pca->head.slice * sizeof(double);
    memcpy(pca->products, src, square);
    memcpy(pca->sum, src + square, sum);
    memcpy(&pca->count, src + square + sum, sizeof pca->count);
}
