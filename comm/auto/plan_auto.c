/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of codec auto.
 *
 * Starts are grouped into windows (auto_window.h). Within a window the inner plan does
 * not change. The window's time is the median over its starts, except the first, which
 * touches memory and opens links. The first start after a window begins with an
 * agreement: a small dense all-reduce of a sample and of each rank's figures. At the
 * next start all ranks have the sum, and switch the inner plan if another codec is
 * better. Windows are short while there are candidates to try, then double each time.
 * Short vectors get a plan of dense sums immediately.
 *
 * The sample comes from the start that the agreement precedes. For a vector fed
 * piecewise, whose elements arrive later, it comes from the previous start.
 */
#include "comm/auto/plan_auto.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/fpenv.h"
#include "base/time.h"
#include "comm/auto/auto_carry.h"
#include "comm/auto/auto_trial.h"
#include "comm/auto/auto_window.h"
#include "comm/plan/configured.h"
#include "comm/plan/plan_make.h"
#include "pipeline/payload/run_codec.h"

struct trib_plan_auto {
    struct trib_auto_choice choice;
    struct trib_auto_trial *trial;
    struct trib_plan *inner;
    struct trib_plan *agree; /* all-reduces `figures` */
    float *figures;
    trib_coll_t coll;
    trib_desc_t desc; /* for inner plans; its strings belong to this object */
    char *algorithm;
    size_t chunk;
    bool own;
    struct trib_auto_carry carry; /* residual of codecs that no longer run */
    bool agreeing; /* an agreement was started and its sum is not read yet */
    bool fed; /* the running start is sampled piece by piece */
    struct trib_auto_window window;
    bool counts; /* the running start is measured */
    uint64_t began;
    _Atomic bool running; /* a start whose end was not observed yet */
};

static struct trib_plan_auto *automatic(const struct trib_plan *plan)
{
    assert(plan->of_kind);
    return plan->of_kind;
}

/* Return the maximum number of times a sum is re-encoded: once where all contributions
 * arrive, or at each rank that forwards a partial sum. Equal on all ranks. */
static double merges_of(const struct trib_plan *inner)
{
    const struct trib_run_desc *r = &inner->run.desc;
    const bool once = r->gathers || (r->codec && trib_coded_linear(&inner->run));

    return once ? 1 : fmax(inner->comm->engine.ranks - 1, 1);
}

static trib_status_t make_inner(struct trib_plan *plan, int i, struct trib_plan **out)
{
    struct trib_plan_auto *a = automatic(plan);

    assert(a && i >= 0 && i < a->choice.n);
    const struct trib_auto_candidate *c = &a->choice.of[i];
    a->desc.codec = c->text;
    a->desc.feedback = c->holds ? "codec" : "none";
    a->desc.algorithm = c->algorithm ? c->algorithm : a->algorithm;
    a->desc.chunk = c->chunk ? c->chunk : a->chunk;
    const trib_status_t st =
        a->own ? trib_plan_make_own(plan->comm, a->coll, &a->desc, out)
               : trib_plan_make(plan->comm, a->coll, &a->desc, false, out);
    if (st != TRIB_OK)
        return st;
    (*out)->identity.of_calls = plan->identity.of_calls;
    a->choice.of[c->like].merges = merges_of(*out);
    return TRIB_OK;
}

/* Return the length of the next window: long if nothing is left to try. */
static unsigned next_window(const struct trib_plan_auto *a, bool changed)
{
    const int now = a->choice.now;
    const double us = trib_auto_expect_us(&a->choice, now, 1);

    return changed || !(a->choice.of[now].took_us > 0)
               ? trib_auto_window_tried(us)
               : trib_auto_window_next(a->window.length, a->choice.changes, us);
}

/* Once the best codec runs, try another algorithm and shorter chunks, unless the caller
 * set these. All ranks hold the same estimates. */
static int vary(struct trib_plan *plan)
{
    enum { SHORTER = 4, CHUNK_LEAST = 32768 };
    struct trib_plan_auto *a = automatic(plan);
    const struct trib_auto_candidate *now = &a->choice.of[a->choice.now];
    const size_t chunk = plan->comm->cfg.chunk;
    bool more = false;

    if (now->like == a->choice.now && a->inner->next_algorithm)
        more |= trib_auto_vary(&a->choice, a->inner->next_algorithm, 0);
    if (now->like == a->choice.now && !a->chunk && chunk / SHORTER >= CHUNK_LEAST &&
        a->choice.count * a->choice.element > (double)(chunk / SHORTER))
        more |= trib_auto_vary(&a->choice, NULL, chunk / SHORTER);
    return more ? trib_auto_next(&a->choice) : a->choice.now;
}

