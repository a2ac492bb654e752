/* SPDX-License-Identifier: BSD-3-Clause */
/* Coded products and gradients of real ranks, some of which are late, die or stop. */
#include <math.h>

#include "tests/comm/growing.h"
#include "train/coded/coded_state.h"

enum { PARTS = 4, ROWS = 5, COLUMNS = 7, RANKS = 6, STEPS = 6 };

/* The element of the whole matrix at a row and a column. */
static float element(size_t row, size_t column)
{
    return (float)((row * 31 + column * 17) % 23) / 7 - 1.5f;
}

static float argument(int step, size_t column)
{
    return (float)((column * 13 + (size_t)step * 5) % 11) / 3 - 1.2f;
}

static void fill(float *partition, int number)
{
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            partition[i * COLUMNS + k] = element((size_t)number * ROWS + i, k);
}

/* The largest error of a product, as a share of its largest element. */
static double error_of(const float *z, int step)
{
    double worst = 0, largest = 0;

    for (size_t i = 0; i < PARTS * ROWS; i++) {
        double sum = 0;
        for (size_t k = 0; k < COLUMNS; k++)
            sum += (double)element(i, k) * (double)argument(step, k);
        worst = fmax(worst, fabs(sum - (double)z[i]));
        largest = fmax(largest, fabs(sum));
    }
    return worst / largest;
}

static trib_status_t create(trib_comm_t *comm, const char *code, float *partition,
                            trib_coded_t **coded_out)
{
    trib_coded_desc_t desc = TRIB_CODED_DESC_INIT;

    fill(partition, trib_rank(comm));
    desc.code = code;
    desc.partition = trib_rank(comm) < PARTS ? partition : NULL;
    desc.rows = ROWS;
    desc.columns = COLUMNS;
    desc.partitions = PARTS;
    return trib_coded_create(comm, &desc, coded_out);
}

static trib_status_t multiply(struct ranks_self *self, trib_comm_t *comm,
                              trib_coded_t *coded, int step)
{
    float x[COLUMNS], z[PARTS * ROWS];
    const bool leads = trib_rank(comm) == 0;

    for (size_t k = 0; k < COLUMNS; k++)
        x[k] = argument(step, k);
    const trib_status_t st =
        trib_coded_multiply(coded, leads ? x : NULL, leads ? z : NULL);
    if (st == TRIB_OK && leads && !(error_of(z, step) < 1e-6))
        ranks_die(self, "step %d: error %g", step, error_of(z, step));
    return st;
}

static void expect(struct ranks_self *self, const trib_coded_t *coded, trib_status_t st,
                   trib_status_t expected, const char *what)
{
    if (st != expected)
        ranks_die(self, "%s: %s, not %s: %s", what, trib_status_name(st),
                  trib_status_name(expected), trib_coded_error(coded));
}

/* Codes ---------------------------------------------------------------------------- */

static const char *const codes[] = {"none",
                                    "rlnc",
                                    "rlnc:density=0.5",
                                    "mds",
                                    "gradient:spare=1",
                                    "gradient:spare=2,form=cyclic"};
enum { CODES = sizeof(codes) / sizeof(codes[0]) };

/* The sum over samples of a function that is not linear. */
static void cubes(void *arg, int number, const float *partition, const float *in,
                  float *out)
{
    (void)arg;
    (void)number;
    for (size_t i = 0; i < ROWS; i++) {
        float score = 0;
        for (size_t k = 0; k < COLUMNS; k++)
            score += partition[i * COLUMNS + k] * in[k];
        for (size_t k = 0; k < COLUMNS; k++)
            out[k] += score * score * partition[i * COLUMNS + k];
    }
}

static void check_gradient(struct ranks_self *self, trib_coded_t *coded, int step)
{
    float x[COLUMNS], out[COLUMNS], want[COLUMNS] = {0}, partition[ROWS * COLUMNS];
    const bool leads = self->rank == 0;

    for (size_t k = 0; k < COLUMNS; k++)
        x[k] = argument(step, k);
    const trib_status_t st =
        trib_coded_gradient(coded, cubes, NULL, leads ? x : NULL, leads ? COLUMNS : 0,
                            leads ? out : NULL, COLUMNS);
    expect(self, coded, st, TRIB_OK, "gradient");
    for (int p = 0; p < PARTS; p++) {
        fill(partition, p);
        cubes(NULL, p, partition, x, want);
    }
    for (size_t k = 0; k < COLUMNS && leads; k++)
        ranks_assert(self, fabsf(out[k] - want[k]) < 1e-5f * (1 + fabsf(want[k])));
}

