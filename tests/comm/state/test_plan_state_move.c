/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a plan moves to a plan of another communicator: of the same ranks, and
 * the run continues with the same bits; of fewer, and each keeps its residual; of more,
 * and newcomers start without one. Starts are undone or dropped.
 */
#include "tests/harness/tribtest.h"

#include <tributary/elastic.h>

#include "base/error.h"
#include "build-config.h"
#include "comm/core/plan_struct.h"
#include "comm/state/plan_state.h"
#include "tests/comm/fed.h"

enum { WORLD = 4, STEPS = 3, LOST = 1 };

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct scene {
    const char *codec, *feedback;
    trib_dtype_t dtype;
    trib_op_t op;
    trib_coll_t coll;
    bool exact; /* contributions plus residuals equal the inputs */
};

static const struct scene scenes[] = {
    {"topk:ratio=0.1", NULL, TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, true},
    {"topk:ratio=0.2", "ef14", TRIB_BF16, TRIB_MEAN, TRIB_ALLREDUCE, false},
    {"randomk:ratio=0.1", "ef14:momentum=0.5", TRIB_F64, TRIB_SUM, TRIB_ALLREDUCE,
     false},
    {"topk:ratio=0.2", "ef21", TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, false},
    {"topk:ratio=0.2", "ef21:momentum=0.5", TRIB_F16, TRIB_MEAN, TRIB_ALLREDUCE, false},
    {"qsgd:bits=4,ef=1", NULL, TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, false},
    {"powersgd:rank=2", NULL, TRIB_F32, TRIB_MEAN, TRIB_ALLREDUCE, false},
    {"blocks:ratio=0.1,block=16", NULL, TRIB_F32, TRIB_SUM, TRIB_REDUCE_SCATTER, false},
    {"topk:ratio=0.1", NULL, TRIB_F32, TRIB_SUM, TRIB_REDUCE, true},
    {"none", NULL, TRIB_I64, TRIB_SUM, TRIB_ALLREDUCE, false},
};

/* Communicators that all tests of a rank use. */
struct comms {
    trib_comm_t *all[3];
    trib_comm_t *fewer; /* without the rank LOST; NULL there */
};

struct run {
    trib_comm_t *comm;
    trib_plan_t *plan;
    size_t n, total;
    char *send, *recv;
};

static void open_comms(struct ranks_self *self, struct comms *c)
{
    const int color = self->rank == LOST ? -1 : 0;

    self->opts.rewind = 1;
    ranks_ok(self, trib_init(&self->opts, &self->comm));
    for (int i = 0; i < 3; i++)
        ranks_ok(self, trib_split(self->comm, 0, self->rank, &c->all[i]));
    ranks_ok(self, trib_split(self->comm, color, self->rank, &c->fewer));
}

static void close_comms(struct ranks_self *self, struct comms *c)
{
    for (int i = 0; i < 3; i++)
        ranks_ok(self, trib_free_comm(c->all[i]));
    ranks_ok(self, trib_free_comm(c->fewer));
    ranks_ok(self, trib_free_comm(self->comm));
}

