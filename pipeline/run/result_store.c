/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/run/result_store.h"

#include <assert.h>

enum {
    FIRST = 8, /* initial chunks that alternate between both kinds */
    AGAIN = 32, /* one chunk in N uses the kind that is not chosen */
    WEIGHT = 8, /* weight of a chunk in the mean: one part in N */
    OUTLIER = 2, /* limit for a chunk's time, in units of the mean: the thread may have
                  * been preempted */
};
static const float CLEARLY = 0.9f; /* fraction of the time by plain stores */

bool trib_result_store_past(struct trib_result_store *s)
{
    const uint32_t chunk = s->chunks++;
    const bool past = s->ns[1] < CLEARLY * s->ns[0];

    if (chunk < FIRST)
        return chunk % 2;
    return chunk % AGAIN == 0 ? !past : past;
}

void trib_result_store_took(struct trib_result_store *s, bool past, size_t n,
                            uint64_t ns)
{
    float *mean = &s->ns[past];
    const float each = (float)ns / (float)n;

    assert(n > 0);
    if (*mean > 0) {
        const float most = OUTLIER * *mean;
        *mean += ((each < most ? each : most) - *mean) / WEIGHT;
    } else {
        *mean = each;
    }
}
