/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads on one communicator: plans, requests and blocking calls at once,
 * started in an order on which the ranks agree; error messages per thread; a waiting
 * thread does not block another one.
 */
#include "build-config.h"
#include "comm/core/gate.h"
#include "comm/core/plan_struct.h"
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { TEAM_MOST = 8, ROUNDS = 5, COUNT = 3001 };

/* Operations start round by round, and thread by thread within a round. */
struct team {
    struct ranks_self *self;
    trib_comm_t *comm;
    int threads;
    _Atomic uint64_t turn;
};

struct member {
    struct team *team;
    int number;
    pthread_t thread;
    float x[COUNT];
};

static void await_turn(struct member *m, int round)
{
    const uint64_t mine =
        (uint64_t)round * (uint64_t)m->team->threads + (uint64_t)m->number;

    unsigned turns = 0;

    while (m->team->turn != mine)
        tribtest_rest(&turns);
}

static void end_turn(struct member *m)
{
    m->team->turn++;
}

static size_t length(const struct member *m)
{
    return (size_t)(COUNT - 100 * m->number);
}

static void fill(struct member *m, int round)
{
    for (size_t i = 0; i < length(m); i++)
        m->x[i] =
            (float)((trib_rank(m->team->comm) + 1) * ((int)i % 50) + round + m->number);
}

static void check(struct member *m, int round)
{
    const int n = trib_size(m->team->comm);

    for (size_t i = 0; i < length(m); i++)
        ranks_assert(m->team->self, (int)m->x[i] == n * (n + 1) / 2 * ((int)i % 50) +
                                                        n * (round + m->number));
}

static trib_plan_t *make(struct member *m)
{
    return ranks_plan_on(m->team->self, m->team->comm, TRIB_ALLREDUCE, .recv = m->x,
                         .count = length(m));
}

/* Create the plan, at first and then now and then. */
static void renew(struct member *m, int round, trib_plan_t **plan)
{
    if (*plan && (round + m->number) % 3 != 1)
        return;
    ranks_ok(m->team->self, trib_plan_free(*plan));
    *plan = make(m);
}

/* Each thread has a plan, which it recreates now and then and frees in its own way.
 * Plans that tribd sums are created and freed in an order on which the ranks agree. */
static void *with_plans(void *arg)
{
    struct member *m = arg;
    struct ranks_self *self = m->team->self;
    const bool in_turn = m->team->comm->hooks != NULL;
    trib_plan_t *plan = NULL;

    for (int round = 0; round < ROUNDS; round++) {
        trib_status_t st = TRIB_INPROGRESS;
        fill(m, round);
        if (!in_turn)
            renew(m, round, &plan);
        await_turn(m, round);
        if (in_turn)
            renew(m, round, &plan);
        ranks_ok(self, trib_plan_start(plan));
        end_turn(m);
        unsigned turns = 0;
        while (m->number % 2 && (st = trib_plan_test(plan)) == TRIB_INPROGRESS)
            tribtest_rest(&turns);
        ranks_ok(self, m->number % 2 ? st : trib_plan_wait(plan));
        check(m, round);
    }
    await_turn(m, ROUNDS);
    ranks_ok(self, trib_plan_free(plan));
    end_turn(m);
    return NULL;
}

/* A blocking call ends before the turn of the next thread, a request after it. */
static void one_call(struct member *m, int kind)
{
    struct ranks_self *self = m->team->self;
    trib_comm_t *comm = m->team->comm;
    trib_request_t *request;
    char name[16];

    snprintf(name, sizeof(name), "of %d", m->number);
    switch (kind) {
    case 0:
        ranks_ok(self, trib_allreduce(comm, NULL, m->x, length(m), TRIB_F32, TRIB_SUM));
        end_turn(m);
        return;
    case 1:
        ranks_ok(self, trib_allreduce_named(comm, name, NULL, m->x, length(m), TRIB_F32,
                                            TRIB_SUM));
        end_turn(m);
        return;
    default:
        ranks_ok(self, trib_iallreduce(comm, NULL, m->x, length(m), TRIB_F32, TRIB_SUM,
                                       &request));
        end_turn(m);
        ranks_ok(self, trib_request_wait(request));
        ranks_ok(self, trib_request_free(request));
    }
}

