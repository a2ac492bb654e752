/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * N ranks save, M ranks load, for all N and M of 1 to 5: the sum, or mean, of the
 * residuals is the same before and after, and the results add up to all inputs. Inputs
 * are integers whose sums and means here are exact.
 */
#include "comm/state/plan_state.h"
#include "pipeline/payload/error_feedback.h"
#include "tests/harness/tribtest.h"

#include <math.h>

#include "build-config.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/fed.h"

enum { WORLD = 5, COUNT = 1237, STEPS = 3, DRAIN = 40 };

struct scene {
    const char *codec, *feedback;
    trib_dtype_t dtype;
    trib_op_t op;
    trib_coll_t coll;
    double tolerance; /* of sums, relative; 0: they are exact */
    bool drains; /* with zero inputs, the residuals drain */
    bool settles; /* with the same input in each step, the result becomes its sum */
};

struct merger {
    struct ranks_self *self;
    const struct scene *scene;
    trib_comm_t *comm; /* of the ranks of this half; NULL: this rank is not in it */
    trib_plan_t *plan;
    int ranks;
    size_t total; /* elements of each contribution */
    size_t element;
    char *send, *recv;
    double *came, *went; /* [total] summed over all steps and ranks */
    unsigned char *states; /* [WORLD] of bytes each */
    size_t bytes;
};

static double input(const struct merger *m, uint64_t step, int rank, size_t i)
{
    const uint64_t bits = oracle_mix(step * 0x10001 + (uint64_t)rank * 0x1001001 + i);

    return (double)(int)(bits % 7 - 3) * (m->scene->op == TRIB_MEAN ? 60 : 1);
}

static void store(const struct merger *m, char *at, size_t i, double x)
{
    perf_number_store(m->scene->dtype, at, i, (union perf_number){.f = x});
}

static double load(const struct merger *m, const char *at, size_t i)
{
    return perf_number_load(m->scene->dtype, at, i).f;
}

/* Create the plan of the ranks of this half; the others have none. */
static void open_half(struct merger *m, int ranks)
{
    const int rank = m->self->rank;
    trib_desc_t d = TRIB_DESC_INIT;

    m->ranks = ranks;
    m->plan = NULL;
    ranks_ok(m->self, trib_split(m->self->comm, rank < ranks ? 0 : -1, rank, &m->comm));
    if (!m->comm)
        return;
    d.send = m->send;
    d.recv = m->recv;
    d.count =
        m->scene->coll == TRIB_REDUCE_SCATTER ? m->total / (size_t)ranks : m->total;
    d.dtype = m->scene->dtype;
    d.op = m->scene->op;
    d.codec = m->scene->codec;
    d.feedback = m->scene->feedback;
    d.chunk = 4096;
    d.name = "merged";
    if (trib_plan_create(m->comm, m->scene->coll, &d, &m->plan) != TRIB_OK)
        ranks_die(m->self, "%s", trib_last_error(m->comm));
}

static void close_half(struct merger *m)
{
    if (!m->comm)
        return;
    ranks_ok(m->self, trib_plan_free(m->plan));
    ranks_ok(m->self, trib_free_comm(m->comm));
}

/* Run one step with the input of each rank, 0 if `step` is 0. */
static void step(struct merger *m, uint64_t number, bool put)
{
    const double times = m->scene->op == TRIB_MEAN ? m->ranks : 1;
    const bool part = m->scene->coll == TRIB_REDUCE_SCATTER;
    const size_t n = part ? m->total / (size_t)m->ranks : m->total;
    const size_t first = part ? (size_t)m->self->rank * n : 0;

    if (!m->comm)
        return;
    for (size_t i = 0; i < m->total; i++) {
        const double x = put ? input(m, number, m->self->rank, i) : 0;
        store(m, m->send, i, x);
        /* The residual of a mean is scaled by the number of ranks. */
        m->came[i] += x / times;
    }
    ranks_ok(m->self, trib_plan_start(m->plan));
    if (trib_plan_wait(m->plan) != TRIB_OK)
        ranks_die(m->self, "%s", trib_last_error(m->comm));
    for (size_t i = 0; i < n && (part || m->self->rank == 0); i++)
        m->went[first + i] += load(m, m->recv, i);
}

