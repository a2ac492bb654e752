/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as encoded pairs: two bytes for the elements in the chunk, one for the size
 * of an element, then the encoded chunk. Accepted pairs are written again as the same
 * pairs.
 */
#include "pipeline/payload/encoded_pairs.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* encoded chunks with pairs */

enum { HEAD = 3, BEYOND = 65536 /* added to n: positions of 4 bytes */ };

static void check(const uint8_t *word, size_t bytes, size_t n, size_t element,
                  uint32_t *at)
{
    struct trib_pairs p;

    if (!trib_encoded_pairs_read(word, bytes, n, element, at, &p))
        return;
    if (p.n > n || bytes > trib_encoded_pairs_bytes(p.n, n, element))
        abort();
    for (size_t i = 0; i < p.n; i++)
        if (at[i] >= n || (i && at[i] <= at[i - 1]))
            abort();
    uint8_t *again = malloc(bytes + 1);
    if (again && p.n) {
        fuzz_reached++;
        const size_t length = trib_encoded_pairs_length(&p, n, element);
        if (length > bytes) /* it may have had a list instead of distances */
            abort();
        trib_encoded_pairs_write(&p, n, element, again);
        uint32_t *other = malloc(n * sizeof(*other));
        struct trib_pairs q;
        if (other && (!trib_encoded_pairs_read(again, length, n, element, other, &q) ||
                      q.n != p.n || memcmp(other, at, p.n * sizeof(*at)) != 0 ||
                      memcmp(q.values, p.values, p.n * element) != 0))
            abort();
        free(other);
    }
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return 0;
    const size_t n =
        (size_t)(data[0] | data[1] << 8) % 2000 + 1 + (data[2] & 4 ? BEYOND : 0);
    const size_t element = (size_t)1 << data[2] % 4;
    uint32_t *at = malloc(n * sizeof(*at));
    uint8_t *word = malloc(size - HEAD + 1);

    if (at && word) {
        memcpy(word, data + HEAD, size - HEAD);
        check(word, size - HEAD, n, element, at);
    }
    free(at);
    free(word);
    return 0;
}
