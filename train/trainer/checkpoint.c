/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checkpoints: named sections (base/sections.h) with the magic "TRIBTRN".
 *
 *     trainer       struct about
 *     parameters, optimizer, …    what trib_train_sections lists
 *     ended, sum    for each sum: u64 number of starts that have ended, and its state
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sections.h"
#include "train/trainer/trainer.h"

static const struct trib_sections_kind kind = {"TRIBTRN", 3, "a trainer"};

struct about {
    uint32_t rank, ranks;
    uint64_t kind; /* digest of the description (trib_train_kind) */
    uint64_t number, updates; /* gradients; steps of the optimizer */
};

static trib_status_t check_rest(struct trib_trainer *t)
{
    trib_error_clear(&t->err);
    if (t->begun || (t->choice.row->ops->busy && t->choice.row->ops->busy(t)))
        return trib_fail(&t->err, TRIB_ERR_BUSY,
                         t->begun ? "step %" PRIu64 " has begun: end it first"
                                  : "the sum of step %" PRIu64
                                    " is pending: call trib_trainer_settle first",
                         t->begun ? t->number : t->number - 1);
    return TRIB_OK;
}

static trib_status_t add_sum(struct trib_sections_writer *w, struct trib_train_sum *sum)
{
    const uint64_t ended = trib_train_sum_ended(sum);
    size_t bytes;

    trib_status_t st = trib_train_sum_save(sum, NULL, 0, &bytes);
    if (st != TRIB_OK)
        return st;
    (void)trib_sections_add(w, "ended", &ended, sizeof(ended));
    void *at = trib_sections_add(w, "sum", NULL, bytes);
    return at ? trib_train_sum_save(sum, at, bytes, &bytes) : TRIB_OK;
}

static trib_status_t add_all(struct trib_trainer *t, struct trib_sections_writer *w)
{
    struct trib_train_field fields[TRIB_TRAIN_SECTIONS];
    const int n = trib_train_sections(t, fields);
    const struct about about = {.rank = (uint32_t)t->rank,
                                .ranks = (uint32_t)t->ranks,
                                .kind = trib_train_kind(t),
                                .number = t->number,
                                .updates = t->optimizer.steps};
    trib_status_t st = TRIB_OK;

    (void)trib_sections_add(w, "trainer", &about, sizeof(about));
    for (int i = 0; i < n; i++)
        (void)trib_sections_add(w, fields[i].name, fields[i].data, fields[i].bytes);
    for (int i = 0; i < t->n_sums && st == TRIB_OK; i++)
        st = trib_train_set_sum_error(t, *t->sums[i], add_sum(w, *t->sums[i]));
    return st;
}

trib_status_t trib_trainer_save(trib_trainer_t *trainer, void *state, size_t bytes,
                                size_t *bytes_out)
{
    const struct trib_strategy_ops *ops = trainer->choice.row->ops;
    struct trib_sections_writer w = trib_sections_begin(state, bytes);
    trib_status_t st = check_rest(trainer);

    if (st == TRIB_OK && state && ops->collect)
        st = ops->collect(trainer);
    if (st == TRIB_OK)
        st = add_all(trainer, &w);
    if (st != TRIB_OK)
        return st;
    *bytes_out = w.bytes;
    return trib_sections_finish(&w, &kind, &trainer->err);
}

static trib_status_t check_about(struct trib_trainer *t, const struct about *about)
{
    if (about->rank != (uint32_t)t->rank || about->ranks != (uint32_t)t->ranks)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state belongs to rank %u of %u, but this is rank %d of "
                         "%d",
                         about->rank, about->ranks, t->rank, t->ranks);
    if (about->kind != trib_train_kind(t))
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state belongs to another strategy, optimizer or vector");
    return TRIB_OK;
}

/* Find the vectors and fields. */
static trib_status_t find_fields(struct trib_trainer *t, struct trib_sections *r,
                                 const struct trib_train_field *fields, int n,
                                 struct trib_section *saved)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < n && st == TRIB_OK; i++) {
        st = trib_sections_next(r, fields[i].name, &t->err, &saved[i]);
        if (st == TRIB_OK && saved[i].bytes != fields[i].bytes)
            st = trib_fail(&t->err, TRIB_ERR_INVALID,
                           "the state belongs to other vectors");
    }
    return st;
}

/* A sum's state to load, and its own state, in case another sum or rank refuses. */
struct sum_state {
    const uint8_t *saved;
    size_t bytes;
    uint64_t ended;
    bool loaded;
    void *own; /* NULL: not needed */
    size_t own_bytes;
    uint64_t own_ended;
};