/* Returns the bytes that all ranks have fetched to encode. */
static uint64_t try_code(struct ranks_self *self, const char *code)
{
    float partition[ROWS * COLUMNS];
    trib_coded_stats_t stats = TRIB_CODED_STATS_INIT;
    trib_coded_t *coded;
    char text[400];

    expect(self, NULL, create(self->comm, code, partition, &coded), TRIB_OK, code);
    for (int step = 0; step < STEPS; step++) {
        const trib_status_t st = multiply(self, self->comm, coded, step);
        expect(self, coded, st, TRIB_OK, code);
        if (coded->layout.mix)
            check_gradient(self, coded, step);
    }
    ranks_ok(self, trib_coded_settle(coded));
    ranks_ok(self, trib_coded_stats(coded, &stats));
    ranks_ok(self, trib_coded_explain(coded, text, sizeof(text)));
    ranks_assert(self, strstr(text, "4 partitions in 6 ranks"));
    if (self->rank == 0)
        ranks_assert(self, stats.products == STEPS * (coded->layout.mix ? 2 : 1) &&
                               stats.lost == 0);
    ranks_ok(self, trib_allreduce(self->comm, NULL, &stats.fetched_bytes, 1, TRIB_U64,
                                  TRIB_SUM));
    ranks_ok(self, trib_coded_free(coded));
    return stats.fetched_bytes;
}

RANKS_TEST_ON(every_code_multiplies, ("shm", "tcp"), .size = RANKS)
{
    uint64_t fetched[CODES];

    for (int i = 0; i < CODES; i++)
        fetched[i] = try_code(self, codes[i]);
    ranks_assert(self, fetched[0] == 0);
    ranks_assert(self, fetched[3] == 2 * PARTS * ROWS * COLUMNS * sizeof(float));
    ranks_assert(self, 2 * fetched[1] == fetched[3]);
    return 0;
}

/* A rank that is late in each call costs nothing, and passes over calls. */
RANKS_TEST_ON(late_ranks_are_not_waited_for, ("shm"), .size = RANKS)
{
    float partition[ROWS * COLUMNS];
    trib_coded_stats_t stats = TRIB_CODED_STATS_INIT;
    trib_coded_t *coded;

    expect(self, NULL, create(self->comm, "mds", partition, &coded), TRIB_OK, "create");
    for (int step = 0; step < 40; step++) {
        if (self->rank == 2 && step % 10 == 0)
            usleep(30000);
        if (self->rank == 0)
            usleep(1000);
        expect(self, coded, multiply(self, self->comm, coded, step), TRIB_OK, "late");
    }
    ranks_ok(self, trib_coded_settle(coded));
    ranks_ok(self, trib_barrier(self->comm)); /* all have caught up */
    ranks_ok(self, trib_coded_stats(coded, &stats));
    if (self->rank == 0)
        ranks_assert(self, stats.products == 40 && stats.decoded > 0 && stats.late > 0);
    if (self->rank == 2)
        ranks_assert(self, stats.late > 0 && stats.answered + stats.late == 40);
    ranks_ok(self, trib_coded_free(coded));
    return 0;
}

/* Losses --------------------------------------------------------------------------- */

enum phase { BEFORE_CREATE, IN_CREATE, IN_A_CALL, AFTER_THE_CALLS };

/* A rank is killed or stopped; `moved` is what trib_coded_move of the others gives. */
struct play {
    const char *code;
    int victim, signal;
    enum phase phase;
    trib_status_t product, moved;
};

static void *strike_later(void *arg)
{
    usleep(3000);
    kill(getpid(), *(const int *)arg);
    return NULL;
}

/* A recovered part has exactly the lost bytes. */
static void check_parts(struct ranks_self *self, const trib_coded_t *coded)
{
    float want[ROWS * COLUMNS];
    const int first = trib_code_layout_first(&coded->layout, coded->rank);

    for (int b = 0; b < coded->held.n_blocks; b++) {
        if (!coded->held.blocks[b].part)
            continue;
        fill(want, coded->layout.id[first + b]);
        ranks_assert(self, memcmp(want, coded->held.blocks[b].part, sizeof(want)) == 0);
    }
}

static trib_comm_t *shrink(struct ranks_self *self)
{
    trib_comm_t *smaller;

    if (trib_comm_shrink(self->comm, &smaller) != TRIB_OK)
        ranks_die(self, "shrink: %s", trib_last_error(NULL));
    return smaller;
}

/* After a loss during encoding the surviving ranks start again. */
static int begin_anew(struct ranks_self *self, trib_coded_t *coded, float *partition)
{
    trib_comm_t *smaller;

    ranks_ok(self, trib_coded_free(coded));
    smaller = shrink(self);
    expect(self, NULL, create(smaller, "rlnc", partition, &coded), TRIB_OK, "anew");
    expect(self, coded, multiply(self, smaller, coded, 1), TRIB_OK, "product");
    ranks_ok(self, trib_coded_free(coded));
    ranks_ok(self, trib_free_comm(smaller));
    return trib_free_comm(self->comm) != TRIB_OK;
}

