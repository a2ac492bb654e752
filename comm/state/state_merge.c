/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merge the states saved by N ranks into states for M ranks.
 *
 * A rank loads the sum of the vectors of its given states, so the sum over all ranks is
 * preserved. A mean divides by the number of ranks: there each vector is scaled by M /
 * N to preserve the mean. Vectors that are equal on all ranks are copied. Each rank
 * edits a state saved by its own plan and loads it, which works for plans of every
 * kind.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/exchange.h"
#include "comm/plan/plan_feedback.h"
#include "comm/state/offers.h"
#include "comm/state/plan_state.h"
#include "pipeline/payload/error_feedback.h"

enum { SAVERS_MAX = 65536 };

/* A message to all ranks about the states given to this one. */
struct offer {
    struct trib_offer head; /* gives: number of states; if 0, the rest is 0, too */
    uint32_t savers; /* number of ranks that saved */
    uint32_t own; /* 1: its only state is its own, of as many ranks */
    uint32_t step;
    uint32_t unused;
    struct trib_identity_kept kept;
};

struct merge {
    struct trib_plan *plan;
    const void *const *states;
    const size_t *bytes;
    size_t n;
    uint8_t *into; /* a state of this plan, turned into the merged one */
    size_t into_bytes;
    struct trib_sections ours; /* into, after its section "plan" */
    struct trib_state_plan about; /* that section */
    struct trib_error err; /* of the given states */
    struct offer mine;
    struct offer *all; /* [ranks] */
    int first; /* the lowest rank that was given a state */
    uint8_t *given; /* one bit per saver whose state this rank was given */
    uint8_t *all_given; /* [ranks] of `given` */
};

/* Return the bytes of a section of the merged state, or NULL. */
static uint8_t *into_section(struct merge *m, const char *name, size_t *len_out)
{
    const struct trib_section s = trib_sections_find(m->into, m->into_bytes, name);

    assert(m->into);
    *len_out = s.bytes;
    return s.data ? m->into + (s.data - m->into) : NULL;
}

/* ---- local states ---------------------------------------------------------------- */

/* Return the number of elements of each rank's vector. */
static uint64_t total_of(const struct trib_state_plan *p)
{
    return p->coll == TRIB_REDUCE_SCATTER ? p->count * p->ranks : p->count;
}

/* Check that the state has the sections of the plan, with equal lengths. A model's
 * learned state is not merged. */
static trib_status_t check_sections(struct merge *m, struct trib_sections theirs)
{
    struct trib_sections ours = m->ours;
    struct trib_section a, b;
    trib_status_t st = TRIB_OK;

    while (st == TRIB_OK && trib_sections_step(&ours, &a)) {
        st = trib_sections_next(&theirs, a.name, &m->err, &b);
        if (st == TRIB_OK)
            st = trib_state_check_section(&b, a.data, a.bytes, &m->err);
    }
    return st == TRIB_OK ? trib_sections_close(&theirs, &m->err) : st;
}

static trib_status_t check_total(struct merge *m, const struct trib_state_plan *theirs)
{
    if (theirs->ranks < 1 || theirs->ranks > SAVERS_MAX ||
        theirs->rank >= theirs->ranks)
        return trib_fail(&m->err, TRIB_ERR_INVALID,
                         "the state belongs to rank %" PRIu32 " of %" PRIu32,
                         theirs->rank, theirs->ranks);
    if (m->mine.savers && theirs->ranks != m->mine.savers)
        return trib_fail(&m->err, TRIB_ERR_INVALID,
                         "states of %" PRIu32 " and of %" PRIu32 " ranks cannot be "
                         "merged: pass the states of one save",
                         m->mine.savers, theirs->ranks);
    if (total_of(theirs) != total_of(&m->about))
        return trib_fail(&m->err, TRIB_ERR_INVALID,
                         "the state has vectors of %" PRIu64 " elements, the plan has "
                         "vectors of %" PRIu64,
                         total_of(theirs), total_of(&m->about));
    return TRIB_OK;
}

