/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep of jobs that grow, with a service and without: three members sum in a loop
 * and accept two newcomers along the way. One to three of the five ranks are killed or
 * stopped at any time, mostly within trib_comm_grow or trib_join, including rank 0 and
 * the listening rank. The others shrink and continue, and a new rank 0 listens. Each
 * sum contains the mark of each rank in it once. All survivors end with the same ranks,
 * and nothing hangs.
 *
 *     test_grow_faults            a sample
 *     test_grow_faults --long     hundreds of times as many
 */
#include "build-config.h"
#include "tests/comm/growing.h"
#include "tests/fault/hits.h"

#define MEMBERS 3
#define SIZE HITS_RANKS
#define MARK_BITS 8 /* of a sum, for each process: number of its contributions */
#define SECONDS 60

struct job {
    const char *transport;
    size_t count;
    struct hits hits;
    char root[TRIB_ROOT_TEXT_MAX];
    struct growing_board *board;
};

/* The ranks ------------------------------------------------------------------ */

struct rank {
    struct ranks_self *self;
    trib_listener_t *listener;
    bool grows;
    int looks;
    bool complete; /* all survivors were in the last sum */
};

/* Count a poll. Called as trib_idle_fn while a rank waits. */
static int look(void *arg)
{
    struct rank *r = arg;
    const struct job *j = r->self->arg;

    if (r->grows)
        hits_look(&j->hits, r->self->rank, &r->looks);
    return 0;
}

static void replace(struct rank *r, trib_comm_t *comm)
{
    (void)trib_free_comm(r->self->comm);
    r->self->comm = comm;
}

static void go_on(struct rank *r)
{
    trib_comm_t *smaller;
    const trib_status_t st = trib_comm_shrink(r->self->comm, &smaller);

    if (st != TRIB_OK)
        ranks_die(r->self, "trib_comm_shrink gave %s: %s", trib_status_name(st),
                  trib_last_error(NULL));
    replace(r, smaller);
}

static void take_in(struct rank *r)
{
    const struct job *j = r->self->arg;
    trib_comm_t *bigger;

    if (trib_rank(r->self->comm) == 0 && !r->listener)
        r->listener = growing_listen(r->self, r->self->comm, j->board);
    r->grows = true;
    const trib_status_t st = trib_comm_grow(r->self->comm, r->listener, 9, &bigger);
    r->grows = false;
    if (st != TRIB_OK)
        go_on(r);
    else if (bigger)
        replace(r, bigger);
}

/* A job with a service continues until the service has summed for this communicator. */
static bool may_stop(const struct rank *r)
{
    trib_stats_t s = {.size = sizeof(s)};

    if (atomic_load(&r->self->slot->phase) != 2 || !r->complete)
        return false;
    ranks_ok(r->self, trib_stats(r->self->comm, &s));
    return !hits_service()[0] || s.served > 0;
}

static void check(struct rank *r, const int64_t *x, size_t count)
{
    const struct job *j = r->self->arg;
    int n = 0;

    r->complete = true;
    for (int k = 0; k < SIZE; k++) {
        const int64_t times = x[0] >> MARK_BITS * k & ((1 << MARK_BITS) - 1);
        ranks_assert(r->self, times == 0 || times == 1);
        n += (int)times;
        r->complete &= times == 1 || hits_is_victim(&j->hits, k);
    }
    ranks_assert(r->self, n == trib_size(r->self->comm));
    ranks_assert(r->self, x[0] >> MARK_BITS * r->self->rank & 1);
    for (size_t i = 1; i < count; i++)
        ranks_assert(r->self, x[i] == x[0]);
}

/* Run one sum. Return true if all ranks want to stop. */
static bool sums(struct rank *r, int64_t *x, size_t count)
{
    const bool stop = may_stop(r);

    for (size_t i = 0; i < count; i++)
        x[i] = (int64_t)1 << MARK_BITS * r->self->rank;
    x[count] = stop;
    if (trib_allreduce(r->self->comm, NULL, x, count + 1, TRIB_I64, TRIB_SUM) !=
        TRIB_OK) {
        go_on(r);
        return false;
    }
    check(r, x, count);
    if (x[count] == trib_size(r->self->comm))
        return true;
    take_in(r);
    return false;
}

