/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step of a group: which bucket is started when.
 *
 * The operations of a communicator must have one order on all ranks, but tensors become
 * ready in a different order on each. So the ranks agree repeatedly: each contributes a
 * byte per bucket, 1 if the bucket is ready and not started. The minimum over all ranks
 * shows the buckets that are ready everywhere. From it all ranks choose the same
 * buckets: the highest priority first, up to about bucket_bytes. The agreement is an
 * all-reduce ordered with the buckets: agreement, its buckets, agreement, …
 *
 * A rank enters the next agreement when at most one bucket is running. So an urgent
 * tensor waits only for that bucket and for those chosen before it.
 *
 * There is no deadlock: a rank with a bucket to start enters the next agreement, at the
 * latest when it waits. While it computes and has nothing new to report it need not
 * enter: all of its tensors will become ready. When all ranks wait in trib_group_wait,
 * their bytes are 1 for every bucket not started, so each agreement starts something.
 *
 * Ranks that wait for single tensors may have none in common. Such a rank sets the last
 * byte to 1. If all ranks do so and nothing can start, the step fails.
 */
#include <inttypes.h>

#include "base/time.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/tensors/tensor_group.h"

enum { RUNNING_MOST = 1 }; /* buckets, when a rank enters the next agreement */

static uint32_t running(const struct trib_group_step *s)
{
    return s->n_started - s->n_ended;
}

/* ---- completion ---- */

static void end_tensor(struct trib_group *g, struct trib_group_tensor *t,
                       trib_status_t st)
{
    assert(!t->done);
    t->done = st == TRIB_OK;
    g->step.tensors_done++;
    if (g->opts.done)
        g->opts.done(g->opts.arg, (size_t)(t - g->tensors), st);
}

void trib_step_drain(struct trib_group *g)
{
    const struct trib_group_step *s = &g->step;

    for (uint32_t i = s->n_ended; i < s->n_started; i++)
        (void)trib_plan_wait(g->buckets.at[g->queue[i]].plan);
    if (s->asking)
        (void)trib_plan_wait(g->agree);
    if (s->timing)
        (void)trib_plan_wait(g->measure);
}

/* Fail the step on this rank; the group stays failed. Started operations continue,
 * unless the communicator has failed: the progress thread then ends them, and until
 * then messages may read the tensors. */
static trib_status_t fail(struct trib_group *g, trib_status_t st)
{
    struct trib_group_step *s = &g->step;

    if (s->failed)
        return s->failed;
    if (g->comm->engine.failed)
        trib_step_drain(g);
    s->failed = st;
    for (size_t i = 0; i < g->n; i++)
        if (!g->tensors[i].done)
            end_tensor(g, &g->tensors[i], st);
    trib_group_tell(g, st);
    return st;
}

/* ---- time limit ---- */

/* Return the milliseconds left for the step, at least 1. */
static uint32_t left_ms(const struct trib_group *g)
{
    const uint64_t limit = (uint64_t)g->opts.timeout_ms * 1000000u;
    const uint64_t took = trib_now_ns() - g->step.begin;

    return took < limit ? (uint32_t)((limit - took) / 1000000u) + 1 : 1;
}

/* Return the first tensor not marked ready, else the first not done. */
static const struct trib_group_tensor *awaited(const struct trib_group *g)
{
    const struct trib_group_tensor *first = NULL;

    for (size_t i = 0; i < g->n; i++) {
        const struct trib_group_tensor *t = &g->tensors[i];
        if (!t->ready)
            return t;
        if (!t->done && !first)
            first = t;
    }
    return first;
}

/* Fail a step that exceeds its time limit, on all ranks. */
static trib_status_t check_limit(struct trib_group *g)
{
    const struct trib_group_step *s = &g->step;
    const struct trib_group_tensor *t;
    char says[80], text[500];

    if (!g->opts.timeout_ms || !(t = awaited(g)) ||
        trib_now_ns() - s->begin <= (uint64_t)g->opts.timeout_ms * 1000000u)
        return TRIB_OK;
    snprintf(text, sizeof(text),
             "rank %d: a step of %s has not ended within %d ms: tensor \"%.200s\" %s "
             "(raise trib_group_opts_t.timeout_ms if that is expected)",
             trib_rank(g->comm), trib_group_says(g, says), g->opts.timeout_ms,
             t->desc.name,
             t->ready ? "waits for other ranks" : "was not marked ready here");
    trib_comm_fail_all(g->comm, TRIB_ERR_TIMEOUT, text);
    if (g->comm->hooks)
        g->comm->hooks->fail(g->comm, TRIB_ERR_TIMEOUT, text);
    return g->comm->engine.failed;
}