/* Switch to the next candidate, and carry the residual over to it. */
static trib_status_t change(struct trib_plan *plan, int was, int now)
{
    struct trib_plan_auto *a = automatic(plan);
    char left[160], taken[160];
    struct trib_plan *inner;
    trib_status_t st = make_inner(plan, now, &inner);

    if (st != TRIB_OK)
        return st;
    if (a->choice.of[was].holds)
        st = trib_auto_carry_over(&a->carry, a->inner, inner);
    if (st != TRIB_OK) {
        trib_plan_destroy(inner);
        return st;
    }
    trib_log(
        &plan->comm->log, TRIB_LOG_DEBUG, "codec", "auto: %s, %.3g us; %s, %.3g us",
        trib_auto_name(&a->choice, was, left, sizeof(left)), a->choice.of[was].took_us,
        trib_auto_name(&a->choice, now, taken, sizeof(taken)),
        trib_auto_expect_us(&a->choice, now, 1));
    trib_plan_destroy(a->inner);
    a->inner = inner;
    return TRIB_OK;
}

/* Choose again, from the sum of all ranks' figures. */
static trib_status_t choose(struct trib_plan *plan)
{
    struct trib_plan_auto *a = automatic(plan);
    const int was = a->choice.now;
    const uint64_t modes = trib_fpenv_enter();

    assert(!a->agree->ops->busy(a->agree) && !a->inner->ops->busy(a->inner));
    a->agreeing = false;
    trib_auto_trial_read(a->trial, a->figures, &a->choice);
    int now = trib_auto_next(&a->choice);
    if (a->choice.settled)
        now = vary(plan);
    trib_fpenv_leave(modes);
    trib_auto_window_begin(&a->window, next_window(a, now != was));
    return now == was ? TRIB_OK : change(plan, was, now);
}

/* Sample the input of a start, now or, if it is fed, piece by piece. */
static void take_sample(struct trib_plan *plan, const void *input)
{
    struct trib_plan_auto *a = automatic(plan);

    a->fed = a->desc.feed != TRIB_FEED_WHOLE;
    if (!a->fed)
        trib_auto_trial_take(a->trial, input, 0, a->desc.count);
}

/* Start an agreement if one is due; if `blocking`, wait for it. */
static trib_status_t agree(struct trib_plan *plan, const void *input, bool blocking)
{
    struct trib_plan_auto *a = automatic(plan);
    const bool whole = a->desc.feed == TRIB_FEED_WHOLE;

    assert(!a->agreeing && a->window.length > 0);
    a->fed = false;
    if (a->window.done + !whole == a->window.length) {
        trib_auto_trial_forget(a->trial);
        take_sample(plan, input);
    }
    if (a->window.done < a->window.length || !trib_auto_trial_full(a->trial))
        return TRIB_OK;
    const uint64_t modes = trib_fpenv_enter();
    double noise_us;
    const double took_us = trib_auto_window_typical(&a->window, &noise_us);
    trib_auto_trial_write(a->trial, took_us, noise_us, a->figures);
    trib_fpenv_leave(modes);
    const struct trib_plan_ops *ops = a->agree->ops;
    const trib_status_t st = blocking ? ops->run(a->agree, a->figures, a->figures)
                                      : ops->start(a->agree, a->figures, a->figures);
    a->agreeing = st == TRIB_OK;
    return st;
}

/* Begin a start: choose, agree, and carry a residual, before the inner plan starts. */
static trib_status_t begin(struct trib_plan *plan, const void **send, void *recv,
                           bool blocking)
{
    struct trib_plan_auto *a = automatic(plan);
    const bool whole = a->desc.feed == TRIB_FEED_WHOLE;
    const void *input = *send ? *send : recv;
    trib_status_t st = TRIB_OK;

    if (a->agreeing)
        st = choose(plan);
    if (st == TRIB_OK)
        st = agree(plan, input, blocking);
    if (st != TRIB_OK)
        return st;
    if (a->carry.rest)
        *send = trib_auto_carry_begin(&a->carry, plan, input, whole);
    if (a->carry.rest && !*send)
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY,
                              "no memory for a start with a residual");
    assert(a->inner && !atomic_load(&a->running));
    a->inner->identity.of_calls = plan->identity.of_calls;
    a->counts = !a->agreeing && trib_auto_window_counts(&a->window);
    a->began = a->counts ? trib_now_ns() : 0;
    atomic_store_explicit(&a->running, true, memory_order_release);
    return TRIB_OK;
}