static int go_on(struct ranks_self *self, const struct play *p, trib_coded_t *coded)
{
    trib_comm_t *smaller = shrink(self);

    trib_status_t st = trib_coded_move(smaller, &coded);
    expect(self, coded, st, p->moved, "move");
    for (int step = 0; step < 3 && st == TRIB_OK; step++)
        expect(self, coded, multiply(self, smaller, coded, step), TRIB_OK, "moved");
    if (st == TRIB_OK)
        check_parts(self, coded);
    else
        ranks_assert(self, strstr(trib_coded_error(coded), "lost"));
    ranks_ok(self, trib_coded_free(coded));
    ranks_ok(self, trib_free_comm(smaller));
    return trib_free_comm(self->comm) != TRIB_OK;
}

/* The victim waits until all ranks have reached the phase, then dies. */
static void await_others(struct ranks_self *self, const struct play *p, int phase)
{
    for (int i = 0; i < RANKS && self->rank == p->victim; i++)
        while (atomic_load(&self->slot[i - self->rank].phase) < phase)
            usleep(500);
}

static int lose(struct ranks_self *self)
{
    const struct play *p = self->arg;
    float partition[ROWS * COLUMNS];
    trib_coded_t *coded = NULL;
    pthread_t later;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    atomic_store(&self->slot->phase, 1);
    await_others(self, p, 1);
    if (self->rank == p->victim && p->phase == BEFORE_CREATE)
        raise(p->signal);
    if (self->rank == p->victim && p->phase == IN_CREATE &&
        pthread_create(&later, NULL, strike_later, (void *)&p->signal) != 0)
        ranks_die(self, "no thread");
    trib_status_t st = create(self->comm, p->code, partition, &coded);
    if (p->phase <= IN_CREATE) {
        while (self->rank == p->victim)
            usleep(1000);
        return begin_anew(self, coded, partition);
    }
    expect(self, NULL, st, TRIB_OK, "create");
    atomic_store(&self->slot->phase, 2);
    await_others(self, p, 2);
    for (int step = 0; step < STEPS && st == TRIB_OK; step++) {
        if (self->rank == p->victim && p->phase == IN_A_CALL && step == 2)
            raise(p->signal);
        st = multiply(self, self->comm, coded, step);
    }
    if (self->rank == p->victim)
        raise(p->signal);
    expect(self, coded, st, p->product, "products");
    if (st != TRIB_OK && p->victim != 0)
        ranks_assert(self, strstr(trib_coded_error(coded), "1 more answer is needed"));
    ranks_ok(self, trib_coded_settle(coded));
    return go_on(self, p, coded);
}

static void perform(const struct play *p, const char *config)
{
    char all[120];
    struct ranks r;

    /* Over tcp a thread of a busy machine must answer in time. */
    snprintf(all, sizeof(all), "%s,stop_timeout_ms=%d", config,
             (strstr(config, "tcp") ? 1000 : 200) * (int)tribtest_slowness());
    const struct ranks_job job = {.size = RANKS,
                                  .fn = lose,
                                  .arg = (void *)p,
                                  .config = all,
                                  .bare = true,
                                  .noisy = true};
    assert_true(ranks_start(&r, &job));
    ranks_outlive(&r, 1u << p->victim);
    ranks_survived(&r, 1u << p->victim, "%s, victim %d, signal %d, phase %d", p->code,
                   p->victim, p->signal, (int)p->phase);
}

TEST_ON(losses_are_borne, "shm", "tcp")
{
    static const int signals[] = {SIGKILL, SIGSTOP};
    static const struct play plays[] = {
        {"rlnc", 5, 0, BEFORE_CREATE, TRIB_OK, TRIB_OK},
        {"mds", 5, 0, IN_CREATE, TRIB_OK, TRIB_OK},
        {"rlnc", 1, 0, IN_A_CALL, TRIB_OK, TRIB_OK},
        {"rlnc", 5, 0, IN_A_CALL, TRIB_OK, TRIB_OK},
        {"mds", 3, 0, AFTER_THE_CALLS, TRIB_OK, TRIB_OK},
        {"gradient:spare=1", 2, 0, IN_A_CALL, TRIB_OK, TRIB_OK},
        {"rlnc", 0, 0, IN_A_CALL, TRIB_ERR_PEER_LOST, TRIB_OK},
        {"none", 2, 0, IN_A_CALL, TRIB_ERR_PEER_LOST, TRIB_ERR_UNSUPPORTED},
    };

    const bool both = strstr(*state, "shm") != NULL;

    for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
        for (size_t s = 0; s < 2; s++) {
            struct play p = plays[i];
            p.signal = signals[s];
            if (both || s == i % 2)
                perform(&p, *state);
        }
}

