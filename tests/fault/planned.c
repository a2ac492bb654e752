/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fault/planned.h"

#include <tributary/elastic.h>

#include "base/error.h"
#include "comm/state/plan_state.h"
#include "tests/comm/oracle.h"

enum { KEPT = 4 }; /* number of steps whose states are kept */

struct planned {
    struct ranks_self *self;
    const struct planned_job *job;
    trib_comm_t *comm;
    trib_plan_t *plan;
    size_t n;
    float *send, *recv;
    int64_t *sums; /* [n + 3] sent by all ranks; marks, stops, hashes */
    uint64_t begun, done; /* steps */
    struct kept {
        unsigned char *state; /* of the plan after a step */
        size_t bytes;
        float *held; /* residual of the plan */
        float *params; /* sum of all results */
    } kept[KEPT];
};

static struct kept *kept_of(struct planned *p, uint64_t step)
{
    return &p->kept[step % KEPT];
}

static float input(const struct planned *p, uint64_t step, size_t i)
{
    return (float)((int)(oracle_mix(step * 4099 + (uint64_t)p->self->rank * 77777 + i) %
                         7) -
                   3);
}

static trib_status_t make(struct planned *p, trib_comm_t *comm, trib_plan_t **plan_out)
{
    trib_desc_t d =
        sized(trib_desc_t, .count = p->n, .codec = p->job->codec,
              .feedback = p->job->feedback, .chunk = 4096, .name = "planned");

    return trib_plan_allreduce(comm, &d, plan_out);
}

static void open_planned(struct planned *p)
{
    struct ranks_self *self = p->self;

    ranks_ok(self, trib_init(&self->opts, &p->comm));
    ranks_ok(self, make(p, p->comm, &p->plan));
    p->send = calloc(p->n, sizeof(*p->send));
    p->recv = calloc(p->n, sizeof(*p->recv));
    p->sums = calloc(p->n + 3, sizeof(*p->sums));
    ranks_ok(self, trib_plan_state_save(p->plan, NULL, 0, &p->kept[0].bytes));
    for (int i = 0; i < KEPT; i++) {
        struct kept *k = &p->kept[i];
        k->bytes = p->kept[0].bytes;
        k->state = malloc(k->bytes);
        k->held = calloc(p->n, sizeof(*k->held));
        k->params = calloc(p->n, sizeof(*k->params));
        ranks_assert(self,
                     k->state && k->held && k->params && p->send && p->recv && p->sums);
    }
    ranks_ok(self, trib_plan_state_save(p->plan, p->kept[0].state, p->kept[0].bytes,
                                        &p->kept[0].bytes));
}

static void close_planned(struct planned *p)
{
    ranks_ok(p->self, trib_plan_free(p->plan));
    ranks_ok(p->self, trib_free_comm(p->comm));
    for (int i = 0; i < KEPT; i++) {
        free(p->kept[i].state);
        free(p->kept[i].held);
        free(p->kept[i].params);
    }
    free(p->send);
    free(p->recv);
    free(p->sums);
}

static bool has_residual(const struct planned *p)
{
    return !p->job->feedback || !strstr(p->job->feedback, "ef21");
}

/* Return true if this plan sends its input plus the old residual, minus the new
 * residual. */
static bool adds_up(const struct planned *p)
{
    return !p->job->feedback;
}

/* Sum the contributions of all ranks, computed from their residuals, and their
 * marks. */
static trib_status_t check(struct planned *p, bool *stop_out)
{
    struct ranks_self *self = p->self;
    const int64_t mine = (int64_t)1 << PLANNED_MARK_BITS * self->rank;
    const struct kept *was = kept_of(p, p->done), *is = kept_of(p, p->begun);
    const uint64_t hash = trib_hash(p->recv, p->n * sizeof(*p->recv), 0);
    int64_t *sums = p->sums, *marks = sums + p->n;

    for (size_t i = 0; i < p->n; i++)
        sums[i] = adds_up(p) ? (int64_t)(was->held[i] + p->send[i] - is->held[i]) : 0;
    marks[0] = mine;
    marks[1] = p->job->may_stop(self, p->comm);
    marks[2] = (int64_t)(hash >> 8);
    const trib_status_t st =
        trib_allreduce(p->comm, NULL, sums, p->n + 3, TRIB_I64, TRIB_SUM);
    if (st != TRIB_OK)
        return st;
    for (size_t i = 0; adds_up(p) && i < p->n; i++)
        ranks_assert(self, p->recv[i] == (float)sums[i]);
    ranks_assert(self, marks[0] & mine);
    ranks_assert(self, marks[2] == (int64_t)(hash >> 8) * trib_size(p->comm));
    *stop_out = marks[1] == trib_size(p->comm);
    return TRIB_OK;
}