static void end_bucket(struct trib_group *g, struct trib_bucket *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        struct trib_group_tensor *t = trib_bucket_tensor(g, b, i);
        if (!b->direct) {
            memcpy(t->recv, b->buffer + t->offset, t->bytes);
            g->stats.copied_bytes += t->bytes;
        }
        end_tensor(g, t, TRIB_OK);
    }
}

static struct trib_bucket *oldest(const struct trib_group *g)
{
    return &g->buckets.at[g->queue[g->step.n_ended]];
}

static trib_status_t end_buckets(struct trib_group *g)
{
    struct trib_group_step *s = &g->step;

    while (running(s)) {
        struct trib_bucket *b = oldest(g);
        const trib_status_t st = trib_plan_test(b->plan);
        if (st == TRIB_INPROGRESS)
            return TRIB_OK;
        if (st != TRIB_OK)
            return st;
        s->n_ended++;
        end_bucket(g, b);
    }
    return TRIB_OK;
}

/* ---- starts ---- */

/* Start a plan. Starts have the same order on all ranks only if nothing else on the
 * communicator is started between them. */
static trib_status_t start(struct trib_group *g, trib_plan_t *plan, const void *send,
                           void *recv)
{
    struct trib_group_step *s = &g->step;
    char text[80];

    if (g->comm->starts != s->starts)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "%s: another operation was started on its communicator "
                              "during a step: finish the step first, or use another "
                              "communicator (trib_split)",
                              trib_group_says(g, text));
    if (g->opts.timeout_ms && !plan->offload) /* aggregators get the whole limit */
        plan->run.desc.limit_ms = left_ms(g);
    const trib_status_t st = trib_plan_start_with(plan, send, recv);
    s->starts = g->comm->starts;
    return st;
}

static trib_status_t start_bucket(struct trib_group *g, uint32_t index)
{
    struct trib_bucket *b = &g->buckets.at[index];
    const struct trib_group_tensor *t = trib_bucket_tensor(g, b, 0);

    assert(b->n_ready == b->n && !b->started);
    b->started = true;
    g->queue[g->step.n_started++] = index;
    return b->direct ? start(g, b->plan, t->send, t->recv)
                     : start(g, b->plan, NULL, b->buffer);
}

/* Start the buckets of the highest priority allowed by `words`, up to about
 * bucket_bytes. */
static trib_status_t start_some(struct trib_group *g, const int8_t *words)
{
    uint32_t newest = 0;
    size_t bytes = 0;
    trib_status_t st = TRIB_OK;

    for (uint32_t k = 0; k < g->buckets.n && st == TRIB_OK; k++) {
        const uint32_t index = g->buckets.order[k];
        const struct trib_bucket *b = &g->buckets.at[index];
        if (!words[index])
            continue;
        if (bytes && bytes + b->bytes > g->opts.bucket_bytes) {
            g->stats.overtaken += b->ready_seq < newest;
            continue;
        }
        bytes += b->bytes;
        newest = b->ready_seq > newest ? b->ready_seq : newest;
        st = start_bucket(g, index);
    }
    return st;
}

/* ---- agreement ---- */

/* Fill in this rank's bytes; true if a bucket's byte is 1. */
static bool say(struct trib_group *g, enum trib_step_mood mood)
{
    bool any = false;

    for (uint32_t i = 0; i < g->buckets.n; i++) {
        const struct trib_bucket *b = &g->buckets.at[i];
        g->words[i] = b->n_ready == b->n && !b->started;
        any |= g->words[i];
    }
    g->words[g->buckets.n] = mood == TRIB_STEP_BLOCKED;
    return any;
}

/* Return true if this rank should enter the next agreement. */
static bool wants_to_ask(const struct trib_group *g, enum trib_step_mood mood)
{
    const struct trib_group_step *s = &g->step;

    if (s->asking || s->n_ready == s->n_started || running(s) > RUNNING_MOST)
        return false;
    return s->news || mood != TRIB_STEP_NEWS || s->n_ready == g->buckets.n;
}