static void sum_world(struct merger *m, double *x, size_t n)
{
    ranks_ok(m->self, trib_allreduce(m->self->comm, NULL, x, n, TRIB_F64, TRIB_SUM));
}

/* Sum a section over the states, in the unit of results. */
static void sum_section(struct merger *m, const char *name, double *sum_out)
{
    memset(sum_out, 0, m->total * sizeof(*sum_out));
    for (int r = 0; r < m->ranks; r++) {
        const struct trib_section s =
            trib_sections_find(m->states + (size_t)r * m->bytes, m->bytes, name);
        for (size_t i = 0; s.data && i < m->total; i++) {
            float x;
            memcpy(&x, s.data + i * sizeof(x), sizeof(x));
            sum_out[i] += (double)x / (m->scene->op == TRIB_MEAN ? m->ranks : 1);
        }
    }
}

/* Give all ranks of the world the states of this half. */
static void save_half(struct merger *m)
{
    size_t bytes = 0;

    if (m->comm)
        ranks_ok(m->self, trib_plan_state_save(m->plan, NULL, 0, &bytes));
    ranks_ok(m->self, trib_broadcast(m->self->comm, &bytes, 1, TRIB_I64, 0));
    unsigned char *mine = calloc(1, bytes);
    free(m->states);
    m->bytes = bytes;
    m->states = malloc(WORLD * bytes);
    ranks_assert(m->self, mine && m->states);
    if (m->comm)
        ranks_ok(m->self, trib_plan_state_save(m->plan, mine, bytes, &bytes));
    ranks_ok(m->self, trib_allgather(m->self->comm, mine, m->states, bytes, TRIB_I8));
    free(mine);
}

/* Rank r of M loads the states r, r + M, … of N. */
static trib_status_t load_half(struct merger *m, int savers)
{
    const void *given[WORLD];
    size_t bytes[WORLD], n = 0;

    for (int r = m->self->rank; r < savers; r += m->ranks) {
        given[n] = m->states + (size_t)r * m->bytes;
        bytes[n++] = m->bytes;
    }
    return trib_plan_state_load_from(m->plan, given, bytes, n);
}

static void same_sums(const struct merger *m, const char *what, const double *a,
                      const double *b, int savers)
{
    for (size_t i = 0; i < m->total; i++)
        if (!(fabs(a[i] - b[i]) <= m->scene->tolerance * (1 + fabs(a[i]))))
            ranks_die(m->self, "%s %s: %s of %d ranks for %d: %.9g at %zu became %.9g",
                      m->scene->codec, m->scene->feedback ? m->scene->feedback : "",
                      what, savers, m->ranks, a[i], i, b[i]);
}

/* The run continues until no residual is left. */
static void drain(struct merger *m, int savers)
{
    for (uint64_t k = 0; k < STEPS; k++)
        step(m, STEPS + k, true);
    for (uint64_t k = 0; k < DRAIN; k++)
        step(m, 0, false);
    sum_world(m, m->came, m->total);
    sum_world(m, m->went, m->total);
    same_sums(m, "all that was put in", m->came, m->went, savers);
}

/* ef21: the result of a constant input becomes its sum, even if h began at 0. */
static void settle(struct merger *m, int savers)
{
    for (uint64_t k = 0; k < DRAIN; k++) {
        memset(m->came, 0, m->total * sizeof(*m->came));
        memset(m->went, 0, m->total * sizeof(*m->went));
        step(m, 9, true);
    }
    sum_world(m, m->came, m->total);
    sum_world(m, m->went, m->total);
    same_sums(m, "the input", m->came, m->went, savers);
}