/* Newcomers ------------------------------------------------------------------------ */

struct growth {
    char root[TRIB_ROOT_TEXT_MAX];
    struct growing_board *board;
};

/* One sum for four partitions at first; the newcomer makes another one. */
static int grow(struct ranks_self *self)
{
    const struct growth *g = self->arg;
    const bool member = self->rank < RANKS - 1;
    float partition[ROWS * COLUMNS];
    trib_coded_stats_t stats = TRIB_CODED_STATS_INIT;
    trib_listener_t *listener = NULL;
    trib_comm_t *bigger = NULL;
    trib_coded_t *coded = NULL;
    uint64_t before = 0;

    if (member) {
        growing_init(self, g->root, RANKS - 1);
        if (self->rank == 0)
            listener = growing_listen(self, self->comm, g->board);
        expect(self, NULL, create(self->comm, "rlnc", partition, &coded), TRIB_OK,
               "new");
        ranks_ok(self, trib_coded_stats(coded, &stats));
        before = stats.fetched_bytes;
        for (int step = 0; !bigger; step++) {
            expect(self, coded, multiply(self, self->comm, coded, step), TRIB_OK,
                   "few");
            ranks_ok(self, trib_coded_settle(coded));
            ranks_ok(self, trib_comm_grow(self->comm, listener, 1, &bigger));
        }
        ranks_ok(self, trib_free_comm(self->comm));
    } else {
        ranks_ok(self, growing_join(self, g->board));
        bigger = self->comm;
    }
    expect(self, coded, trib_coded_move(bigger, &coded), TRIB_OK, "move");
    for (int step = 0; step < STEPS; step++)
        expect(self, coded, multiply(self, bigger, coded, step), TRIB_OK, "more");
    ranks_ok(self, trib_coded_stats(coded, &stats));
    ranks_assert(self, stats.fetched_bytes - before ==
                           (member ? 0 : PARTS / 2 * ROWS * COLUMNS * sizeof(float)));
    ranks_ok(self, trib_coded_free(coded));
    trib_listener_close(listener);
    return trib_free_comm(bigger) != TRIB_OK;
}

TEST_ON(newcomers_encode_for_themselves, "shm")
{
    struct growth g = {.board = growing_board()};
    trib_local_t *place;

    assert_non_null(g.board);
    assert_status(trib_local_create(RANKS - 1, &place), TRIB_OK);
    snprintf(g.root, sizeof(g.root), "%s", trib_local_root(place));
    ranks_pass(.size = RANKS, .fn = grow, .arg = &g, .config = *state, .bare = true);
    trib_local_destroy(place);
    munmap(g.board, sizeof(*g.board));
}

/* Errors --------------------------------------------------------------------------- */

RANKS_TEST_ON(errors_are_clear, ("shm"), .size = PARTS)
{
    float partition[ROWS * COLUMNS], x[COLUMNS] = {0};
    trib_coded_desc_t desc = TRIB_CODED_DESC_INIT;
    trib_coded_t *coded;

    expect(self, NULL,
           create(self->comm, self->rank ? "mds" : "rlnc", partition, &coded),
           TRIB_ERR_MISMATCH, "other codes");
    ranks_assert(self, strstr(trib_coded_error(NULL), "\"mds\""));
    desc.partition = partition;
    desc.rows = ROWS;
    desc.columns = self->rank == 1 ? 0 : COLUMNS;
    desc.partitions = 2;
    expect(self, NULL, trib_coded_create(self->comm, &desc, &coded), TRIB_ERR_INVALID,
           "no columns");
    desc.columns = COLUMNS;
    desc.partitions = 5;
    expect(self, NULL, trib_coded_create(self->comm, &desc, &coded),
           TRIB_ERR_UNSUPPORTED, "too few ranks");
    desc.partitions = 2;
    fill(partition, self->rank);
    expect(self, NULL, trib_coded_create(self->comm, &desc, &coded), TRIB_OK, "create");
    expect(self, coded, trib_coded_gradient(coded, cubes, NULL, x, COLUMNS, x, COLUMNS),
           TRIB_ERR_UNSUPPORTED, "gradient of sums");
    const trib_status_t st = trib_coded_multiply(coded, NULL, x);
    expect(self, coded, st, self->rank ? TRIB_OK : TRIB_ERR_INVALID, "x");
    ranks_ok(self, trib_coded_settle(coded));
    ranks_ok(self, trib_barrier(self->comm)); /* no rank waits for an order */
    ranks_ok(self, trib_coded_free(coded));
    return 0;
}
