/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Continue a plan's state in a plan of another communicator, with other ranks.
 *
 * A rank's residual is kept bit for bit: it belongs to this rank, whatever the other
 * ranks are. All ranks first exchange which plan and start their state belongs to, and
 * do nothing unless all can move it.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tributary/elastic.h>

#include "comm/auto/plan_auto.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/exchange.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_make.h"
#include "comm/state/offers.h"
#include "comm/state/plan_state.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/undo_log.h"

/* A message to all ranks about the local old plan. */
struct offer {
    struct trib_offer head;
    uint32_t rank; /* in the old plan's communicator */
    uint32_t unused;
    uint64_t steps; /* the caller's argument */
    uint64_t model_bytes; /* size of the model as of the end of start `steps`; or 0 */
    struct trib_identity_kept kept;
};
_Static_assert(sizeof(struct offer) == 48, "an offer has no padding");

struct mover {
    struct trib_comm *comm;
    const char *call; /* for error messages */
    struct trib_plan *plan, *from; /* from is NULL on a new rank */
    struct trib_plan *to_by, *from_by; /* the plans whose engines compute; valid while
                                        * both are held */
    struct offer mine;
    struct offer *all; /* [ranks] */
    int first; /* the lowest rank with an old plan */
    float *sums[TRIB_FEEDBACK_STATES]; /* recomputed states that all ranks share */
    uint8_t *model; /* serialized model to continue; or NULL */
    size_t model_bytes;
};

/* ---- local offer ----------------------------------------------------------------- */

/* Pin the computing engines until let_go: aggregators may come and go while the ranks
 * exchange messages. */
static void hold(struct mover *m)
{
    m->to_by = trib_plan_hold(m->plan);
    m->from_by = m->from ? trib_plan_hold(m->from) : NULL;
}

static void let_go(struct mover *m)
{
    if (m->from)
        trib_plan_let_go(m->from);
    trib_plan_let_go(m->plan);
    m->to_by = m->from_by = NULL;
}

static trib_status_t check_plan(struct mover *m, struct trib_plan *plan)
{
    trib_status_t st = trib_comm_ours(plan->comm, m->call);

    if (st != TRIB_OK)
        return trib_comm_fail(m->comm, st, "%s", trib_last_error(plan->comm));
    return plan->kind && !plan->run.desc.blocks && !trib_plan_auto_is(plan)
               ? trib_comm_fail(m->comm, TRIB_ERR_UNSUPPORTED,
                                "%s: plans of messages, neighbors and pairs keep no "
                                "state between starts: create them again",
                                m->call)
               : TRIB_OK;
}

static trib_status_t check_idle(struct mover *m, struct trib_plan *plan,
                                const struct trib_plan *by)
{
    if (!plan->ops->busy(plan) && !by->ops->busy(by))
        return TRIB_OK;
    return trib_comm_fail(m->comm, TRIB_ERR_BUSY,
                          "%s: the %s plan is still running: wait for it first",
                          m->call, plan == m->plan ? "new" : "old");
}

static const char *codec_text(const struct trib_plan *plan)
{
    return plan->codec ? trib_codec_info(plan->codec)->text : "none";
}

static const char *feedback_text(const struct trib_plan *plan)
{
    return plan->codec ? plan->run.desc.feedback.text : "none";
}

static struct trib_state_plan describe(const struct trib_plan *plan)
{
    const struct trib_frame_op *op = &plan->run.desc.op;

    return (struct trib_state_plan){.coll = op->coll, .dtype = op->dtype, .op = op->op};
}

/* Check that both plans have the same codec, feedback and name. */
static trib_status_t compare_texts(const struct mover *m, struct trib_error *err)
{
    const char *was = m->from->identity.name, *is = m->plan->identity.name;

    if (strcmp(codec_text(m->from_by), codec_text(m->to_by)) != 0)
        return trib_state_refuse(err, "codec", codec_text(m->from_by),
                                 codec_text(m->to_by));
    if (strcmp(feedback_text(m->from_by), feedback_text(m->to_by)) != 0)
        return trib_state_refuse(err, "feedback", feedback_text(m->from_by),
                                 feedback_text(m->to_by));
    return was[0] && is[0] && strcmp(was, is) != 0
               ? trib_state_refuse(err, "name", was, is)
               : TRIB_OK;
}