/* Record the saver and the step of the state. */
static trib_status_t note(struct merge *m, const void *state, size_t bytes,
                          const struct trib_state_plan *p)
{
    const uint8_t bit = (uint8_t)(1u << p->rank % 8);
    struct trib_identity_kept kept;
    uint32_t step;

    if (!m->given)
        m->given = calloc(1, (p->ranks + 7) / 8);
    if (!m->given)
        return trib_fail(&m->err, TRIB_ERR_NO_MEMORY,
                         "no memory for a list of %" PRIu32 " ranks", p->ranks);
    if (m->given[p->rank / 8] & bit)
        return trib_fail(&m->err, TRIB_ERR_INVALID,
                         "the state of rank %" PRIu32 " was passed twice", p->rank);
    m->given[p->rank / 8] |= bit;
    assert(p->rank < p->ranks);
    memcpy(&step, trib_sections_find(state, bytes, "step").data, sizeof(step));
    memcpy(&kept, trib_sections_find(state, bytes, "noise").data, sizeof(kept));
    if (m->mine.savers &&
        (step != m->mine.step || memcmp(&kept, &m->mine.kept, sizeof(kept)) != 0))
        return trib_fail(&m->err, TRIB_ERR_INVALID,
                         "the state of rank %" PRIu32 " is from step %" PRIu32 ", "
                         "another one from step %" PRIu32 ": pass the states of one "
                         "save of one run",
                         p->rank, step, m->mine.step);
    m->mine.savers = p->ranks;
    m->mine.step = step;
    m->mine.kept = kept;
    m->mine.own = m->n == 1 && p->rank == m->about.rank && p->ranks == m->about.ranks;
    return TRIB_OK;
}

static trib_status_t take(struct merge *m, const void *state, size_t bytes)
{
    struct trib_state_plan p;
    struct trib_sections r;

    trib_status_t st = trib_state_open(state, bytes, &m->err, &r, &p);
    if (st == TRIB_OK)
        st = trib_state_check_kind(&p, &m->about, &m->err);
    if (st == TRIB_OK)
        st = check_total(m, &p);
    if (st == TRIB_OK)
        st = check_sections(m, r);
    return st == TRIB_OK ? note(m, state, bytes, &p) : st;
}

/* Save a state of this plan and check the given states against it. */
static trib_status_t prepare(struct merge *m)
{
    struct trib_comm *comm = m->plan->comm;

    if (m->n && (!m->states || !m->bytes))
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "trib_plan_state_load_from of %zu states: %s is NULL",
                              m->n, m->states ? "bytes" : "states");
    trib_status_t st = trib_plan_state_save(m->plan, NULL, 0, &m->into_bytes);
    if (st != TRIB_OK)
        return st;
    m->into = malloc(m->into_bytes);
    if (!m->into)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY,
                              "no memory for a state of %zu bytes", m->into_bytes);
    st = trib_plan_state_save(m->plan, m->into, m->into_bytes, &m->into_bytes);
    if (st != TRIB_OK)
        return st;
    st = trib_state_open(m->into, m->into_bytes, &m->err, &m->ours, &m->about);
    for (size_t i = 0; i < m->n && st == TRIB_OK; i++)
        st = take(m, m->states[i], m->bytes[i]);
    m->mine.head.gives = (uint32_t)m->n;
    return st == TRIB_OK ? st : trib_comm_fail(comm, st, "%s", m->err.text);
}

/* ---- comparison of offers -------------------------------------------------------- */