static void gather(struct member *m)
{
    struct ranks_self *self = m->team->self;
    const int size = trib_size(m->team->comm), rank = trib_rank(m->team->comm);
    size_t counts[RANKS_MAX];
    int32_t mine[RANKS_MAX + TEAM_MOST], all[RANKS_MAX * (RANKS_MAX + TEAM_MOST)];

    for (int r = 0; r < size; r++)
        counts[r] = (size_t)(r + m->number);
    for (size_t i = 0; i < counts[rank]; i++)
        mine[i] = 100 * rank + (int)i;
    ranks_ok(self, trib_allgatherv(m->team->comm, mine, all, counts, NULL, TRIB_I32));
    for (int r = 0, at = 0; r < size; r++)
        for (size_t i = 0; i < counts[r]; i++)
            ranks_assert(self, all[at++] == 100 * r + (int)i);
}

static void *with_calls(void *arg)
{
    struct member *m = arg;
    struct ranks_self *self = m->team->self;
    void *memory;

    for (int round = 0; round < ROUNDS; round++) {
        fill(m, round);
        await_turn(m, round);
        if ((round + m->number) % 4 == 3) {
            gather(m);
            end_turn(m);
            continue;
        }
        one_call(m, (round + m->number) % 4);
        check(m, round);
        ranks_ok(self, trib_alloc(m->team->comm, 5000, &memory));
        trib_status_t st;
        unsigned turns = 0;
        while ((st = trib_free(m->team->comm, memory)) == TRIB_ERR_BUSY)
            tribtest_rest(&turns); /* another thread's operation may use memory */
        ranks_ok(self, st);
    }
    return NULL;
}

/* Messages of each thread have a separate tag, and need no order. */
static void *with_messages(void *arg)
{
    struct member *m = arg;
    struct ranks_self *self = m->team->self;
    trib_comm_t *comm = m->team->comm;
    const int size = trib_size(comm), rank = trib_rank(comm);
    const int from = (rank + size - 1) % size;
    trib_request_t *request;
    int32_t got[700], sent[700];

    for (int round = 0; round < 4 * ROUNDS; round++) {
        const size_t count = (size_t)(1 + (round * 97 + m->number) % 700);
        for (size_t i = 0; i < count; i++)
            sent[i] = (int32_t)i + 1000 * rank + round;
        ranks_ok(self, trib_isend(comm, sent, count, TRIB_I32, (rank + 1) % size,
                                  m->number, &request));
        ranks_ok(self, trib_recv(comm, got, count, TRIB_I32, from, m->number));
        for (size_t i = 0; i < count; i++)
            ranks_assert(self, got[i] == (int32_t)i + 1000 * from + round);
        ranks_ok(self, trib_request_wait(request));
        ranks_ok(self, trib_request_free(request));
    }
    return NULL;
}

/* Each thread reads the error message of its own failed call. */
static void *with_errors(void *arg)
{
    struct member *m = arg;
    char number[40];

    for (int round = 0; round < 20 * ROUNDS; round++) {
        const size_t count = (size_t)(1000 * round + m->number + 1);
        snprintf(number, sizeof(number), "allreduce of %zu elements", count);
        ranks_expect(
            m->team->self,
            trib_allreduce(m->team->comm, NULL, NULL, count, TRIB_F32, TRIB_SUM),
            TRIB_ERR_INVALID, "a call without a buffer");
        if (!ranks_has(trib_last_error(m->team->comm), WORDS(number, "recv is NULL")))
            ranks_die(m->team->self, "%s", trib_last_error(m->team->comm));
    }
    return NULL;
}

static void run_team(struct ranks_self *self, trib_comm_t *comm, int threads,
                     void *(*fn)(void *arg))
{
    struct team team = {.self = self, .comm = comm, .threads = threads};
    struct member *members = calloc((size_t)threads, sizeof(*members));

    ranks_assert(self, members);
    for (int i = 0; i < threads; i++) {
        members[i].team = &team;
        members[i].number = i;
        ranks_assert(self,
                     pthread_create(&members[i].thread, NULL, fn, &members[i]) == 0);
    }
    for (int i = 0; i < threads; i++)
        ranks_assert(self, pthread_join(members[i].thread, NULL) == 0);
    free(members);
}

static trib_comm_t *join(struct ranks_self *self)
{
    trib_opts_t opts = self->opts;
    trib_comm_t *comm;

    opts.threads = TRIB_THREADS_MANY;
    if (trib_init(&opts, &comm) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(NULL));
    return comm;
}