/* Check that both plans sum the same vector in the same way. */
static trib_status_t compare(const struct mover *m)
{
    const struct trib_state_plan theirs = describe(m->from_by),
                                 ours = describe(m->to_by);
    struct trib_error err = {0};
    trib_status_t st = trib_state_check_kind(&theirs, &ours, &err);

    if (st != TRIB_OK)
        return trib_comm_fail(m->comm, st, "%s", err.text);
    if (m->from_by->run.desc.count != m->to_by->run.desc.count)
        return trib_comm_fail(m->comm, TRIB_ERR_INVALID,
                              "%s: the old plan has %zu elements, the new one %zu",
                              m->call, m->from_by->run.desc.count,
                              m->to_by->run.desc.count);
    if (trib_plan_auto_holds(m->from))
        return trib_comm_fail(m->comm, TRIB_ERR_UNSUPPORTED,
                              "%s: codec auto of the old plan may keep a residual, "
                              "which cannot be moved: name the codec alone",
                              m->call);
    if (trib_plan_auto_is(m->plan) && trib_plan_auto_is(m->from))
        return TRIB_OK; /* each of them chooses its codec */
    st = compare_texts(m, &err);
    return st == TRIB_OK ? st : trib_comm_fail(m->comm, st, "%s", err.text);
}

/* Check that the old plan has or can restore its state as of the end of start
 * `steps`. */
static trib_status_t check_steps(struct mover *m)
{
    const struct trib_run *run = &m->from_by->run;
    const uint64_t steps = m->mine.steps;
    const bool whole = run->now.state == TRIB_RUN_IDLE || run->now.status == TRIB_OK;

    if (steps > UINT32_MAX)
        return trib_comm_fail(m->comm, TRIB_ERR_INVALID,
                              "%s: steps is %" PRIu64 ", more than a plan can count",
                              m->call, steps);
    if (steps < run->now.step && !trib_undo_reaches(run, (uint32_t)steps))
        return trib_comm_fail(
            m->comm, TRIB_ERR_INVALID,
            "%s: steps is %" PRIu64 ", but the old plan has begun %" PRIu32 " and can "
            "undo %s: pass the number begun to drop these steps, or %s",
            m->call, steps, run->now.step,
            m->from_by->comm->rewinds ? "the newest two" : "none",
            m->from_by->comm->rewinds ? "move it earlier"
                                      : "set trib_opts_t.rewind for trib_init");
    if (run->desc.model && (steps < run->now.step || (whole && steps == run->now.step)))
        m->mine.model_bytes = trib_model_bytes(run->desc.model);
    return TRIB_OK;
}

/* Check the held plans. */
static trib_status_t check_held(struct mover *m)
{
    trib_status_t st = check_idle(m, m->plan, m->to_by);

    if (st == TRIB_OK && m->from)
        st = check_idle(m, m->from, m->from_by);
    if (st == TRIB_OK && m->from)
        st = compare(m);
    if (st != TRIB_OK || !m->from)
        return st;
    m->mine.head.gives = 1;
    m->mine.rank = (uint32_t)m->from->comm->engine.rank;
    if (trib_plan_auto_is(m->plan))
        return TRIB_OK;
    m->mine.kept = m->from_by->identity.kept;
    return check_steps(m);
}

static trib_status_t prepare(struct mover *m)
{
    trib_status_t st = check_plan(m, m->plan);

    if (st == TRIB_OK && m->from)
        st = m->from == m->plan
                 ? trib_comm_fail(m->comm, TRIB_ERR_INVALID,
                                  "%s: plan and from are the same", m->call)
                 : check_plan(m, m->from);
    if (st != TRIB_OK)
        return st;
    hold(m);
    st = check_held(m);
    let_go(m);
    return st;
}

/* ---- comparison of offers -------------------------------------------------------- */

/* Return the lowest rank whose old plan has a key, or -1. */
static int first_settled(const struct mover *m)
{
    for (int r = 0; r < m->comm->engine.size; r++)
        if (m->all[r].head.gives && m->all[r].kept.settled)
            return r;
    return -1;
}

static trib_status_t compare_to_first(struct mover *m, int r)
{
    const struct offer *a = &m->all[m->first], *b = &m->all[r];
    const int known = first_settled(m);

    if (a->steps != b->steps)
        return trib_comm_fail(m->comm, TRIB_ERR_INVALID,
                              "%s: steps is %" PRIu64 " on rank %d, but %" PRIu64 " on "
                              "rank %d: pass the same number on all ranks",
                              m->call, a->steps, m->first, b->steps, r);
    if (b->kept.settled && b->kept.key != m->all[known].kept.key)
        return trib_comm_fail(m->comm, TRIB_ERR_INVALID,
                              "%s: the old plans of rank %d and of rank %d differ, or "
                              "have different seeds",
                              m->call, known, r);
    return TRIB_OK;
}