/* Check that all states are of one save of one run. */
static trib_status_t compare_offers(struct merge *m)
{
    struct trib_comm *comm = m->plan->comm;
    const struct offer *a = &m->all[m->first];

    for (int r = 0; r < comm->engine.size; r++) {
        const struct offer *b = &m->all[r];
        if (b->head.gives && (a->savers != b->savers || a->step != b->step ||
                              memcmp(&a->kept, &b->kept, sizeof(a->kept)) != 0))
            return trib_comm_fail(comm, TRIB_ERR_INVALID,
                                  "rank %d was passed states of %" PRIu32 " ranks at "
                                  "step %" PRIu32 ", rank %d of %" PRIu32 " ranks at "
                                  "step %" PRIu32 ": pass the states of one save of "
                                  "one run",
                                  m->first, a->savers, a->step, r, b->savers, b->step);
    }
    return TRIB_OK;
}

/* Check that each saver's state was given exactly once. */
static trib_status_t compare_savers(struct merge *m, uint32_t savers)
{
    struct trib_comm *comm = m->plan->comm;
    const size_t row = (savers + 7) / 8;

    assert(savers > 0 && savers <= SAVERS_MAX);
    for (uint32_t saver = 0; saver < savers; saver++) {
        int by = -1;
        for (int r = 0; r < comm->engine.size; r++) {
            if (!(m->all_given[(size_t)r * row + saver / 8] >> saver % 8 & 1))
                continue;
            if (by >= 0)
                return trib_comm_fail(comm, TRIB_ERR_INVALID,
                                      "the state of rank %" PRIu32 " was passed to "
                                      "rank %d and to rank %d: pass it to one",
                                      saver, by, r);
            by = r;
        }
        if (by < 0)
            return trib_comm_fail(comm, TRIB_ERR_INVALID,
                                  "no rank was passed the state of rank %" PRIu32 " of "
                                  "%" PRIu32,
                                  saver, savers);
    }
    return TRIB_OK;
}

static struct trib_offers offers_of(const struct merge *m)
{
    return (struct trib_offers){.comm = m->plan->comm,
                                .call = "trib_plan_state_load_from",
                                .what = "a state",
                                .bytes = sizeof(m->mine)};
}

static trib_status_t exchange_offers(struct merge *m)
{
    struct trib_comm *comm = m->plan->comm;
    struct trib_offers o = offers_of(m);
    trib_status_t st = trib_offers_exchange(&o, &m->mine);

    m->all = o.all;
    m->first = o.first;
    if (st == TRIB_OK)
        st = compare_offers(m);
    if (st != TRIB_OK)
        return st;
    const uint32_t savers = m->all[m->first].savers;
    const size_t row = (savers + 7) / 8;
    if (!m->given)
        m->given = calloc(1, row);
    m->all_given = malloc((size_t)comm->engine.size * row);
    if (!m->given || !m->all_given) { /* the other ranks enter the exchange */
        trib_comm_fail_all(comm, TRIB_ERR_NO_MEMORY, "no memory for lists of ranks");
        return TRIB_ERR_NO_MEMORY;
    }
    st = trib_comm_exchange(comm, TRIB_ALLGATHER, m->given, row, m->all_given);
    return st == TRIB_OK ? compare_savers(m, savers) : st;
}

/* ---- merged state ---------------------------------------------------------------- */

/* Compute a vector of the merged state: the scaled sum over the given states. */
static void sum_vector(struct merge *m, const char *name, double scale)
{
    size_t len = 0;
    float *to = (float *)(void *)into_section(m, name, &len);
    const size_t count = len / sizeof(*to);

    if (!to)
        return;
    memset(to, 0, len);
    for (size_t k = 0; k < m->n; k++) {
        const struct trib_section from =
            trib_sections_find(m->states[k], m->bytes[k], name);
        assert(from.data && from.bytes == len);
        for (size_t i = 0; i < count; i++) {
            float x;
            memcpy(&x, from.data + i * sizeof(x), sizeof(x));
            to[i] = (float)((double)to[i] + (double)x * scale);
        }
    }
}

/* Copy a vector that is equal on all ranks; ranks without a state receive it from one
 * that has it. */
