/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks as code words that add without decoding.
 *
 * Every rank encodes its contribution once; from then on words are merged and relayed, and
 * each rank decodes the finished one. So a chunk's value is the word in its store: first that
 * of the own contribution, then that of the sum so far, at last that of the result. Who sends
 * the own contribution does so before the sum takes its place, as it does in place (STABLE in
 * schedule.h).
 */
#include "pipeline/payload/payload_raw.h"

#include <string.h>

/* The words of a task, in the order of ranks; a sum made before, which is not `own`, first. */
static trib_status_t gather_words(struct trib_engine *e, struct trib_run *run,
                                  const struct trib_task *t, struct trib_word mine,
                                  size_t *n_out)
{
    const struct trib_program *p = &run->program;
    bool own = t->flags & TRIB_TASK_OWN, due = !(t->flags & TRIB_TASK_EMPTY);

    *n_out = 0;
    for (uint32_t i = 0; i < t->n_members; i++) {
        const struct trib_member *m = &p->members[t->member + i];
        int peer = p->edges[m->edge].peer;
        struct trib_link *l = &e->links[peer];
        struct trib_cell *cell = trib_link_peek(l, &e->arena, m->lane);
        size_t len = cell->frame.bytes;
        if (cell->frame.kind != TRIB_FRAME_DATA || len > e->arena.slot_bytes)
            return TRIB_ERR_PROTOCOL;
        if (due && (!own || peer > e->rank)) {
            run->words[(*n_out)++] = mine;
            due = false;
        }
        run->words[(*n_out)++] = (struct trib_word){
            .src = trib_link_received(l, &e->arena, m->lane, cell), .len = len};
    }
    if (due)
        run->words[(*n_out)++] = mine;
    return TRIB_OK;
}

/* A sum that was made behind run->word becomes the store's; where peers read, it is there. */
static void keep_sum(struct trib_run *run, struct trib_store *s, size_t len)
{
    uint8_t *sum = run->word;

    if (run->values_read) {
        memcpy(s->bytes, sum, len);
        return;
    }
    run->word = s->bytes;
    s->bytes = sum;
}

trib_status_t trib_linear_reduce(struct trib_engine *e, struct trib_run *run,
                                 struct trib_task *t, const struct trib_chunk *c)
{
    bool own = t->flags & TRIB_TASK_OWN, finish = t->flags & TRIB_TASK_FINISH;
    bool first = t->flags & TRIB_TASK_EMPTY;
    struct trib_store *s =
        own ? trib_coded_own(e, run, t, c, false) : trib_store_of(run, t, c);
    uint8_t *sum = run->values_read && first ? s->bytes : run->word;
    size_t n, len;

    const struct trib_word mine = {.src = s->bytes, .len = s->len};
    trib_status_t st = gather_words(e, run, t, mine, &n);
    struct trib_merge m = {.words = run->words,
                           .n_words = n,
                           .n = c->n,
                           .piece = run->desc.piece,
                           .of_plan = true,
                           .final = finish,
                           .ranks = t->flags & TRIB_TASK_MEAN ? (uint32_t)e->ranks : 0,
                           .key = {.seed = run->desc.seed,
                                   .step = run->step,
                                   .stream = TRIB_STREAM_OF_SUMS,
                                   .index = c->first}};
    if (st == TRIB_OK)
        st = trib_codec_merge(run->desc.codec, &m, sum, &len);
    if (st != TRIB_OK)
        return st;
    if (sum == run->word)
        keep_sum(run, s, len);
    s->len = (uint32_t)len;
    s->round = t->done + 1;
    return finish ? trib_coded_value(e, run, c, s->bytes, s->len) : TRIB_OK;
}