static trib_status_t exchange_offers(struct mover *m)
{
    struct trib_offers o = {.comm = m->comm,
                            .call = m->call,
                            .what = "an old one",
                            .bytes = sizeof(m->mine)};
    trib_status_t st = trib_offers_exchange(&o, &m->mine);

    m->all = o.all;
    m->first = o.first;
    for (int r = 0; r < m->comm->engine.size && st == TRIB_OK; r++)
        if (m->all[r].head.gives)
            st = compare_to_first(m, r);
    return st;
}

/* ---- new state ------------------------------------------------------------------- */

/* Move each block of a reduce-scatter with its rank. */
static void move_blocks(const struct mover *m, float *to, const float *from)
{
    const size_t count = m->to_by->run.desc.count;

    for (int r = 0; r < m->comm->engine.size; r++)
        if (m->all[r].head.gives)
            memcpy(to + (size_t)r * count, from + m->all[r].rank * count,
                   count * sizeof(*to));
}

static void move_vector(const struct mover *m, float *to, const float *from)
{
    const struct trib_run_desc *d = &m->to_by->run.desc;

    assert(!m->from_by || m->from_by->run.desc.count == d->count);
    if (!to)
        return;
    memset(to, 0, d->total * sizeof(*to));
    if (!from)
        return;
    if (d->op.coll == TRIB_REDUCE_SCATTER)
        move_blocks(m, to, from);
    else
        memcpy(to, from, d->total * sizeof(*to));
}

static const struct trib_feedback *feedback_of(const struct trib_plan *by)
{
    return by ? trib_feedback_of(&by->run) : NULL;
}

/* All-reduce x in place. */
static trib_status_t sum_up(const struct mover *m, float *x, size_t total, trib_op_t op)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    struct trib_plan *plan;

    assert(op == TRIB_SUM || op == TRIB_MEAN);
    desc.count = total;
    desc.op = op;
    desc.codec = "none";
    desc.feedback = "none";
    trib_status_t st = trib_plan_make_own(m->comm, TRIB_ALLREDUCE, &desc, &plan);
    if (st != TRIB_OK)
        return st;
    st = trib_plan_run(plan, NULL, x);
    trib_plan_destroy(plan);
    return st;
}

/* Fail on all ranks: the others have begun a collective. */
static trib_status_t no_memory(const struct mover *m, const char *text)
{
    trib_comm_fail_all(m->comm, TRIB_ERR_NO_MEMORY, text);
    return TRIB_ERR_NO_MEMORY;
}

/* Recompute shared states: sum or mean of another state over the surviving ranks. */
static trib_status_t share(struct mover *m)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < TRIB_FEEDBACK_STATES && st == TRIB_OK; i++) {
        hold(m);
        const struct trib_feedback *to = feedback_of(m->to_by),
                                   *from = feedback_of(m->from_by);
        const size_t total = m->to_by->run.desc.total;
        const trib_op_t op = (trib_op_t)m->to_by->run.desc.op.op;
        const bool shared = to && to->ops && to->state[i] && to->ops->states[i].shared;
        if (shared) {
            m->sums[i] = calloc(total + 1, sizeof(*m->sums[i]));
            if (m->sums[i])
                move_vector(m, m->sums[i],
                            from ? from->state[to->ops->states[i].sums] : NULL);
        }
        let_go(m);
        if (shared)
            st = m->sums[i] ? sum_up(m, m->sums[i], total, op)
                            : no_memory(m, "no memory for a state");
    }
    return st;
}

/* Return the rank that distributes its model: the former rank 0, which alone may have
 * gathered data to learn from. -1: that rank is lost or was aborted midway. */
static int teacher_of(const struct mover *m)
{
    for (int r = 0; r < m->comm->engine.size; r++)
        if (m->all[r].head.gives && m->all[r].rank == 0 &&
            m->all[r].model_bytes == m->model_bytes)
            return r;
    return -1;
}