static trib_status_t copy_vector(struct merge *m, const char *name)
{
    struct trib_comm *comm = m->plan->comm;
    size_t len = 0;
    float *to = (float *)(void *)into_section(m, name, &len);
    bool lacks = false;

    assert(!to || len % sizeof(*to) == 0);
    for (int r = 0; r < comm->engine.size; r++)
        lacks |= !m->all[r].head.gives;
    if (to && m->n)
        memcpy(to, trib_sections_find(m->states[0], m->bytes[0], name).data, len);
    return to && lacks ? trib_broadcast(comm, to, len / sizeof(*to), TRIB_F32, m->first)
                       : TRIB_OK;
}

/* A model starts over: the plan keeps its own model, step and key. */
static void go_on(struct merge *m, const struct offer *from)
{
    struct trib_comm *comm = m->plan->comm;
    size_t len;

    if (!into_section(m, "model", &len)) {
        memcpy(into_section(m, "step", &len), &from->step, sizeof(from->step));
        memcpy(into_section(m, "noise", &len), &from->kept, sizeof(from->kept));
    } else if (comm->engine.rank == 0) {
        trib_log(&comm->log, TRIB_LOG_WARN, "codec",
                 "the states of %" PRIu32 " ranks are loaded by %d: the codec's model "
                 "is not carried over and is trained from scratch",
                 from->savers, comm->engine.size);
    }
    uint8_t *sent = into_section(m, "sent", &len);
    if (sent)
        memset(sent, 0, len);
}

static trib_status_t merge(struct merge *m)
{
    const struct offer *from = &m->all[m->first];
    const struct trib_feedback_ops *ops =
        trib_feedback_of(&trib_plan_hold(m->plan)->run)->ops;
    const double scale =
        m->about.op == TRIB_MEAN ? (double)m->about.ranks / (double)from->savers : 1;
    trib_status_t st = TRIB_OK;

    trib_plan_let_go(m->plan);
    sum_vector(m, "residual", scale);
    for (int i = 0; ops && ops->states[i].name && st == TRIB_OK; i++) {
        if (ops->states[i].shared)
            st = copy_vector(m, ops->states[i].name);
        else
            sum_vector(m, ops->states[i].name, scale);
    }
    if (st != TRIB_OK)
        return st;
    go_on(m, from);
    trib_sections_seal(m->into, m->into_bytes);
    return trib_plan_state_load(m->plan, m->into, m->into_bytes);
}

/* Return true if each rank was given its own state: then everything is carried over. */
static bool all_own(const struct merge *m)
{
    for (int r = 0; r < m->plan->comm->engine.size; r++)
        if (!m->all[r].own)
            return false;
    return true;
}

/* Load each rank's own state. If one plan refuses its state, for example a model,
 * restore the previous states of all plans. */
static trib_status_t load_own(struct merge *m)
{
    const trib_status_t mine = trib_plan_state_load(m->plan, m->states[0], m->bytes[0]);
    struct trib_offers o = offers_of(m);

    m->mine.head.status = mine;
    const trib_status_t st = trib_offers_exchange(&o, &m->mine);
    free(o.all);
    if (st != TRIB_OK && mine == TRIB_OK)
        (void)trib_plan_state_load(m->plan, m->into, m->into_bytes);
    return st;
}

trib_status_t trib_plan_state_load_from(trib_plan_t *plan, const void *const *states,
                                        const size_t *bytes, size_t n)
{
    struct merge m = {.plan = plan, .states = states, .bytes = bytes, .n = n};

    if (!plan)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_plan_idle(plan, "trib_plan_state_load_from");
    if (st != TRIB_OK)
        return st;
    if (plan->ops->busy(plan))
        return trib_comm_fail(
            plan->comm, TRIB_ERR_BUSY,
            "the plan is still running: wait for it before trib_plan_state_load_from");
    m.mine.head.status = prepare(&m);
    assert(m.mine.head.status != TRIB_OK || m.into);
    st = exchange_offers(&m);
    if (st == TRIB_OK)
        st = all_own(&m) ? load_own(&m) : merge(&m);
    free(m.all_given);
    free(m.given);
    free(m.all);
    free(m.into);
    return st;
}