/* Record the end of a start, if st is not TRIB_INPROGRESS. */
static trib_status_t settle(struct trib_plan *plan, trib_status_t st)
{
    struct trib_plan_auto *a = automatic(plan);

    if (st == TRIB_INPROGRESS || !atomic_exchange(&a->running, false))
        return st;
    if (a->counts)
        trib_auto_window_add(&a->window, (double)(trib_now_ns() - a->began) * 1e-3);
    if (a->carry.sum)
        trib_auto_carry_end(&a->carry);
    a->window.done++;
    return st;
}

/* Table of operations -------------------------------------------------------------- */

static trib_status_t refuse_busy(struct trib_plan *plan)
{
    return trib_comm_fail(plan->comm, TRIB_ERR_BUSY,
                          "the plan is still running: wait for it first");
}

static trib_status_t auto_wait(struct trib_plan *plan)
{
    struct trib_plan_auto *a = automatic(plan);
    trib_status_t st = a->inner->ops->wait(a->inner);

    if (st == TRIB_OK && a->agreeing)
        st = a->agree->ops->wait(a->agree);
    return settle(plan, st);
}

static trib_status_t auto_run(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_plan_auto *a = automatic(plan);
    trib_status_t st = begin(plan, &send, recv, true);

    if (st == TRIB_OK)
        st = a->inner->ops->run(a->inner, send, recv);
    return settle(plan, st);
}

static bool auto_busy(const struct trib_plan *plan)
{
    const struct trib_plan_auto *a = automatic(plan);

    return a->inner->ops->busy(a->inner) || a->agree->ops->busy(a->agree);
}

static trib_status_t auto_start(struct trib_plan *plan, const void *send, void *recv)
{
    struct trib_plan_auto *a = automatic(plan);

    if (auto_busy(plan))
        return refuse_busy(plan);
    (void)settle(plan, TRIB_OK); /* if no call has observed the end of the last start */
    trib_status_t st = begin(plan, &send, recv, false);
    if (st == TRIB_OK)
        st = a->inner->ops->start(a->inner, send, recv);
    if (st != TRIB_OK)
        atomic_store(&a->running, false);
    return st;
}

static trib_status_t auto_ready(struct trib_plan *plan, size_t first, size_t count)
{
    struct trib_plan_auto *a = automatic(plan);
    const void *input = a->fed ? a->inner->ops->input(a->inner) : NULL;

    if (first <= a->desc.count && count <= a->desc.count - first)
        trib_auto_carry_ready(&a->carry, plan, first, count);
    if (input)
        trib_auto_trial_take(a->trial, input, first, count);
    return a->inner->ops->ready(a->inner, first, count);
}

static trib_status_t both(const struct trib_plan_auto *a, trib_status_t st)
{
    return st == TRIB_OK && a->agreeing ? a->agree->ops->test(a->agree) : st;
}

static trib_status_t auto_test(struct trib_plan *plan)
{
    struct trib_plan_auto *a = automatic(plan);

    return settle(plan, both(a, a->inner->ops->test(a->inner)));
}

static bool is_done(const struct trib_plan *plan)
{
    return atomic_load_explicit(&plan->run.now.state, memory_order_acquire) ==
           TRIB_RUN_DONE;
}

static trib_status_t auto_poll(struct trib_plan *plan)
{
    struct trib_plan_auto *a = automatic(plan);
    trib_status_t st = a->inner->ops->poll ? a->inner->ops->poll(a->inner)
                       : is_done(a->inner) ? a->inner->run.now.status
                                           : TRIB_INPROGRESS;

    if (st == TRIB_OK && a->agreeing)
        st = is_done(a->agree) ? a->agree->run.now.status : TRIB_INPROGRESS;
    return settle(plan, st);
}

static const void *auto_input(const struct trib_plan *plan)
{
    const struct trib_plan_auto *a = automatic(plan);

    return a->inner->ops->input(a->inner);
}

static struct trib_plan *auto_computing(struct trib_plan *plan)
{
    return automatic(plan)->inner->ops->computing(automatic(plan)->inner);
}

static void auto_hold(const struct trib_plan *plan)
{
    const struct trib_plan *inner = automatic(plan)->inner;

    if (inner->ops->hold)
        inner->ops->hold(inner);
}

