/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group's state: named sections (base/sections.h) with the magic "TRIBGRUP".
 *
 *     group     struct about
 *     tensors   struct row for each tensor
 *     bucket    for each bucket: the state of its plan (comm/state/plan_state.c)
 *
 * The buckets are part of the state: they may depend on times (cycle.c), and determine
 * how sums are rounded.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sections.h"
#include "comm/core/communicator.h"
#include "comm/tensors/tensor_group.h"

static const struct trib_sections_kind kind = {"TRIBGRUP", 2, "a group"};

struct about {
    uint64_t n_tensors;
    uint32_t n_buckets;
    uint32_t timed; /* 1: the buckets were formed by times */
};

struct row {
    uint64_t digest; /* of the tensor's description */
    uint32_t bucket, zero;
};
_Static_assert(sizeof(struct row) == 16, "row has no padding");

static trib_status_t check_idle(struct trib_group *g, const char *call)
{
    char text[80];

    trib_status_t st = trib_comm_ours(g->comm, call);
    if (st == TRIB_OK)
        st = g->step.failed ? g->step.failed : g->comm->engine.failed;
    if (st != TRIB_OK || !g->step.running)
        return st;
    return trib_comm_fail(g->comm, TRIB_ERR_BUSY,
                          "%s is in a step: wait for it before %s",
                          trib_group_says(g, text), call);
}

/* ---- save ------------------------------------------------------------------------ */

/* Add all sections; *bytes_out is their size, even without room for them. */
static trib_status_t save(const struct trib_group *g, void *state, size_t room,
                          size_t *bytes_out)
{
    struct trib_sections_writer w = trib_sections_begin(state, room);
    const struct about about = {.n_tensors = g->n,
                                .n_buckets = g->buckets.n,
                                .timed = g->opts.cycle_us && !g->measure};
    struct trib_error err = {0};
    trib_status_t st = TRIB_OK;
    size_t of;

    assert(!g->step.running);
    (void)trib_sections_add(&w, "group", &about, sizeof(about));
    uint8_t *at = trib_sections_add(&w, "tensors", NULL, g->n * sizeof(struct row));
    for (size_t i = 0; at && i < g->n; i++, at += sizeof(struct row)) {
        const struct row r = {.digest = trib_group_tensor_digest(&g->tensors[i]),
                              .bucket = g->tensors[i].bucket};
        memcpy(at, &r, sizeof(r));
    }
    for (uint32_t b = 0; b < g->buckets.n && st == TRIB_OK; b++) {
        trib_plan_t *plan = g->buckets.at[b].plan;
        st = trib_plan_state_save(plan, NULL, 0, &of);
        at = st == TRIB_OK ? trib_sections_add(&w, "bucket", NULL, of) : NULL;
        if (at)
            st = trib_plan_state_save(plan, at, of, &of);
    }
    assert(!at || w.bytes <= room);
    *bytes_out = w.bytes;
    if (st != TRIB_OK)
        return st;
    st = trib_sections_finish(&w, &kind, &err);
    return st == TRIB_OK ? st : trib_comm_fail(g->comm, st, "%s", err.text);
}

trib_status_t trib_group_state_save(trib_group_t *g, void *state, size_t bytes,
                                    size_t *bytes_out)
{
    if (!g)
        return TRIB_ERR_INVALID;
    if (!bytes_out)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "trib_group_state_save needs bytes_out, and it is NULL");
    const trib_status_t st = check_idle(g, "trib_group_state_save");
    return st == TRIB_OK ? save(g, state, bytes, bytes_out) : st;
}

/* ---- load ------------------------------------------------------------------------ */

/* A parsed group state. trib_plan_state_load checks the plan states in it. */
struct contents {
    struct about about;
    uint32_t *assign; /* [n] bucket of each tensor */
    struct trib_section *plans; /* [n_buckets] */
};

/* Read each tensor's bucket. */
static trib_status_t read_rows(struct trib_group *g, struct trib_sections *r,
                               struct contents *c, struct trib_error *err)
{
    struct trib_section rows;
    struct row row;
    trib_status_t st = trib_sections_next(r, "tensors", err, &rows);

    if (st == TRIB_OK &&
        (c->about.n_tensors != g->n || rows.bytes != g->n * sizeof(row)))
        st = trib_fail(err, TRIB_ERR_INVALID,
                       "the state belongs to a group of %" PRIu64 " tensors, this "
                       "group has %zu",
                       c->about.n_tensors, g->n);
    for (size_t i = 0; i < g->n && st == TRIB_OK; i++) {
        memcpy(&row, rows.data + i * sizeof(row), sizeof(row));
        c->assign[i] = row.bucket;
        if (row.digest != trib_group_tensor_digest(&g->tensors[i]))
            st =
                trib_fail(err, TRIB_ERR_INVALID,
                          "tensor \"%s\": the state has another tensor %zu: it differs "
                          "in name, count, dtype, priority, codec or feedback",
                          g->tensors[i].desc.name, i);
    }
    return st;
}