/* Distribute the teacher's model to all ranks, or to none. */
static trib_status_t teach(struct mover *m)
{
    struct trib_comm *comm = m->comm;

    hold(m);
    const bool learns = m->to_by->run.desc.model;
    m->model_bytes = learns ? trib_model_bytes(m->to_by->run.desc.model) : 0;
    const int teacher = learns ? teacher_of(m) : -1;
    m->model = teacher >= 0 ? malloc(m->model_bytes + 1) : NULL;
    if (m->model && teacher == comm->engine.rank)
        trib_model_write(m->from_by->run.desc.model, m->model);
    let_go(m);
    if (teacher < 0)
        return TRIB_OK;
    return m->model ? trib_broadcast(comm, m->model, m->model_bytes, TRIB_U8, teacher)
                    : no_memory(m, "no memory for a model");
}

static void move_vectors(const struct mover *m)
{
    const struct trib_feedback none = {.ops = NULL}, *to = feedback_of(m->to_by),
                               *was = feedback_of(m->from_by),
                               *from = was ? was : &none;

    if (!to)
        return;
    move_vector(m, to->residual, from->residual);
    for (int i = 0; i < TRIB_FEEDBACK_STATES; i++) {
        if (m->sums[i])
            memcpy(to->state[i], m->sums[i],
                   m->to_by->run.desc.total * sizeof(*to->state[i]));
        else
            move_vector(m, to->state[i], from->state[i]);
    }
    if (to->sent)
        memset(to->sent, 0, m->to_by->run.desc.total / 8 + 1);
}

/* Continue the plan with step, key and model. False: the model starts over, with a new
 * step and key. */
static bool go_on(const struct mover *m)
{
    struct trib_plan *to = m->to_by;
    struct trib_model *model = to->run.desc.model;
    const int known = first_settled(m);

    assert(m->first >= 0 && (known < 0 || to->codec));
    if (model && (!m->model ||
                  trib_model_read(model, m->model, m->model_bytes, NULL) != TRIB_OK))
        return false;
    to->run.now.step = (uint32_t)m->all[m->first].steps;
    if (known >= 0)
        to->identity.kept = m->all[known].kept;
    trib_identity_loaded(to); /* a model derives random numbers from the key */
    return !model || trib_model_read(model, m->model, m->model_bytes, NULL) == TRIB_OK;
}

/* Apply the new state; cannot fail. */
static void settle(struct mover *m)
{
    const struct trib_comm *comm = m->comm;

    hold(m);
    assert(!m->to_by->ops->busy(m->to_by));
    move_vectors(m);
    if (!go_on(m) && comm->engine.rank == 0)
        trib_log(&comm->log, TRIB_LOG_WARN, "codec",
                 "a plan's state continues in another communicator without the model "
                 "of codec %s, which is trained from scratch",
                 codec_text(m->to_by));
    if (m->to_by->codec)
        trib_feedback_loaded(&m->to_by->run);
    trib_undo_forget(&m->to_by->run);
    let_go(m);
}

static trib_status_t move(struct mover *m)
{
    const uint64_t steps = m->all[m->first].steps;

    if (trib_plan_auto_is(m->plan)) /* keeps no state and measures again */
        return TRIB_OK;
    hold(m);
    if (m->from_by && steps < m->from_by->run.now.step)
        trib_undo_rewind(&m->from_by->run, (uint32_t)steps);
    let_go(m);
    trib_status_t st = share(m);
    if (st == TRIB_OK)
        st = teach(m);
    if (st == TRIB_OK)
        settle(m);
    return st;
}

trib_status_t trib_plan_state_move_by(const struct trib_state_mover *c,
                                      struct trib_plan *to, trib_status_t status)
{
    struct mover m = {.comm = c->comm,
                      .call = c->call,
                      .plan = to,
                      .from = c->from,
                      .mine.steps = c->steps,
                      .mine.head.status = status};

    assert(!to == (status != TRIB_OK));
    if (to)
        m.mine.head.status = prepare(&m);
    trib_status_t st = exchange_offers(&m);
    if (st == TRIB_OK)
        st = move(&m);
    assert(st != TRIB_OK || m.all);
    for (int i = 0; i < TRIB_FEEDBACK_STATES; i++)
        free(m.sums[i]);
    free(m.model);
    free(m.all);
    return st;
}

trib_status_t trib_plan_state_move(trib_plan_t *plan, trib_plan_t *from, uint64_t steps)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    const struct trib_state_mover c = {plan->comm, from, steps, "trib_plan_state_move"};
    return trib_plan_state_move_by(&c, plan, TRIB_OK);
}