static void move(struct merger *m, int savers, int loaders)
{
    static const char *const vectors[] = {"residual", "momentum", "own"};
    double *before[3], *after = calloc(m->total, sizeof(*after));

    memset(m->came, 0, m->total * sizeof(*m->came));
    memset(m->went, 0, m->total * sizeof(*m->went));
    open_half(m, savers);
    for (uint64_t k = 0; k < STEPS; k++)
        step(m, k, true);
    save_half(m);
    for (int v = 0; v < 3; v++) {
        before[v] = calloc(m->total, sizeof(*before[v]));
        ranks_assert(m->self, before[v] && after);
        sum_section(m, vectors[v], before[v]);
    }
    close_half(m);
    open_half(m, loaders);
    if (m->comm && load_half(m, savers) != TRIB_OK)
        ranks_die(m->self, "%d to %d: %s", savers, loaders, trib_last_error(m->comm));
    save_half(m);
    for (int v = 0; v < 3; v++) {
        sum_section(m, vectors[v], after);
        same_sums(m, vectors[v], before[v], after, savers);
        free(before[v]);
    }
    free(after);
    if (m->scene->drains)
        drain(m, savers);
    else if (m->scene->settles)
        settle(m, savers);
    else
        step(m, STEPS, true);
    close_half(m);
}

static void open_merger(struct merger *m, struct ranks_self *self)
{
    const struct scene *s = self->arg;

    *m = (struct merger){.self = self, .scene = s, .total = COUNT};
    if (s->coll == TRIB_REDUCE_SCATTER)
        m->total = 60 * 21; /* a multiple of each number of ranks */
    m->element = trib_dtype_size(s->dtype);
    m->send = calloc(m->total, m->element);
    m->recv = calloc(m->total, m->element);
    m->came = calloc(m->total, sizeof(*m->came));
    m->went = calloc(m->total, sizeof(*m->went));
    ranks_assert(self, m->send && m->recv && m->came && m->went);
}

static void close_merger(struct merger *m)
{
    free(m->send);
    free(m->recv);
    free(m->came);
    free(m->went);
    free(m->states);
}

/* Move from each number of savers to each number of loaders, or to one of these
 * only. */
static int move_among(struct ranks_self *self, bool all)
{
    struct merger m;

    open_merger(&m, self);
    for (int savers = 1; savers <= WORLD; savers++)
        for (int loaders = 1; loaders <= WORLD; loaders++)
            if (all || (2 * savers + loaders) % WORLD == 0)
                move(&m, savers, loaders);
    close_merger(&m);
    return 0;
}

static int moves(struct ranks_self *self)
{
    return move_among(self, true);
}

static int some_moves(struct ranks_self *self)
{
    return move_among(self, false);
}

/* States are merged in the same way over each transport, so only shm tries all
 * pairs. */
static ranks_fn moves_over(const char *config)
{
    return strcmp(config, "transport=shm") == 0 ? moves : some_moves;
}

static void run(const char *config, ranks_fn fn, const struct scene *s)
{
    ranks_pass(.size = WORLD, .fn = fn, .arg = (void *)(uintptr_t)s, .config = config,
               .seconds = 200, .noisy = true);
}

TEST_ON(test_drains, "shm", "tcp")
{
    static const struct scene scenes[] = {
        {"topk:ratio=0.1", NULL, TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, 0, true, false},
        {"topk:ratio=0.1", "ef14", TRIB_F32, TRIB_MEAN, TRIB_ALLREDUCE, 0, true, false},
        {"topk:ratio=0.2", NULL, TRIB_BF16, TRIB_SUM, TRIB_ALLREDUCE, 0, true, false},
        {"blocks:ratio=0.1,block=16", NULL, TRIB_F16, TRIB_SUM, TRIB_ALLREDUCE, 0, true,
         false},
        {"topk:ratio=0.1", NULL, TRIB_F32, TRIB_SUM, TRIB_REDUCE_SCATTER, 0, true,
         false},
    };

    for (size_t k = 0; k < sizeof(scenes) / sizeof(scenes[0]); k++)
        run(*state, moves_over(*state), &scenes[k]);
}