static trib_status_t read_all(struct trib_group *g, const void *state, size_t bytes,
                              struct contents *c)
{
    struct trib_error err = {0};
    struct trib_sections r;

    trib_status_t st = trib_sections_open(&kind, state, bytes, &err, &r);
    if (st == TRIB_OK)
        st = trib_sections_copy(&r, "group", &c->about, sizeof(c->about), &err);
    if (st == TRIB_OK)
        st = read_rows(g, &r, c, &err);
    if (st == TRIB_OK && (c->about.n_buckets > g->n ||
                          !trib_buckets_are_valid(g, c->assign, c->about.n_buckets)))
        st = trib_fail(&err, TRIB_ERR_INVALID,
                       "the state of a group has impossible buckets");
    for (uint32_t b = 0; st == TRIB_OK && b < c->about.n_buckets; b++)
        st = trib_sections_next(&r, "bucket", &err, &c->plans[b]);
    if (st == TRIB_OK)
        st = trib_sections_close(&r, &err);
    return st == TRIB_OK ? st : trib_comm_fail(g->comm, st, "%s", err.text);
}

static bool has_these_buckets(const struct trib_group *g, const uint32_t *assign,
                              uint32_t n_buckets)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->tensors[i].bucket != assign[i])
            return false;
    return g->buckets.n == n_buckets;
}

static trib_status_t load_plans(struct trib_group *g, const struct trib_section *plans)
{
    char why[400];

    for (uint32_t b = 0; b < g->buckets.n; b++) {
        const struct trib_bucket *bucket = &g->buckets.at[b];
        const trib_status_t st =
            trib_plan_state_load(bucket->plan, plans[b].data, plans[b].bytes);
        if (st == TRIB_OK)
            continue;
        snprintf(why, sizeof(why), "%s", trib_last_error(g->comm));
        return trib_comm_fail(g->comm, st, "tensor \"%s\": %s",
                              trib_bucket_tensor(g, bucket, 0)->desc.name, why);
    }
    return TRIB_OK;
}

/* Measure the next step if the saved group had not measured its first. */
static trib_status_t measure_as(struct trib_group *g, bool timed)
{
    if (!timed)
        return g->measure ? TRIB_OK : trib_cycle_make(g);
    trib_cycle_free(g);
    return TRIB_OK;
}

/* Load; after an error the group may have changed. */
static trib_status_t load(struct trib_group *g, const void *state, size_t bytes)
{
    struct contents c = {.assign = malloc((g->n + 1) * sizeof(*c.assign)),
                         .plans = malloc((g->n + 1) * sizeof(*c.plans))};

    trib_status_t st = c.assign && c.plans
                           ? read_all(g, state, bytes, &c)
                           : trib_comm_fail(g->comm, TRIB_ERR_NO_MEMORY,
                                            "no memory to load the state of a group");
    if (st == TRIB_OK && !has_these_buckets(g, c.assign, c.about.n_buckets))
        st = trib_buckets_form(g, c.assign, c.about.n_buckets);
    if (st == TRIB_OK)
        st = load_plans(g, c.plans);
    if (st == TRIB_OK)
        st = measure_as(g, c.about.timed);
    free(c.assign);
    free(c.plans);
    return st;
}

trib_status_t trib_group_state_load(trib_group_t *g, const void *state, size_t bytes)
{
    char why[400];
    size_t room;

    if (!g)
        return TRIB_ERR_INVALID;
    trib_status_t st = check_idle(g, "trib_group_state_load");
    if (st == TRIB_OK)
        st = save(g, NULL, 0, &room);
    if (st != TRIB_OK)
        return st;
    uint8_t *before = malloc(room);
    st = before ? save(g, before, room, &room)
                : trib_comm_fail(g->comm, TRIB_ERR_NO_MEMORY,
                                 "no memory to load the state of a group");
    if (st == TRIB_OK)
        st = load(g, state, bytes);
    if (st != TRIB_OK && before) {
        snprintf(why, sizeof(why), "%s", trib_last_error(g->comm));
        if (load(g, before, room) == TRIB_OK)
            (void)trib_comm_fail(g->comm, st, "%s", why);
    }
    free(before);
    return st;
}