static trib_status_t step(struct planned *p, bool *stop_out)
{
    struct ranks_self *self = p->self;
    const struct kept *was = kept_of(p, p->done);

    p->begun = p->done + 1;
    struct kept *is = kept_of(p, p->begun);
    for (size_t i = 0; i < p->n; i++)
        p->send[i] = input(p, p->begun, i);
    trib_status_t st = trib_plan_start_with(p->plan, p->send, p->recv);
    if (st == TRIB_OK)
        st = trib_plan_wait(p->plan);
    if (st != TRIB_OK)
        return st;
    if (has_residual(p))
        ranks_ok(self, trib_plan_residual_get(p->plan, 0, p->n, is->held));
    ranks_ok(self, trib_plan_state_save(p->plan, is->state, is->bytes, &is->bytes));
    st = check(p, stop_out);
    if (st != TRIB_OK)
        return st;
    for (size_t i = 0; i < p->n; i++)
        is->params[i] = was->params[i] + p->recv[i];
    p->done = p->begun;
    return TRIB_OK;
}

/* Check that the moved state has the same sections as after step p->done, except for
 * marks and sections that are recomputed. */
static void check_moved(const struct planned *p, trib_plan_t *plan,
                        const struct kept *was)
{
    struct ranks_self *self = p->self;
    unsigned char *state = malloc(was->bytes);
    struct trib_error err = {0};
    struct trib_state_plan about;
    struct trib_sections now, then;
    struct trib_section x, y;
    size_t bytes;

    ranks_assert(self, state);
    ranks_ok(self, trib_plan_state_save(plan, state, was->bytes, &bytes));
    ranks_assert(self, bytes == was->bytes);
    ranks_ok(self, trib_state_open(state, bytes, &err, &now, &about));
    ranks_ok(self, trib_state_open(was->state, bytes, &err, &then, &about));
    while (trib_sections_step(&now, &x)) {
        ranks_ok(self, trib_sections_next(&then, x.name, &err, &y));
        ranks_assert(self, x.bytes == y.bytes);
        if (strcmp(x.name, "sent") && strcmp(x.name, "sum") && was->held &&
            (p->done || strcmp(x.name, "noise")) &&
            memcmp(x.data, y.data, x.bytes) != 0)
            ranks_die(self, "section %s is not that of step %llu", x.name,
                      (unsigned long long)p->done);
    }
    free(state);
}

/* Check that each element is unchanged or belongs to the dropped step, as input or as
 * sent. */
static void check_dropped(struct planned *p, trib_plan_t *plan, uint64_t done)
{
    struct ranks_self *self = p->self;
    const struct kept *was = kept_of(p, done);
    float *now = kept_of(p, p->done)->held, *held = malloc(p->n * sizeof(*held));

    ranks_assert(self, held);
    ranks_ok(self, trib_plan_residual_get(plan, 0, p->n, held));
    for (size_t i = 0; i < p->n; i++) {
        const float with = was->held[i] + p->send[i];
        ranks_assert(self, held[i] == was->held[i] || held[i] == with || held[i] == 0);
    }
    memcpy(now, held, p->n * sizeof(*now));
    free(held);
}

/* All ranks agree on the next step. Return TRIB_OK once the plan has moved to comm. */
static trib_status_t move(struct planned *p, trib_comm_t *comm)
{
    int64_t steps = (int64_t)(p->job->drops ? p->begun : p->done);
    const uint64_t done = p->done;
    trib_plan_t *plan = NULL;

    trib_status_t st = trib_allreduce(comm, NULL, &steps, 1, TRIB_I64,
                                      p->job->drops ? TRIB_MAX : TRIB_MIN);
    if (st == TRIB_OK)
        st = trib_plan_move(comm, p->plan, NULL, NULL, (uint64_t)steps, &plan);
    if (st == TRIB_ERR_INVALID)
        ranks_die(p->self, "%s", trib_last_error(comm));
    if (st != TRIB_OK)
        return st;
    ranks_ok(p->self, trib_plan_free(p->plan));
    p->plan = plan;
    p->done = (uint64_t)steps;
    if (p->job->drops)
        check_dropped(p, plan, done);
    else
        check_moved(p, plan, kept_of(p, p->done));
    return TRIB_OK;
}

/* Ranks may be lost during the move as well: it is then repeated. */
static void recover(struct planned *p)
{
    trib_comm_t *was = p->comm, *next;

    *p->job->recovers = true;
    do {
        const trib_status_t st = trib_comm_shrink(p->comm, &next);
        if (st != TRIB_OK)
            ranks_die(p->self, "trib_comm_shrink gave %s: %s", trib_status_name(st),
                      trib_last_error(NULL));
        if (p->comm != was)
            (void)trib_free_comm(p->comm);
        p->comm = next;
    } while (move(p, next) != TRIB_OK);
    *p->job->recovers = false;
    (void)trib_free_comm(was);
}

int planned_run(struct ranks_self *self, const struct planned_job *job)
{
    struct planned p = {.self = self, .job = job, .n = job->count};
    bool stop = false;

    self->opts.rewind = !job->drops;
    open_planned(&p);
    ranks_ok(self, trib_barrier(p.comm));
    atomic_store(&self->slot->phase, 1);
    while (!stop)
        if (step(&p, &stop) != TRIB_OK)
            recover(&p);
    const float *params = kept_of(&p, p.done)->params;
    const uint64_t hash = job->drops ? 0 : trib_hash(params, p.n * sizeof(*params), 0);
    atomic_store(&self->slot->count, (uint64_t)p.sums[p.n] + (hash << 40));
    close_planned(&p);
    return 0;
}
