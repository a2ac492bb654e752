/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/run/pair_regions.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool trib_pair_regions_open(struct trib_pair_regions *r,
                            const struct trib_regions_rule *rule, size_t length)
{
    assert(rule->cell > 0 && rule->pairs > 0 && rule->piece >= rule->cell);
    *r = (struct trib_pair_regions){.n_cells = (length + rule->cell - 1) / rule->cell};
    r->counts = calloc(r->n_cells + 1, sizeof(*r->counts));
    return r->counts;
}

void trib_pair_regions_close(struct trib_pair_regions *r)
{
    free(r->counts);
    free(r->at);
    *r = (struct trib_pair_regions){.n = 0};
}

void trib_pair_regions_count(struct trib_pair_regions *r,
                             const struct trib_regions_rule *rule,
                             const uint64_t *indices, size_t n)
{
    memset(r->counts, 0, r->n_cells * sizeof(*r->counts));
    for (size_t i = 0, from = 0; i < n; from = i) {
        const size_t c = (size_t)(indices[i] / rule->cell);
        const uint64_t end = (uint64_t)(c + 1) * rule->cell;
        assert(c < r->n_cells);
        while (i < n && indices[i] < end)
            i++;
        r->counts[c] = (uint32_t)(i - from);
    }
}

/* Append a region; return false if out of memory. */
static bool add(struct trib_pair_regions *r, size_t first, size_t end)
{
    if (r->n == r->room) {
        const size_t room = 2 * r->room + 64;
        struct trib_region *at = realloc(r->at, room * sizeof(*at));
        if (!at)
            return false;
        r->at = at;
        r->room = room;
    }
    r->at[r->n++] = (struct trib_region){first, end - first};
    return true;
}

/* State of the walk over the cells. */
struct cutting {
    size_t open, end; /* elements of the growing region; empty if equal */
    uint64_t pairs; /* its pairs */
    uint64_t before; /* pairs of the regions before it */
    uint64_t total;
    uint64_t parts; /* number of regions if cells could be divided */
};

static bool close_region(struct trib_pair_regions *r, struct cutting *w)
{
    const bool any = w->pairs > 0;

    w->before += w->pairs;
    w->pairs = 0;
    return !any || add(r, w->open, w->end);
}

/* Return true if the region has its share: the pairs up to its end reach the share of
 * the regions so far. */
static bool has_share(const struct cutting *w, uint64_t made)
{
    return (double)(w->before + w->pairs) * (double)w->parts >=
           (double)w->total * (double)(made + 1);
}

static bool take_cell(struct trib_pair_regions *r, const struct trib_regions_rule *rule,
                      struct cutting *w, size_t first, size_t end, uint32_t pairs)
{
    if (!pairs)
        return true;
    if (w->pairs && (w->pairs + pairs > rule->pairs || end - w->open > rule->piece) &&
        !close_region(r, w))
        return false;
    if (!w->pairs)
        w->open = first;
    w->end = end;
    w->pairs += pairs;
    return !has_share(w, r->n) || close_region(r, w);
}

bool trib_pair_regions_cut(struct trib_pair_regions *r,
                           const struct trib_regions_rule *rule, size_t length,
                           size_t round)
{
    struct cutting w = {.total = 0};
    bool room = true;

    assert(round > 0);
    r->n = 0;
    for (size_t c = 0; c < r->n_cells; c++)
        w.total += r->counts[c];
    const uint64_t usual = rule->pairs / 2 * round + 1; /* pairs in a round */
    w.parts = (w.total + usual - 1) / usual * round;
    for (size_t c = 0; room && c < r->n_cells; c++) {
        const size_t first = c * rule->cell, end = first + rule->cell;
        room = take_cell(r, rule, &w, first, end < length ? end : length, r->counts[c]);
    }
    room = room && close_region(r, &w);
    while (room && (!r->n || r->n % round))
        room = add(r, length, length);
    return room;
}
