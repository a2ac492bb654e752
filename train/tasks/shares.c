/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/tasks/shares.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* Fisher-Yates; the modulo bias is below count / 2^32. */
static void shuffle(uint32_t *items, size_t count, uint64_t seed, uint32_t stream)
{
    const struct trib_rng rng = {.seed = seed, .stream = stream};

    for (size_t left = count; left > 1; left--) {
        const struct trib_rng_block block = trib_rng_draw4(rng, left / 4);
        const size_t pick = block.word[left % 4] % left;
        const uint32_t item = items[left - 1];

        items[left - 1] = items[pick];
        items[pick] = item;
    }
}

int shares_create(struct shares *shares, size_t total, int rank, int ranks,
                  uint64_t seed)
{
    uint32_t *all = malloc(total * sizeof(*all));

    *shares = (struct shares){
        .count = total / (size_t)ranks, .seed = seed, .rank = rank, .ranks = ranks};
    shares->picks = malloc((shares->count + 1) * sizeof(*shares->picks));
    if (!all || !shares->picks) {
        free(all);
        return -1;
    }
    for (size_t i = 0; i < total; i++)
        all[i] = (uint32_t)i;
    shuffle(all, total, seed, 0);
    memcpy(shares->picks, all + (size_t)rank * shares->count,
           shares->count * sizeof(*all));
    shares->next = shares->count;
    free(all);
    return 0;
}

void shares_destroy(struct shares *shares)
{
    free(shares->picks);
    shares->picks = NULL;
}

const uint32_t *shares_take(struct shares *shares, size_t batch)
{
    if (shares->next + batch > shares->count) {
        shares->epoch++;
        shuffle(shares->picks, shares->count, shares->seed + shares->epoch,
                (uint32_t)shares->rank + 1);
        shares->next = 0;
    }
    shares->next += batch;
    return shares->picks + shares->next - batch;
}

uint32_t shares_at(struct shares *shares, uint64_t number)
{
    /* epoch 0 means: not shuffled yet */
    const uint64_t epoch = number / shares->count + 1;

    assert(shares->ranks == 1);
    if (shares->epoch != epoch) {
        for (size_t i = 0; i < shares->count; i++)
            shares->picks[i] = (uint32_t)i;
        shuffle(shares->picks, shares->count, shares->seed + epoch, 1);
        shares->epoch = epoch;
    }
    return shares->picks[number % shares->count];
}