static trib_plan_t *plan_of(struct ranks_self *self, trib_comm_t *comm,
                            const struct scene *s, size_t n)
{
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    d.count = n;
    d.dtype = s->dtype;
    d.op = s->op;
    d.codec = s->codec;
    d.feedback = s->feedback;
    d.chunk = 4096;
    d.name = "moved";
    if (trib_plan_create(comm, s->coll, &d, &plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(comm));
    return plan;
}

static void open_buffers(struct ranks_self *self, struct run *r, trib_comm_t *comm,
                         const struct scene *s, size_t n)
{
    const size_t ranks = s->coll == TRIB_REDUCE_SCATTER ? (size_t)trib_size(comm) : 1;

    *r = (struct run){.comm = comm, .n = n, .total = n * ranks};
    r->send = calloc(r->total + 1, trib_dtype_size(s->dtype));
    r->recv = calloc(r->total + 1, trib_dtype_size(s->dtype));
    ranks_assert(self, r->send && r->recv);
}

static void open_run(struct ranks_self *self, struct run *r, trib_comm_t *comm,
                     const struct scene *s, size_t n)
{
    open_buffers(self, r, comm, s, n);
    r->plan = plan_of(self, comm, s, n);
}

/* A run whose plan continues from another one, which the caller or the library
 * creates. */
static void move_run(struct ranks_self *self, struct run *r, trib_comm_t *comm,
                     const struct scene *s, const struct run *from, bool by_caller)
{
    trib_status_t st;

    open_buffers(self, r, comm, s, from->n);
    if (by_caller) {
        r->plan = plan_of(self, comm, s, from->n);
        st = trib_plan_state_move(r->plan, from->plan, STEPS);
    } else {
        st = trib_plan_move(comm, from->plan, NULL, NULL, STEPS, &r->plan);
    }
    if (st != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(comm));
}

static void close_run(struct ranks_self *self, struct run *r)
{
    ranks_ok(self, trib_plan_free(r->plan));
    free(r->send);
    free(r->recv);
}

static double input(int rank, uint64_t step, size_t i)
{
    return (double)((int)(oracle_mix(step * 0x10001 + (uint64_t)rank * 77777 + i) % 7) -
                    3);
}

static void start(struct ranks_self *self, const struct scene *s, struct run *r,
                  uint64_t step)
{
    for (size_t i = 0; i < r->total; i++) {
        const double x = input(self->rank, step, i);
        perf_number_store(s->dtype, r->send, i, oracle_whole(s->dtype, x));
    }
    ranks_ok(self, trib_plan_start_with(r->plan, r->send, r->recv));
    if (trib_plan_wait(r->plan) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(r->comm));
}

static unsigned char *save(struct ranks_self *self, trib_plan_t *plan, size_t *bytes)
{
    ranks_ok(self, trib_plan_state_save(plan, NULL, 0, bytes));
    unsigned char *state = malloc(*bytes);
    ranks_assert(self, state);
    ranks_ok(self, trib_plan_state_save(plan, state, *bytes, bytes));
    return state;
}

/* Check that two states have the same sections, except for marks, models and sections
 * that are recomputed. */
static void same_sections(struct ranks_self *self, const unsigned char *a,
                          const unsigned char *b, size_t bytes)
{
    struct trib_error err = {0};
    struct trib_state_plan was, is;
    struct trib_sections x, y;
    struct trib_section p, q;

    ranks_ok(self, trib_state_open(a, bytes, &err, &x, &was));
    ranks_ok(self, trib_state_open(b, bytes, &err, &y, &is));
    while (trib_sections_step(&x, &p)) {
        ranks_ok(self, trib_sections_next(&y, p.name, &err, &q));
        ranks_assert(self, p.bytes == q.bytes);
        if (strcmp(p.name, "sent") && strcmp(p.name, "model") &&
            strcmp(p.name, "sum") && memcmp(p.data, q.data, p.bytes) != 0)
            ranks_die(self, "section %s differs", p.name);
    }
}

static void same_on_all(struct ranks_self *self, const struct scene *s,
                        const struct run *r)
{
    int n = -1;

    ranks_ok(self, trib_comm_same(
                       r->comm, trib_hash(r->recv, r->n * trib_dtype_size(s->dtype), 0),
                       NULL, 0, &n));
    if (s->coll == TRIB_ALLREDUCE)
        ranks_assert(self, n == 0);
}

/* ---- the same ranks -------------------------------------------------------------- */

/* Compare a run that was moved after `steps` of `begun` starts with one that was not:
 * the same bits. */
static void goes_on(struct ranks_self *self, const struct comms *c,
                    const struct scene *s, uint64_t back)
{
    const size_t n = back == 1 ? 20011 : 1237, bytes = n * trib_dtype_size(s->dtype);
    struct run all, other, moved;

    open_run(self, &all, c->all[0], s, n);
    open_run(self, &other, c->all[1], s, n);
    /* Plans of one name draw the same numbers in one communicator, and with the key
     * that moves. */
    start(self, s, &all, 0);
    ranks_ok(self, trib_plan_state_move(other.plan, all.plan, 1));
    for (uint64_t k = 1; k < STEPS; k++) {
        start(self, s, &all, k);
        start(self, s, &other, k);
    }
    for (uint64_t k = 0; k < back; k++)
        start(self, s, &other, 1000 + k);
    move_run(self, &moved, c->all[2], s, &other, back == 1);
    for (uint64_t k = 0; k < STEPS; k++) {
        start(self, s, &all, STEPS + k);
        start(self, s, &moved, STEPS + k);
        ranks_assert(self, s->coll == TRIB_REDUCE
                               ? true
                               : memcmp(all.recv, moved.recv, bytes) == 0);
        same_on_all(self, s, &moved);
    }
    close_run(self, &all);
    close_run(self, &other);
    close_run(self, &moved);
}

RANKS_TEST_ON(test_same_ranks, ("shm"), .size = WORLD, .bare = true, .seconds = 100,
              .noisy = true)
{
    struct comms c;

    open_comms(self, &c);
    for (size_t k = 0; k < sizeof(scenes) / sizeof(scenes[0]); k++)
        for (uint64_t back = 0; back <= 2; back++)
            goes_on(self, &c, &scenes[k], back);
    close_comms(self, &c);
    return 0;
}

/* ---- other ranks ----------------------------------------------------------------- */

/* Check that the result is the sum of all contributions of the last step. */
static void check_sum(struct ranks_self *self, const struct scene *s,
                      const struct run *r, const float *before, uint64_t step)
{
    double *sent = calloc(r->total + 1, sizeof(*sent));
    float *now = calloc(r->total + 1, sizeof(*now));

    ranks_assert(self, sent && now);
    ranks_ok(self, trib_plan_residual_get(r->plan, 0, r->total, now));
    for (size_t i = 0; i < r->total; i++)
        sent[i] = (double)before[i] + input(self->rank, step, i) - (double)now[i];
    ranks_ok(self, trib_allreduce(r->comm, NULL, sent, r->total, TRIB_F64, TRIB_SUM));
    for (size_t i = 0; i < r->n && (s->coll == TRIB_ALLREDUCE || !trib_rank(r->comm));
         i++)
        ranks_assert(self, perf_number_load(s->dtype, r->recv, i).f == sent[i]);
    free(sent);
    free(now);
}

/* A reduce-scatter keeps the blocks of the remaining ranks; other plans keep the whole
 * residual. */
static void check_residual(struct ranks_self *self, const struct run *from,
                           const struct run *to, const float *was)
{
    float *now = calloc(to->total + 1, sizeof(*now));
    size_t at = 0;

    ranks_assert(self, now);
    ranks_ok(self, trib_plan_residual_get(to->plan, 0, to->total, now));
    for (size_t i = 0; i < from->total; i++)
        if (from->total == from->n || i / from->n != LOST)
            ranks_assert(self, now[at++] == was[i]);
    ranks_assert(self, at == to->total);
    free(now);
}

static bool has_residual(const struct scene *s)
{
    return strcmp(s->codec, "none") && !(s->feedback && strstr(s->feedback, "ef21"));
}

/* The rank LOST is missing; starts are undone or dropped. */
static void shrinks(struct ranks_self *self, const struct comms *c,
                    const struct scene *s, int back)
{
    const size_t n = back == 1 ? 20011 : 1237;
    struct run from, to;
    trib_comm_t *all = c->all[0], *fewer = c->fewer;
    size_t bytes, bytes_after;

    open_run(self, &from, all, s, n);
    for (uint64_t k = 0; k < STEPS; k++)
        start(self, s, &from, k);
    unsigned char *before = save(self, from.plan, &bytes);
    float *held = calloc(from.total + 1, sizeof(*held));
    ranks_assert(self, held);
    if (has_residual(s))
        ranks_ok(self, trib_plan_residual_get(from.plan, 0, from.total, held));
    for (int k = 0; k < back; k++)
        start(self, s, &from, STEPS + (uint64_t)k);
    if (fewer) {
        move_run(self, &to, fewer, s, &from, back == 1);
        unsigned char *after = save(self, to.plan, &bytes_after);
        if (s->coll != TRIB_REDUCE_SCATTER && !strstr(s->codec, "powersgd")) {
            ranks_assert(self, bytes_after == bytes);
            same_sections(self, before, after, bytes);
        }
        if (has_residual(s))
            check_residual(self, &from, &to, held);
        for (uint64_t k = 0; k < STEPS; k++) {
            if (s->exact)
                ranks_ok(self, trib_plan_residual_get(to.plan, 0, to.total, held));
            start(self, s, &to, STEPS + k);
            same_on_all(self, s, &to);
            if (s->exact)
                check_sum(self, s, &to, held, STEPS + k);
        }
        close_run(self, &to);
        free(after);
    }
    close_run(self, &from);
    free(before);
    free(held);
}

/* Newcomers have no residual, and all continue with the step and key of the others. */
static void grows(struct ranks_self *self, const struct comms *c, const struct scene *s,
                  bool by_caller)
{
    const size_t n = 1237;
    struct run from = {.n = n}, to;
    trib_comm_t *all = c->all[0], *fewer = c->fewer;
    float *held = calloc(n * WORLD + 1, sizeof(*held));

    ranks_assert(self, held);
    if (fewer) {
        open_run(self, &from, fewer, s, n);
        for (uint64_t k = 0; k < STEPS; k++)
            start(self, s, &from, k);
    }
    move_run(self, &to, all, s, &from, by_caller);
    if (s->exact)
        ranks_ok(self, trib_plan_residual_get(to.plan, 0, to.total, held));
    for (size_t i = 0; !fewer && i < to.total; i++)
        ranks_assert(self, held[i] == 0);
    start(self, s, &to, STEPS);
    same_on_all(self, s, &to);
    if (s->exact)
        check_sum(self, s, &to, held, STEPS);
    close_run(self, &to);
    if (fewer)
        close_run(self, &from);
    free(held);
}

RANKS_TEST_ON(test_other_ranks, ("shm", "tcp", IF_UCX("ucx")), .size = WORLD,
              .bare = true, .seconds = 100, .noisy = true)
{
    struct comms c;

    open_comms(self, &c);
    for (size_t k = 0; k < sizeof(scenes) / sizeof(scenes[0]); k++) {
        for (int back = 0; back <= 2; back++)
            shrinks(self, &c, &scenes[k], back);
        grows(self, &c, &scenes[k], true);
        grows(self, &c, &scenes[k], false);
    }
    close_comms(self, &c);
    return 0;
}

/* ---- refusals -------------------------------------------------------------------- */

/* All ranks refuse, each for one of two reasons, and the new plan has no state. */
static void refused(struct ranks_self *self, trib_plan_t *plan, trib_plan_t *from,
                    uint64_t steps, const char *mine, const char *others)
{
    const trib_status_t st = trib_plan_state_move(plan, from, steps);
    const char *text = trib_last_error(self->comm);
    float x[64];

    if (st == TRIB_OK || !(strstr(text, mine) || strstr(text, others)))
        ranks_die(self, "%s and not \"%s\": %s", trib_status_name(st), mine, text);
    ranks_ok(self, trib_plan_residual_get(plan, 0, 64, x));
    for (int i = 0; i < 64; i++)
        ranks_assert(self, x[i] == 0);
}

static trib_plan_t *variant(struct ranks_self *self, const struct scene *s, size_t n)
{
    trib_plan_t *plan = plan_of(self, self->comm, s, n);
    float *x = calloc(n, 8);

    ranks_assert(self, x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)i;
    ranks_ok(self, trib_plan_start_with(plan, NULL, x));
    ranks_ok(self, trib_plan_wait(plan));
    free(x);
    return plan;
}

static int refusals(struct ranks_self *self)
{
    const struct scene topk = scenes[0];
    const char *other = "its own error message gives the reason";
    struct scene s;
    trib_plan_t *to = plan_of(self, self->comm, &topk, 1237);
    trib_plan_t *from = variant(self, &topk, 1237), *odd;
    int64_t x;

    ranks_assert(self, trib_plan_state_move(NULL, from, 1) == TRIB_ERR_INVALID);
    refused(self, to, NULL, 1, "no rank has passed an old one", "-");
    refused(self, to, to, 1, "are the same", other);
    refused(self, to, from, self->rank == 2 ? 3 : 1,
            "steps is 1 on rank 0, but 3 on rank 2", "-");
    refused(self, to, from, 0,
            "1 and can undo none: pass the number begun to drop "
            "these steps, or set trib_opts_t.rewind",
            other);
    refused(self, to, from, UINT64_MAX, "more than a plan can count", other);
    odd = variant(self, &topk, 1238);
    refused(self, to, self->rank == 1 ? odd : from, 1,
            "1238 elements, the new one 1237", other);
    ranks_ok(self, trib_plan_free(odd));
    s = (struct scene){"topk:ratio=0.5", NULL, TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, 0};
    odd = variant(self, &s, 1237);
    refused(self, to, odd, 1, "codec", other);
    ranks_ok(self, trib_plan_free(odd));
    s = topk;
    s.feedback = "none";
    odd = variant(self, &s, 1237);
    refused(self, to, odd, 1, "feedback", other);
    ranks_ok(self, trib_plan_free(odd));
    s = topk;
    s.op = TRIB_MEAN;
    odd = variant(self, &s, 1237);
    refused(self, to, odd, 1, "op mean", other);
    ranks_ok(self, trib_plan_free(odd));
    ranks_ok(self, trib_plan_send(self->comm, &x, 1, TRIB_I64, 0, 7, &odd));
    refused(self, to, odd, 1, "plans of messages", other);
    ranks_ok(self, trib_plan_free(odd));
    ranks_ok(self, trib_plan_state_move(to, from, 1));
    ranks_ok(self, trib_plan_free(to));
    ranks_ok(self, trib_plan_free(from));
    return 0;
}

TEST_ON(test_refusals, "shm")
{
    ranks_pass(.size = WORLD, .fn = refusals, .config = *state, .noisy = true);
}