static void come(struct rank *r)
{
    struct job *j = r->self->arg;

    r->grows = true;
    while (growing_join(r->self, j->board) != TRIB_OK)
        usleep(2000);
    r->grows = false;
}

static int act(struct ranks_self *self)
{
    const struct job *j = self->arg;
    struct rank r = {.self = self};
    int64_t *x = calloc(j->count + 1, sizeof(*x));

    ranks_assert(self, x);
    self->opts.idle = look;
    self->opts.idle_arg = &r;
    if (self->rank < MEMBERS) {
        growing_init(self, j->root, MEMBERS);
        ranks_ok(self, trib_barrier(self->comm));
        if (atomic_load(&self->slot->phase) == 0)
            atomic_store(&self->slot->phase, 1);
    } else {
        usleep((useconds_t)(j->count % 7 * 1000));
        come(&r);
    }
    while (!sums(&r, x, j->count))
        ;
    atomic_store(&self->slot->count, (uint64_t)x[0]);
    ranks_ok(self, trib_free_comm(self->comm));
    trib_listener_close(r.listener);
    free(x);
    return 0;
}

/* The sweep --------------------------------------------------------------------- */

static void shoot(struct job j)
{
    struct ranks r;
    trib_local_t *local;
    char config[160], text[200];

    j.board = growing_board();
    assert_non_null(j.board);
    assert_int_equal(trib_local_create(MEMBERS, &local), TRIB_OK);
    snprintf(j.root, sizeof(j.root), "%s", trib_local_root(local));
    snprintf(config, sizeof(config),
             "transport=%s;boot_timeout_ms=2000;stop_timeout_ms=%d%s", j.transport,
             HITS_STOP_MS * (int)tribtest_slowness(), hits_service());
    struct ranks_job job = {.size = SIZE,
                            .fn = act,
                            .arg = &j,
                            .config = config,
                            .bare = true,
                            .noisy = true,
                            .seconds = SECONDS};
    snprintf(text, sizeof(text), "%s, %zu elements", j.transport, j.count);
    assert_true(ranks_start(&r, &job));
    hits_drive(&r, &j.hits, MEMBERS);
    hits_judge(&r, &j.hits, text);
    ranks_close(&r);
    trib_local_destroy(local);
    munmap(j.board, sizeof(*j.board));
}

/* Two thirds of the victims are hit within a call that grows the job. */
static struct hit aim(int signal_number)
{
    const unsigned looks = hits_below(2) ? 8 : 200;

    return hits_aim(signal_number, hits_below(3) ? looks : 0);
}

static int shots = 2;

static void sweep(const char *transport, int signal_number, int victims_most)
{
    for (int i = 0; i < shots; i++) {
        struct job j = {.transport = transport, .count = hits_below(2) ? 10 : 100000};
        const int n = 1 + (int)hits_below((unsigned)victims_most);
        for (int k = 0; k < n; k++)
            j.hits.of[hits_below(SIZE)] = aim(signal_number);
        /* Keep one member: without any, newcomers would have no job to join. */
        if (hits_is_victim(&j.hits, 0) && hits_is_victim(&j.hits, 1) &&
            hits_is_victim(&j.hits, 2))
            j.hits.of[hits_below(MEMBERS)] = (struct hit){0};
        shoot(j);
    }
}

TEST_WITH(test_kills, "shm", "tcp", IF_UCX("ucx"), "auto:ranks_per_host=2")
{
    sweep(*state, SIGKILL, 3);
}

static void sweep_pairs(const char *transport)
{
    sweep(transport, SIGKILL, 2);
}

TEST_WITH(test_with_service, "shm", "tcp")
{
    hits_with_service(sweep_pairs, *state);
}

TEST_WITH(test_stops, "shm", "tcp", IF_UCX("ucx"))
{
    sweep(*state, SIGSTOP, 2);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--long") == 0) {
        shots = 1000;
        tribtest_seconds = 0;
    }
    return tribtest_run();
}