static int teams(struct ranks_self *self)
{
    trib_comm_t *comm = join(self), *part;

    for (int threads = 4; threads <= TEAM_MOST; threads += 4) {
        run_team(self, comm, threads, with_plans);
        run_team(self, comm, threads, with_calls);
        run_team(self, comm, threads, with_messages);
        run_team(self, comm, threads, with_errors);
    }
    ranks_ok(self, trib_split(comm, 0, -self->rank, &part));
    run_team(self, part, 4, with_plans);
    run_team(self, part, 4, with_errors);
    ranks_ok(self, trib_free_comm(part));
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

TEST_ON(test_teams, "shm", "tcp", IF_UCX("ucx"))
{
    char config[100];

    ranks_pass(.size = 2, .fn = teams, .config = *state, .bare = true);
    ranks_pass(.size = 3, .fn = teams, .config = *state, .bare = true, .threads = true);
    snprintf(config, sizeof(config), "%s;progress=caller", (const char *)*state);
    ranks_pass(.size = 2, .fn = teams, .config = config, .bare = true);
}

static int idle(void *arg)
{
    (*(_Atomic int *)arg)++;
    return 0;
}

/* The same with an idle function, which waiting threads call concurrently. */
static int with_idle(struct ranks_self *self)
{
    _Atomic int calls = 0;

    self->opts.idle = idle;
    self->opts.idle_arg = &calls;
    return teams(self);
}

TEST_ON(test_with_idle, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = with_idle, .config = *state, .bare = true);
}

static void *wait_for(void *arg)
{
    return trib_plan_wait(arg) == TRIB_OK ? NULL : arg;
}

/* Rank 1 is late for one plan; meanwhile rank 0 creates, starts and frees others. */
static int waits(struct ranks_self *self)
{
    struct team team = {.self = self, .comm = join(self), .threads = 1};
    static struct member early, late;
    pthread_t thread;
    void *failed;

    early.team = late.team = &team;
    fill(&early, 0);
    fill(&late, 0);
    trib_plan_t *plan = make(&early), *other, *never;
    ranks_ok(self, trib_barrier(team.comm));
    if (self->rank == 1)
        sleep(2);
    ranks_ok(self, trib_plan_start(plan));
    ranks_assert(self, pthread_create(&thread, NULL, wait_for, plan) == 0);
    usleep(100000); /* the thread sleeps in its wait by now */
    const double begin = ranks_seconds();
    other = make(&late);
    never = make(&late);
    ranks_ok(self, trib_plan_start(other));
    ranks_ok(self, trib_plan_free(never));
    ranks_assert(self, self->rank == 1 || ranks_seconds() - begin < 1);
    ranks_ok(self, trib_plan_wait(other));
    ranks_assert(self, pthread_join(thread, &failed) == 0 && !failed);
    check(&early, 0);
    check(&late, 0);
    ranks_ok(self, trib_plan_free(plan));
    ranks_ok(self, trib_plan_free(other));
    ranks_ok(self, trib_free_comm(team.comm));
    return 0;
}

TEST_ON(test_waits, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = waits, .config = *state, .bare = true);
}

/* A forked child frees its copy, although a thread of its parent was in a call. */
static int forks(struct ranks_self *self)
{
    trib_comm_t *comm = join(self);
    int status;

    trib_gate_enter(comm);
    const pid_t child = fork();
    if (child == 0) {
        float x = 1;
        alarm(60);
        _exit(trib_allreduce(comm, NULL, &x, 1, TRIB_F32, TRIB_SUM) !=
                  TRIB_ERR_INVALID ||
              trib_free_comm(comm) != TRIB_OK);
    }
    trib_gate_leave(comm);
    ranks_assert(self, waitpid(child, &status, 0) == child && status == 0);
    ranks_ok(self, trib_barrier(comm));
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

TEST_ON(test_forks, "shm")
{
    ranks_pass(.size = 2, .fn = forks, .config = *state, .bare = true);
}

TEST(test_refused)
{
    trib_comm_t *comm;
    trib_opts_t opts = sized(trib_opts_t, .threads = (trib_threads_t)7);

    assert_status(trib_init(&opts, &comm), TRIB_ERR_INVALID);
    assert_non_null(strstr(trib_last_error(NULL), "threads is 7"));
}

/* The same for plans and calls that tribd sums. */
TEST_ON(test_with_tribd, "shm", "tcp")
{
    struct daemon_process d = {.threads = 1};
    char config[100];

    daemon_need(&d);
    snprintf(config, sizeof(config), "%s;service=127.0.0.1:%d", (const char *)*state,
             d.port);
    /* On a busy machine tribd may be late, which logs a warning. */
    ranks_pass(.size = 2, .fn = teams, .config = config, .bare = true, .noisy = true);
    ranks_pass(.size = 3, .fn = with_idle, .config = config, .bare = true,
               .noisy = true);
    ranks_pass(.size = 2, .fn = waits, .config = config, .bare = true, .noisy = true);
    ranks_pass(.size = 2, .fn = forks, .config = config, .bare = true, .noisy = true);
    daemon_end(&d);
}