/* Find the states of all sums, which are the last sections. */
static trib_status_t find_sums(struct trib_trainer *t, struct trib_sections *r,
                               struct sum_state *sums)
{
    struct trib_section s;
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < t->n_sums && st == TRIB_OK; i++) {
        st = trib_sections_copy(r, "ended", &sums[i].ended, sizeof(sums[i].ended),
                                &t->err);
        if (st == TRIB_OK)
            st = trib_sections_next(r, "sum", &t->err, &s);
        if (st == TRIB_OK) {
            sums[i].saved = s.data;
            sums[i].bytes = s.bytes;
        }
    }
    return st == TRIB_OK ? trib_sections_close(r, &t->err) : st;
}

static trib_status_t keep_own(struct trib_trainer *t, struct trib_train_sum *sum,
                              struct sum_state *s)
{
    s->own_ended = trib_train_sum_ended(sum);
    trib_status_t st = trib_train_sum_save(sum, NULL, 0, &s->own_bytes);
    if (st != TRIB_OK)
        return trib_train_set_sum_error(t, sum, st);
    s->own = malloc(s->own_bytes);
    if (!s->own)
        return trib_fail(&t->err, TRIB_ERR_NO_MEMORY,
                         "no memory for %zu bytes of state", s->own_bytes);
    st = trib_train_sum_save(sum, s->own, s->own_bytes, &s->own_bytes);
    return trib_train_set_sum_error(t, sum, st);
}

/* Load all sums. A sum that refuses its state does not change. */
static trib_status_t load_sums(struct trib_trainer *t, struct sum_state *sums)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < t->n_sums && st == TRIB_OK; i++) {
        struct trib_train_sum *sum = *t->sums[i];
        if (i + 1 < t->n_sums || t->choice.row->ops->loaded)
            st = keep_own(t, sum, &sums[i]);
        if (st == TRIB_OK)
            st = trib_train_set_sum_error(
                t, sum,
                trib_train_sum_load(sum, sums[i].saved, sums[i].bytes, sums[i].ended));
        sums[i].loaded = st == TRIB_OK;
    }
    return st;
}

/* Return all loaded sums to their own states unless all have been loaded. */
static void end_sums(struct trib_trainer *t, struct sum_state *sums, bool all)
{
    for (int i = 0; i < t->n_sums; i++) {
        if (!all && sums[i].loaded && sums[i].own)
            (void)trib_train_sum_load(*t->sums[i], sums[i].own, sums[i].own_bytes,
                                      sums[i].own_ended);
        free(sums[i].own);
    }
}

/* Load the sums. After an error, also on another rank if the strategy then restores
 * state elsewhere, nothing has changed. */
static trib_status_t take(struct trib_trainer *t, trib_status_t found,
                          const struct trib_section *saved, int n,
                          struct sum_state *sums)
{
    const struct trib_strategy_ops *ops = t->choice.row->ops;
    trib_status_t st = found;

    for (int i = 0; i < n && st == TRIB_OK && ops->adopt; i++)
        st = ops->adopt(t, saved[i].name, saved[i].data);
    if (st == TRIB_OK)
        st = load_sums(t, sums);
    if (ops->loaded)
        st = trib_train_agree(t, st, "load its state");
    end_sums(t, sums, st == TRIB_OK);
    if (ops->adopted)
        ops->adopted(t, st == TRIB_OK);
    return st;
}

trib_status_t trib_trainer_load(trib_trainer_t *trainer, const void *state,
                                size_t bytes)
{
    struct trib_train_field fields[TRIB_TRAIN_SECTIONS];
    struct trib_section saved[TRIB_TRAIN_SECTIONS];
    const int n = trib_train_sections(trainer, fields);
    struct sum_state sums[TRIB_TRAIN_SUMS] = {{.own = NULL}};
    struct trib_sections r;
    struct about about;

    trib_status_t st = check_rest(trainer);
    if (st == TRIB_OK)
        st = trib_sections_open(&kind, state, bytes, &trainer->err, &r);
    if (st == TRIB_OK)
        st = trib_sections_copy(&r, "trainer", &about, sizeof(about), &trainer->err);
    if (st == TRIB_OK)
        st = check_about(trainer, &about);
    if (st == TRIB_OK)
        st = find_fields(trainer, &r, fields, n, saved);
    if (st == TRIB_OK)
        st = find_sums(trainer, &r, sums);
    st = take(trainer, st, saved, n, sums);
    if (st != TRIB_OK)
        return st;
    for (int i = 0; i < n; i++)
        memcpy(fields[i].data, saved[i].data, fields[i].bytes);
    trainer->number = about.number;
    trainer->optimizer.steps = about.updates;
    return trainer->choice.row->ops->loaded ? trainer->choice.row->ops->loaded(trainer)
                                            : TRIB_OK;
}