static void auto_let_go(const struct trib_plan *plan)
{
    trib_plan_let_go(automatic(plan)->inner);
}

static trib_status_t auto_state_save(struct trib_plan *plan, void *state, size_t bytes,
                                     size_t *bytes_out)
{
    (void)state;
    (void)bytes;
    (void)bytes_out;
    return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED,
                          "codec auto: the plan has no state to save: %s",
                          trib_plan_auto_holds(plan)
                              ? "name the codec that keeps a residual"
                              : "create it again");
}

static trib_status_t auto_state_load(struct trib_plan *plan, const void *state,
                                     size_t bytes)
{
    (void)state;
    (void)bytes;
    return trib_comm_fail(plan->comm, TRIB_ERR_UNSUPPORTED,
                          "codec auto: the plan cannot load a state: name a codec");
}

static trib_status_t auto_sent(struct trib_plan *plan, const unsigned char **mask_out,
                               size_t *sent_out)
{
    struct trib_plan *inner = automatic(plan)->inner;

    return inner->ops->sent(inner, mask_out, sent_out);
}

static void auto_absent(const struct trib_plan *plan, size_t *elements_out)
{
    const struct trib_plan *inner = automatic(plan)->inner;

    inner->ops->absent(inner, elements_out);
}

static void auto_fail(struct trib_plan *plan, trib_status_t status, const char *text)
{
    struct trib_plan *inner = automatic(plan)->inner;

    if (inner->ops->fail)
        inner->ops->fail(inner, status, text);
    else
        trib_comm_fail_all(plan->comm, status, text);
}

static void explain(const struct trib_plan *plan, char *text, size_t bytes)
{
    trib_auto_explain(&automatic(plan)->choice, text, bytes);
}

const struct trib_plan_kind trib_plan_auto_kind = {.name = "auto", .explain = explain};

bool trib_plan_auto_holds(const struct trib_plan *plan)
{
    return trib_plan_auto_is(plan) && trib_auto_holds(&automatic(plan)->choice);
}

static void auto_destroy(struct trib_plan *plan)
{
    struct trib_plan_auto *a = automatic(plan);

    plan->of_kind = NULL;
    trib_plan_destroy(a->inner);
    trib_plan_destroy(a->agree);
    trib_auto_trial_destroy(a->trial);
    trib_auto_carry_end(&a->carry);
    free(a->figures);
    free(a->algorithm);
    free(a);
}

static const struct trib_plan_ops ops = {
    .run = auto_run,
    .start = auto_start,
    .ready = auto_ready,
    .test = auto_test,
    .poll = auto_poll,
    .wait = auto_wait,
    .busy = auto_busy,
    .input = auto_input,
    .computing = auto_computing,
    .hold = auto_hold,
    .let_go = auto_let_go,
    .state_save = auto_state_save,
    .state_load = auto_state_load,
    .sent = auto_sent,
    .absent = auto_absent,
    .fail = auto_fail,
    .destroy = auto_destroy,
};

/* Creation ------------------------------------------------------------------------- */

/* Check a description and parse the candidates from the codec's text. */
static trib_status_t check(struct trib_comm *comm, trib_coll_t coll,
                           const trib_desc_t *d, const char *text,
                           struct trib_auto_choice *choice)
{
    struct trib_error err = {0};
    const trib_status_t st = trib_configured_auto(comm, coll, d);

    if (st != TRIB_OK || trib_auto_parse(text, &err, choice) == TRIB_OK)
        return st;
    return trib_comm_fail(comm, TRIB_ERR_CODEC, "%s", trib_error_text(&err));
}

/* Copy the parts of the description that inner plans use. Inner plans are unnamed. */
static trib_status_t copy_desc(struct trib_plan *plan, const trib_desc_t *d)
{
    struct trib_plan_auto *a = automatic(plan);

    a->desc = *d;
    a->desc.name = NULL;
    a->desc.quorum = "all";
    a->chunk = d->chunk;
    a->desc.send = a->desc.recv = NULL;
    a->algorithm = d->algorithm ? strdup(d->algorithm) : NULL;
    a->desc.algorithm = a->algorithm;
    return !d->algorithm || a->algorithm
               ? TRIB_OK
               : trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
}