TEST_ON(test_rules, "shm", IF_UCX("ucx"))
{
    static const struct scene scenes[] = {
        {"topk:ratio=0.1", "ef14:momentum=0.5", TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, 0,
         false, false},
        {"topk:ratio=0.2", "ef21", TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, 0, false, true},
        {"topk:ratio=0.2", "ef21", TRIB_F32, TRIB_MEAN, TRIB_ALLREDUCE, 0, false, true},
        {"topk:ratio=0.1", "ef21:momentum=0.5", TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, 0,
         false, false},
        {"qsgd:bits=4,ef=1", NULL, TRIB_F32, TRIB_MEAN, TRIB_ALLREDUCE, 1e-5, false,
         false},
        {"powersgd:rank=2", NULL, TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, 1e-5, false,
         false},
        {"none", NULL, TRIB_F64, TRIB_SUM, TRIB_ALLREDUCE, 0, true, false},
    };

    for (size_t k = 0; k < sizeof(scenes) / sizeof(scenes[0]); k++)
        run(*state, moves_over(*state), &scenes[k]);
}

/* ---- bit-identical results ------------------------------------------------------- */

/* The same number of ranks, each with its own state: the same bits as without a
 * break. */
static int goes_on(struct ranks_self *self)
{
    uint64_t hash[2];
    struct merger m;

    open_merger(&m, self);
    open_half(&m, WORLD);
    for (uint64_t k = 0; k < STEPS; k++)
        step(&m, k, true);
    save_half(&m);
    for (int broken = 0; broken < 2; broken++) {
        if (broken) {
            open_half(&m, WORLD);
            ranks_ok(self, load_half(&m, WORLD));
        }
        step(&m, STEPS, true);
        hash[broken] = oracle_hash(m.recv, m.total * m.element);
        close_half(&m);
    }
    ranks_assert(self, hash[0] == hash[1]);
    close_merger(&m);
    return 0;
}

TEST_ON(test_goes_on, "shm", "tcp")
{
    run(*state, goes_on,
        &(struct scene){"powersgd:rank=2", NULL, TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, 0,
                        false, false});
    run(*state, goes_on,
        &(struct scene){"randomk:ratio=0.1", "ef14:momentum=0.9", TRIB_F32, TRIB_MEAN,
                        TRIB_ALLREDUCE, 0, false, false});
}

/* ---- refusals -------------------------------------------------------------------- */

/* All ranks refuse the state passed to one, for one of two reasons, and nothing
 * changes. */
static void refused(struct merger *m, const void *const *given, size_t n,
                    const char *mine, const char *others)
{
    size_t bytes[WORLD];
    const unsigned char *now = m->states + (size_t)m->self->rank * m->bytes;
    unsigned char *after = malloc(m->bytes);

    for (size_t i = 0; i < n; i++)
        bytes[i] = m->bytes;
    const trib_status_t st = trib_plan_state_load_from(m->plan, given, bytes, n);
    const char *text = trib_last_error(m->comm);
    if (st != TRIB_ERR_INVALID || !(strstr(text, mine) || strstr(text, others)))
        ranks_die(m->self, "%s and not \"%s\": %s", trib_status_name(st), mine, text);
    ranks_assert(m->self, after);
    ranks_ok(m->self, trib_plan_state_save(m->plan, after, m->bytes, &bytes[0]));
    ranks_assert(m->self, memcmp(after, now, m->bytes) == 0);
    free(after);
}

/* Return a copy of a state with one byte changed; with `seal`, its checksum is
 * valid. */
