/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/payload/check.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/number.h"
#include "pipeline/run/engine_state.h"
#include "pipeline/run/failure.h"

enum { BLOCK = 256 /* elements converted at a time */ };

/* Parse one item of the list, of n characters. */
static bool take_item(const char *item, size_t n, struct trib_check *out)
{
    static const char norm[] = "norm:";
    char text[TRIB_CHECK_TEXT_MAX];

    if (n >= sizeof(text))
        return false;
    memcpy(text, item, n);
    text[n] = 0;
    if (strcmp(text, "sum") == 0 && !out->sum)
        return out->sum = true;
    if (out->finite)
        return false;
    out->finite = true;
    return strcmp(text, "finite") == 0 ||
           (strncmp(text, norm, strlen(norm)) == 0 &&
            trib_number_read(text + strlen(norm), &out->norm) && out->norm > 0);
}

trib_status_t trib_check_parse(const char *text, struct trib_error *err,
                               struct trib_check *out)
{
    bool good = strlen(text) < TRIB_CHECK_TEXT_MAX;
    locale_t plain;

    *out = (struct trib_check){.finite = false};
    if (strcmp(text, "none") == 0)
        return TRIB_OK;
    const locale_t before = trib_number_enter(&plain);
    for (const char *at = text; good && at;
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        good = take_item(at, strcspn(at, ","), out);
    trib_number_leave(plain, before);
    if (good)
        return TRIB_OK;
    *out = (struct trib_check){.finite = false};
    return trib_fail(
        err, TRIB_ERR_CONFIG,
        "TRIB_CHECK is \"%.60s\", it must be none, finite, norm:X with a number X "
        "above 0, such as norm:1e6, sum, or sum and one of the others, such as "
        "finite,sum",
        text);
}

static size_t first_bad_double(const void *x, size_t n)
{
    double v;

    for (size_t i = 0; i < n; i++) {
        memcpy(&v, (const char *)x + i * sizeof(v), sizeof(v));
        if (!isfinite(v))
            return i;
    }
    return n;
}

size_t trib_check_first_bad(const struct trib_kernels *kernels, trib_dtype_t dtype,
                            const void *x, size_t n)
{
    const size_t element = trib_dtype_size(dtype);
    float part[BLOCK];

    if (dtype == TRIB_F64)
        return first_bad_double(x, n);
    if (!trib_dtype_is_float(dtype))
        return n;
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t count = n - first < BLOCK ? n - first : BLOCK;
        kernels->to_f32[dtype](part, (const char *)x + first * element, count);
        if (kernels->max_magnitude(part, count) < 0x7f800000u)
            continue;
        for (size_t i = 0; i < count; i++)
            if (!isfinite(part[i]))
                return first + i;
    }
    return n;
}

double trib_check_squares(trib_dtype_t dtype, const struct trib_kernels *kernels,
                          const void *x, size_t n)
{
    const size_t element = trib_dtype_size(dtype);
    double sum = 0, v;
    float part[BLOCK];

    for (size_t i = 0; dtype == TRIB_F64 && i < n; i++) {
        memcpy(&v, (const char *)x + i * sizeof(v), sizeof(v));
        sum += v * v;
    }
    for (size_t first = 0; dtype != TRIB_F64 && first < n; first += BLOCK) {
        const size_t count = n - first < BLOCK ? n - first : BLOCK;
        kernels->to_f32[dtype](part, (const char *)x + first * element, count);
        for (size_t i = 0; i < count; i++)
            sum += (double)part[i] * (double)part[i];
    }
    return sum;
}

trib_status_t trib_check_peer(struct trib_engine *e, const struct trib_run *run,
                              const struct trib_chunk *c, int peer, const void *x)
{
    const struct trib_run_desc *d = &run->desc;
    char text[200];

    assert(peer != e->rank);
    if (!d->check.finite || !d->gets_whole || peer >= e->ranks)
        return TRIB_OK;
    const size_t at = trib_check_first_bad(e->kernels, d->op.dtype, x, c->n);
    if (at == c->n)
        return TRIB_OK;
    snprintf(
        text, sizeof(text),
        "rank %d gave NaN or an infinity, element %zu%s%.40s%s, in %s (TRIB_CHECK)",
        peer, c->first + at, run->desc.label ? " of \"" : "",
        run->desc.label ? run->desc.label : "", run->desc.label ? "\"" : "",
        trib_coll_name(d->op.coll));
    trib_engine_mark(e, TRIB_ERR_INVALID, text);
    return TRIB_ERR_INVALID;
}