static trib_status_t make_agreement(struct trib_plan *plan)
{
    struct trib_plan_auto *a = automatic(plan);
    trib_desc_t d = TRIB_DESC_INIT;
    const trib_status_t st =
        trib_auto_trial_create(&a->choice, a->desc.count, a->desc.dtype,
                               plan->comm->engine.kernels, &a->trial);

    if (st != TRIB_OK)
        return trib_comm_fail(plan->comm, st, "no memory for a sample of %zu elements",
                              a->desc.count);
    d.count = trib_auto_trial_floats(a->trial);
    d.codec = d.feedback = "none";
    d.quorum = "all";
    d.timeout_ms = a->desc.timeout_ms;
    a->figures = calloc(d.count, sizeof(*a->figures));
    if (!a->figures)
        return trib_comm_fail(plan->comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    return trib_plan_make_own(plan->comm, TRIB_ALLREDUCE, &d, &a->agree);
}

/* Initialize an outer plan: everything needed to choose. */
static trib_status_t complete(struct trib_plan *plan, const trib_desc_t *desc)
{
    struct trib_plan_auto *a = automatic(plan);
    struct trib_comm *comm = plan->comm;

    a->choice.count = (double)desc->count;
    a->choice.element = (double)trib_dtype_size(desc->dtype);
    a->choice.ranks = comm->engine.ranks;
    a->choice.crowd = comm->oversubscribed ? 2 : 1;
    trib_status_t st = copy_desc(plan, desc);
    if (st == TRIB_OK)
        st = make_agreement(plan);
    assert(st != TRIB_OK || (a->trial && a->agree));
    if (st == TRIB_OK)
        st = make_inner(plan, 0, &a->inner);
    if (st != TRIB_OK)
        return st;
    a->choice.fixed = a->inner->expected_fixed;
    trib_auto_window_begin(&a->window, trib_auto_window_tried(a->inner->expected_us));
    return TRIB_OK;
}

/* Create a plan of dense sums for a vector so short that its time is per-message cost,
 * where no encoding can win. Errors in the text are still reported. */
static trib_status_t make_dense(struct trib_comm *comm, trib_coll_t coll,
                                const trib_desc_t *desc, const char *text, bool own,
                                struct trib_plan **plan_out)
{
    struct trib_auto_choice choice;
    trib_desc_t dense = *desc;
    trib_status_t st = check(comm, coll, desc, text, &choice);

    dense.codec = dense.feedback = "none";
    if (st == TRIB_OK)
        st = own ? trib_plan_make_own(comm, coll, &dense, plan_out)
                 : trib_plan_make(comm, coll, &dense, false, plan_out);
    if (st == TRIB_OK)
        (*plan_out)->is_short = true;
    return st;
}

static trib_status_t make_auto(struct trib_comm *comm, trib_coll_t coll,
                               const trib_desc_t *desc, const char *text, bool own,
                               struct trib_plan **plan_out)
{
    trib_status_t st = trib_plan_make_outer(comm, coll, desc, plan_out);

    if (st != TRIB_OK)
        return st;
    struct trib_plan *plan = *plan_out;
    struct trib_plan_auto *a = calloc(1, sizeof(*a));
    if (!a)
        st = trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a plan");
    if (st == TRIB_OK)
        st = check(comm, coll, desc, text, &a->choice);
    if (st == TRIB_OK) {
        assert(!plan->kind && !plan->of_kind);
        plan->ops = &ops;
        plan->kind = &trib_plan_auto_kind;
        plan->of_kind = a;
        a->coll = coll;
        a->own = own;
        st = complete(plan, desc);
    } else {
        free(a);
    }
    if (st == TRIB_OK)
        return st;
    trib_plan_destroy(plan);
    *plan_out = NULL;
    return st;
}

trib_status_t trib_plan_make_coded(struct trib_comm *comm, trib_coll_t coll,
                                   const trib_desc_t *desc, bool own,
                                   struct trib_plan **plan_out)
{
    const char *text = trib_codec_of(comm, coll, desc);
    fenv_t callers_modes;

    assert(comm && desc && plan_out);
    if (!trib_auto_wanted(text))
        return own ? trib_plan_make_own(comm, coll, desc, plan_out)
                   : trib_plan_make(comm, coll, desc, false, plan_out);
    trib_fpenv_enter_all(&callers_modes);
    const trib_status_t st = desc->count < TRIB_CODEC_ELEMENTS_MIN
                                 ? make_dense(comm, coll, desc, text, own, plan_out)
                                 : make_auto(comm, coll, desc, text, own, plan_out);
    trib_fpenv_leave_all(&callers_modes);
    return st;
}