static const void *changed(const struct merger *m, int rank, size_t at, bool seal)
{
    static unsigned char *copy;

    free(copy);
    copy = malloc(m->bytes);
    ranks_assert(m->self, copy);
    memcpy(copy, m->states + (size_t)rank * m->bytes, m->bytes);
    copy[at] ^= 1;
    if (seal)
        trib_sections_seal(copy, m->bytes);
    return copy;
}

static size_t place_of(const struct merger *m, const char *name)
{
    const struct trib_section s = trib_sections_find(m->states, m->bytes, name);

    ranks_assert(m->self, s.data);
    return (size_t)(s.data - m->states);
}

static int refusals(struct ranks_self *self)
{
    const int r = self->rank;
    const char *other = "its own error message gives the reason";
    struct merger m;

    open_merger(&m, self);
    open_half(&m, WORLD);
    step(&m, 0, true);
    save_half(&m);
    const void *own = m.states + (size_t)r * m.bytes, *first = m.states;
    const size_t step_at = place_of(&m, "step"), plan_at = place_of(&m, "plan");
    refused(&m, &own, 0, "no rank has passed a state", "");
    refused(&m, &own, r != 3, "no rank was passed the state of rank 3 of 5", "-");
    refused(&m, r == 2 ? &first : &own, 1, "rank 0 was passed to rank 0 and to rank 2",
            "-");
    refused(&m, (const void *[]){own, own}, 2, "was passed twice", other);
    refused(&m, (const void *[]){r == 1 ? changed(&m, 1, m.bytes / 2, false) : own}, 1,
            "damaged", other);
    refused(&m, (const void *[]){r == 1 ? changed(&m, 1, step_at, true) : own}, 1,
            "rank 1 of 5 ranks at step 0", "-");
    refused(&m, (const void *[]){changed(&m, r, place_of(&m, "codec"), true)}, 1,
            "codec", other);
    refused(&m, (const void *[]){changed(&m, r, place_of(&m, "residual") - 24, true)},
            1, "instead of \"residual\"", other);
    refused(&m, (const void *[]){r ? own : NULL}, 1, "NULL", other);
    refused(&m, NULL, 1, "states is NULL", other);
    refused(&m, (const void *[]){changed(&m, r, plan_at, true)}, 1, "elements", other);
    refused(&m, (const void *[]){changed(&m, r, plan_at + 8, true)}, 1, "of 4", other);
    refused(&m, (const void *[]){changed(&m, r, plan_at + 20, true)}, 1, "dtype",
            other);
    ranks_assert(self,
                 trib_plan_state_load_from(NULL, NULL, NULL, 0) == TRIB_ERR_INVALID);
    step(&m, 1, true);
    close_half(&m);
    close_merger(&m);
    return 0;
}

TEST_ON(test_refusals, "shm")
{
    run(*state, refusals,
        &(struct scene){"topk:ratio=0.1", NULL, TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, 0,
                        false, false});
}

/* The model of one rank's own state is refused only when the model reads it. */
static int models(struct ranks_self *self)
{
    const float nan = NAN;
    struct merger m;

    open_merger(&m, self);
    open_half(&m, WORLD);
    step(&m, 0, true);
    save_half(&m);
    const size_t at = place_of(&m, "model");
    unsigned char *own = malloc(m.bytes);
    ranks_assert(self, own);
    memcpy(own, m.states + (size_t)self->rank * m.bytes, m.bytes);
    memcpy(own + at, &nan, self->rank == 3 ? sizeof(nan) : 0);
    trib_sections_seal(own, m.bytes);
    step(&m, 1, true);
    save_half(&m);
    refused(&m, (const void *[]){own}, 1, "not finite",
            "rank 3 failed; its own error message gives the reason");
    step(&m, 2, true);
    free(own);
    close_half(&m);
    close_merger(&m);
    return 0;
}

TEST_ON(test_models, "shm")
{
    run(*state, models,
        &(struct scene){"powersgd:rank=2", NULL, TRIB_F32, TRIB_SUM, TRIB_ALLREDUCE, 0,
                        false, false});
}
