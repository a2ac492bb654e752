/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages about wrong results. Each rank prints its own.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/coll/operation.h"
#include "perf/coll/perf_oracle.h"
#include "perf/common/sizes.h"


/* Print one line with one call, since other ranks write to the same stderr. */
__attribute__((format(printf, 2, 3))) static void say(const struct perf_operation *op,
                                                      const char *format, ...)
{
    char size[32], text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "trib-perf: %s: %s.\n",
            perf_size_text(op->bytes, size, sizeof(size)), text);
}

void perf_say_wrong(const struct perf_operation *op, const struct perf_verdict *verdict,
                    bool guards_damaged, bool input_changed)
{
    const int rank = trib_rank(op->comm);

    if (verdict->wrong_elements)
        say(op,
            "the result of rank %d is wrong: element %zu is %.9g, expected %.9g "
            "within %.3g (%llu of %zu elements are wrong)",
            rank, verdict->first, verdict->got, verdict->want, verdict->tolerance,
            (unsigned long long)verdict->wrong_elements,
            perf_oracle_outputs(&op->oracle));
    if (guards_damaged)
        say(op, "rank %d: bytes after a buffer were overwritten", rank);
    if (input_changed)
        say(op, "rank %d: the send buffer was changed", rank);
}

/* Count the elements whose bytes differ between two results, and find the first. */
static size_t compare(const unsigned char *mine, const unsigned char *theirs, size_t n,
                      size_t element, size_t *first_out)
{
    size_t different = 0;

    for (size_t i = n; i-- > 0;) {
        if (memcmp(mine + i * element, theirs + i * element, element) == 0)
            continue;
        *first_out = i;
        different++;
    }
    return different;
}

static void say_bits(const struct perf_operation *op, const unsigned char *theirs,
                     size_t n)
{
    const trib_dtype_t dtype = op->oracle.dtype;
    const size_t element = trib_dtype_size(dtype);
    const unsigned char *mine = op->output;
    size_t first = 0;
    size_t different = compare(mine, theirs, n, element, &first);

    if (different == 0)
        return;
    say(op,
        "ranks 0 and %d have different results: element %zu is %.9g on rank 0 and %.9g "
        "on rank %d (%zu of %zu elements differ)",
        trib_rank(op->comm), first, perf_oracle_number(dtype, theirs, first),
        perf_oracle_number(dtype, mine, first), trib_rank(op->comm), different, n);
}

trib_status_t perf_say_different(struct perf_operation *op)
{
    const size_t n = perf_oracle_outputs(&op->oracle);
    const size_t bytes = n * trib_dtype_size(op->oracle.dtype);
    trib_desc_t desc = TRIB_DESC_INIT;
    unsigned char *theirs = malloc(bytes + 1);
    trib_plan_t *plan;

    if (theirs == NULL)
        return TRIB_ERR_NO_MEMORY;
    memcpy(theirs, op->output, bytes);
    desc.recv = theirs;
    desc.count = bytes;
    desc.dtype = TRIB_I8;
    desc.codec = "none";
    trib_status_t status = trib_plan_create(op->comm, TRIB_BROADCAST, &desc, &plan);
    if (status == TRIB_OK) {
        status = trib_plan_start(plan);
        if (status == TRIB_OK)
            status = trib_plan_wait(plan);
        trib_status_t freed = trib_plan_free(plan);
        status = status == TRIB_OK ? freed : status;
    }
    if (status == TRIB_OK)
        say_bits(op, theirs, n);
    free(theirs);
    return status;
}