static trib_status_t ask(struct trib_group *g, enum trib_step_mood mood)
{
    struct trib_group_step *s = &g->step;

    if (!wants_to_ask(g, mood))
        return TRIB_OK;
    if (!say(g, mood))
        assert(!"a ready bucket has a word");
    s->news = false;
    if (!g->agree)
        return start_some(g, g->words);
    s->asking = true;
    g->stats.agreements++;
    return start(g, g->agree, NULL, g->words);
}

static trib_status_t hear(struct trib_group *g)
{
    struct trib_group_step *s = &g->step;
    const uint32_t before = s->n_started;
    char text[80];

    if (!s->asking)
        return TRIB_OK;
    trib_status_t st = trib_plan_test(g->agree);
    if (st != TRIB_OK)
        return st == TRIB_INPROGRESS ? TRIB_OK : st;
    s->asking = false;
    st = start_some(g, g->words);
    if (st != TRIB_OK || s->n_started != before || !g->words[g->buckets.n])
        return st;
    return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                          "%s: all ranks wait for tensors, none of which is ready on "
                          "all ranks: mark them (trib_group_ready) before waiting",
                          trib_group_says(g, text));
}

/* ---- the cycle and the end of a step ---- */

static trib_status_t end_step(struct trib_group *g)
{
    struct trib_group_step *s = &g->step;
    trib_status_t st = TRIB_OK;

    if (s->tensors_done < g->n)
        return TRIB_OK;
    if (g->measure && !s->timing) {
        s->timing = true;
        trib_cycle_take(g);
        st = start(g, g->measure, NULL, g->times);
    }
    if (st == TRIB_OK && s->timing) {
        st = trib_plan_test(g->measure);
        if (st != TRIB_OK)
            return st == TRIB_INPROGRESS ? TRIB_OK : st;
        s->timing = false;
        st = trib_cycle_end(g);
    }
    if (st == TRIB_OK) {
        s->running = false;
        g->stats.steps++;
        trib_group_tell(g, TRIB_OK);
    }
    return st;
}

trib_status_t trib_step_drive(struct trib_group *g, enum trib_step_mood mood)
{
    struct trib_group_step *s = &g->step;
    uint32_t before;
    trib_status_t st;

    assert(s->running && !s->failed);
    trib_group_rearm(g);
    do {
        before = s->n_started + s->n_ended;
        st = end_buckets(g);
        if (st == TRIB_OK)
            st = hear(g);
        if (st == TRIB_OK)
            st = ask(g, mood);
    } while (st == TRIB_OK && s->n_started + s->n_ended != before);
    if (st == TRIB_OK)
        st = end_step(g);
    if (st == TRIB_OK && s->running)
        st = check_limit(g);
    return st == TRIB_OK ? st : fail(g, st);
}

trib_status_t trib_step_block(struct trib_group *g)
{
    struct trib_group_step *s = &g->step;
    trib_status_t st = TRIB_OK;

    assert(s->running && !s->failed);
    if (running(s))
        st = trib_plan_wait(oldest(g)->plan);
    else if (s->asking)
        st = trib_plan_wait(g->agree);
    else if (s->timing)
        st = trib_plan_wait(g->measure);
    return st == TRIB_OK ? st : fail(g, st);
}

/* ---- beginning of a step ---- */

static bool disjoint(const void *a, const void *b, size_t bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x + bytes <= y || y + bytes <= x;
}

static trib_status_t take_buffers(struct trib_group *g, struct trib_group_tensor *t,
                                  const void *send, void *recv)
{
    if (send == recv)
        send = NULL;
    if (t->desc.count && !recv)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "tensor \"%s\": recv is NULL; set it in the description, "
                              "or pass buffers to trib_group_start_with",
                              t->desc.name);
    if (send && !disjoint(send, recv, t->bytes))
        return trib_comm_fail(g->comm, TRIB_ERR_OVERLAP,
                              "tensor \"%s\": send and recv (%zu bytes at %p and %p) "
                              "overlap; for an in-place operation pass the same "
                              "pointer",
                              t->desc.name, t->bytes, send, recv);
    t->send = send;
    t->recv = recv;
    return TRIB_OK;
}

/* Return true if a bucket's tensors are contiguous, in send and in recv. */
static bool is_in_one_piece(const struct trib_group *g, const struct trib_bucket *b)
{
    const struct trib_group_tensor *first = trib_bucket_tensor(g, b, 0);

    for (uint32_t i = 1; i < b->n; i++) {
        const struct trib_group_tensor *t = trib_bucket_tensor(g, b, i);
        if ((uintptr_t)t->recv != (uintptr_t)first->recv + t->offset ||
            !t->send != !first->send ||
            (t->send && (uintptr_t)t->send != (uintptr_t)first->send + t->offset))
            return false;
    }
    return !first->send || disjoint(first->send, first->recv, b->bytes);
}

static trib_status_t take_all_buffers(struct trib_group *g, const void *const *sends,
                                      void *const *recvs)
{
    for (size_t i = 0; i < g->n; i++) {
        struct trib_group_tensor *t = &g->tensors[i];
        const trib_status_t st =
            recvs ? take_buffers(g, t, sends ? sends[i] : NULL, recvs[i])
                  : take_buffers(g, t, t->desc.send, t->desc.recv);
        if (st != TRIB_OK)
            return st;
    }
    return TRIB_OK;
}

static void mark(struct trib_group *g, struct trib_group_tensor *t)
{
    struct trib_group_step *s = &g->step;

    t->ready = true;
    s->tensors_ready++;
    if (t->bucket == TRIB_BUCKET_NONE) {
        end_tensor(g, t, TRIB_OK);
        return;
    }
    struct trib_bucket *b = &g->buckets.at[t->bucket];
    if (!b->direct) {
        memcpy(b->buffer + t->offset, t->send ? t->send : t->recv, t->bytes);
        g->stats.copied_bytes += t->bytes;
    }
    if (++b->n_ready < b->n)
        return;
    b->ready_seq = ++s->n_ready;
    s->news = true;
}

static void reset(struct trib_group *g)
{
    g->step = (struct trib_group_step){
        .running = true, .begin = trib_now_ns(), .starts = g->comm->starts};
    for (size_t i = 0; i < g->n; i++)
        g->tensors[i].ready = g->tensors[i].done = false;
    for (uint32_t i = 0; i < g->buckets.n; i++) {
        struct trib_bucket *b = &g->buckets.at[i];
        b->started = false;
        b->n_ready = b->ready_seq = 0;
        b->direct = is_in_one_piece(g, b);
        assert(b->direct || b->buffer);
    }
}

/* Mark all tensors ready, and start each bucket once copied. */
static trib_status_t start_all(struct trib_group *g)
{
    trib_status_t st = TRIB_OK;

    for (size_t i = 0; i < g->n; i++)
        if (g->tensors[i].bucket == TRIB_BUCKET_NONE)
            mark(g, &g->tensors[i]);
    for (uint32_t k = 0; k < g->buckets.n && st == TRIB_OK; k++) {
        const uint32_t index = g->buckets.order[k];
        const struct trib_bucket *b = &g->buckets.at[index];
        for (uint32_t i = 0; i < b->n; i++)
            mark(g, trib_bucket_tensor(g, b, i));
        st = start_bucket(g, index);
    }
    return st == TRIB_OK ? st : fail(g, st);
}

trib_status_t trib_step_begin(struct trib_group *g, const void *const *sends,
                              void *const *recvs)
{
    const trib_status_t st = take_all_buffers(g, sends, recvs);

    if (st != TRIB_OK)
        return st;
    reset(g);
    trib_group_rearm(g);
    return g->opts.feed == TRIB_FEED_WHOLE ? start_all(g) : TRIB_OK;
}

trib_status_t trib_step_mark(struct trib_group *g, size_t tensor)
{
    struct trib_group_tensor *t = &g->tensors[tensor];
    const char *why = g->opts.feed == TRIB_FEED_WHOLE
                          ? "all tensors are ready at trib_group_start: set "
                            "trib_group_opts_t.feed"
                      : !g->step.running ? "no step is running: call trib_group_start "
                                           "first"
                      : t->ready         ? "it was already marked ready in this step"
                                         : NULL;

    if (why)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID, "tensor \"%s\": %s",
                              t->desc.name, why);
    if (g->measure)
        t->ready_us = (uint32_t)((trib_now_ns() - g->step.begin) / 1000);
    mark(g, t);
    return TRIB_OK;
}
