/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replicators: a program has the same parameters, bit for bit, in every synchronous
 * kind; each sample is used once; unsuitable kinds are rejected with an error message.
 */
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"
#include "tests/train/replicas.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void run(struct replicas_job *job)
{
    if (replicas_run(job) != TRIB_OK)
        fail_msg("%s: %s", job->kind, trib_replicator_error());
}

/* Check that `devices` gradients used each sample of the run, and one pipeline made
 * it. */
static void each_sample_once(const char *kind, const struct replicas_job *job,
                             int devices)
{
    for (size_t i = 0; i < COUNT(job->seen); i++)
        if (atomic_load(&job->seen[i]) != devices || atomic_load(&job->made[i]) != 1)
            fail_msg("%s: sample %zu was made %d times and used %d times", kind, i,
                     atomic_load(&job->made[i]), atomic_load(&job->seen[i]));
}

static const struct {
    const char *kind;
    int shares; /* 0: equal but for rounding */
    int devices;
    int inputs; /* calls of the input function in a step */
} synchronous[] = {
    {"one", 0, 1, 1},
    {"one:shares=12", 12, 1, 1},
    {"one:shares=4,input=single", 4, 1, 1},
    {"threads:2", 0, 1, 2},
    {"threads:4", 0, 1, 4},
    {"threads:2,shares=12", 12, 1, 2},
    {"threads:3,shares=12,input=single", 12, 1, 1},
    {"threads:4,shares=12,input=worker", 12, 1, 1},
    {"threads:4,shares=4", 4, 1, 4},
    {"workers:threads=4,devices=2", 0, 2, 2},
    {"threads:2,devices=2,shares=12,input=worker", 12, 2, 1},
    {"threads:6,devices=2,shares=12,input=single", 12, 2, 1},
};

TEST(test_synchronous)
{
    float wanted[REPLICAS_PARAMS];

    for (size_t i = 0; i < COUNT(synchronous); i++) {
        const int shares = synchronous[i].shares;
        struct replicas_job job = {.kind = synchronous[i].kind};

        run(&job);
        replicas_oracle(shares > 0 ? shares : 1, wanted);
        const double off = replicas_distance(job.params, wanted);
        if (shares > 0 ? memcmp(job.params, wanted, sizeof(wanted)) != 0
                       : !(off < 1e-6))
            fail_msg("%s: %g off", job.kind, off);
        each_sample_once(job.kind, &job, synchronous[i].devices);
        assert_int_equal(atomic_load(&job.inputs),
                         synchronous[i].inputs * REPLICAS_STEPS);
    }
}

static int in_processes(struct ranks_self *self)
{
    static const char *const kinds[] = {
        "workers:shares=12", "workers:shares=12,threads=2",
        "workers:shares=12,input=single", "workers:shares=12,threads=2,devices=2"};
    float wanted[REPLICAS_PARAMS];

    replicas_oracle(12, wanted);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct replicas_job job = {.kind = kinds[i], .comm = self->comm};

        if (replicas_run(&job) != TRIB_OK)
            ranks_die(self, "%s: %s", kinds[i], trib_replicator_error());
        if (self->rank == 0 && memcmp(job.params, wanted, sizeof(wanted)) != 0)
            ranks_die(self, "%s: %g off", kinds[i],
                      replicas_distance(job.params, wanted));
    }
    return 0;
}

TEST(test_processes)
{
    ranks_pass(.size = 2, .fn = in_processes, .config = "transport=tcp");
    ranks_pass(.size = 3, .fn = in_processes, .config = "transport=shm");
}

/* ---- state and collectives of a replica ------------------------------------------ */

#define HOLDS(r, condition) \
    do { \
        if (!(condition)) \
            return trib_replica_fail(r, "line %d: %s", __LINE__, #condition); \
    } while (0)

enum { ITEMS = 7 };

static int map_item(trib_replica_t *r, size_t item, void *out)
{
    float *x = out;

    HOLDS(r, item < ITEMS);
    x[0] = 1.0f / (float)(item + 1);
    x[1] = (float)item - 3;
    return 0;
}

static int map_number(trib_replica_t *r, size_t item, void *out)
{
    (void)r;
    *(int64_t *)out = (int64_t)item - 4;
    return 0;
}

static int reduces(trib_replica_t *r)
{
    float x[2], all[ITEMS][2];
    double sum = 0;
    int64_t number;

    HOLDS(r, trib_replica_map_gather(r, map_item, ITEMS, all, 2, TRIB_F32) == TRIB_OK);
    for (int i = 0; i < ITEMS; i++) {
        HOLDS(r, all[i][0] == 1.0f / (float)(i + 1) && all[i][1] == (float)i - 3);
        sum += (double)all[i][0];
    }
    HOLDS(r,
          trib_replica_map_reduce(r, map_item, ITEMS, x, 2, TRIB_F32, TRIB_SUM) == 0);
    HOLDS(r, x[0] == (float)sum && x[1] == 0);
    HOLDS(r,
          trib_replica_map_reduce(r, map_item, ITEMS, x, 2, TRIB_F32, TRIB_MEAN) == 0);
    HOLDS(r, x[0] == (float)(sum / ITEMS));
    HOLDS(r,
          trib_replica_map_reduce(r, map_item, ITEMS, x, 2, TRIB_F32, TRIB_MAX) == 0);
    HOLDS(r, x[0] == 1 && x[1] == 3);
    HOLDS(r, trib_replica_map_reduce(r, map_item, 0, x, 2, TRIB_F32, TRIB_MIN) == 0);
    HOLDS(r, x[0] == 0 && x[1] == 0);
    HOLDS(r, trib_replica_map_reduce(r, map_number, ITEMS, &number, 1, TRIB_I64,
                                     TRIB_MIN) == TRIB_OK);
    HOLDS(r, number == -4);
    HOLDS(r, trib_replica_map_reduce(r, map_number, ITEMS, &number, 1, TRIB_I64,
                                     TRIB_SUM) == TRIB_OK);
    HOLDS(r, number == -7);
    return 0;
}

static int shares_values(trib_replica_t *r)
{
    const int n = trib_replica_in_sync(r), me = trib_rank(trib_replica_comm(r));
    int32_t id = trib_replica_id(r), ids[REPLICAS_MAX];
    float sum = (float)me, mean = (float)me, value = (float)me;

    HOLDS(r, trib_replica_all_gather(r, &id, ids, 1, TRIB_I32) == TRIB_OK);
    for (int q = 0; q < n; q++)
        HOLDS(r, ids[q] == id - me + q);
    HOLDS(r, trib_replica_all_reduce(r, NULL, &sum, 1, TRIB_F32, TRIB_SUM) == TRIB_OK);
    HOLDS(r,
          trib_replica_all_reduce(r, NULL, &mean, 1, TRIB_F32, TRIB_MEAN) == TRIB_OK);
    HOLDS(r, mean * (float)n == sum);
    for (int twice = 0; twice < 2; twice++) {
        HOLDS(r, trib_replica_broadcast(r, &value, 1, TRIB_F32, n - 1) == TRIB_OK);
        HOLDS(r, value == (float)(n - 1));
    }
    return reduces(r);
}

static int knows_itself(trib_replica_t *r)
{
    const int devices = trib_replica_devices(r), n = trib_replica_in_sync(r);
    const uintptr_t state = (uintptr_t)trib_replica_state(r);

    HOLDS(r,
          trib_replica_count(r) % n == 0 && trib_replica_id(r) < trib_replica_count(r));
    HOLDS(r, trib_size(trib_replica_comm(r)) == n);
    HOLDS(r, trib_rank(trib_replica_comm(r)) == trib_replica_id(r) % n);
    HOLDS(r, trib_size(trib_replica_model(r)) == devices);
    HOLDS(r, trib_rank(trib_replica_model(r)) == trib_replica_device(r));
    HOLDS(r, trib_replica_batch(r) * (size_t)n == REPLICAS_BATCH);
    HOLDS(r, trib_replica_steps(r) * (uint64_t)(trib_replica_count(r) / n) ==
                 REPLICAS_STEPS);
    HOLDS(r, state % 64 == 0);
    return shares_values(r);
}

TEST(test_replica)
{
    static const char *const kinds[] = {"one", "threads:3", "threads:4,devices=2"};

    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct replicas_job job = {.kind = kinds[i], .check = knows_itself};

        run(&job);
    }
}

/* ---- through a store ------------------------------------------------------------- */

TEST(test_store)
{
    static const struct {
        const char *kind;
        int devices;
        double near;
        int stale; /* staleness of the last push, which missed all pushes of
                    * others; -1: a later pull may include them */
    } rows[] = {
        {"ps", 1, 1e-6, 0},
        {"hybrid:threads=2,groups=1", 1, 1e-6, 0},
        {"ps:threads=2,staleness=1", 1, 0.2, -1},
        {"ps:threads=4,devices=2", 2, 0.2, REPLICAS_STEPS / 2},
        {"hybrid:threads=4,input=worker,groups=1", 1, 1e-6, 0},
        {"hybrid:threads=4", 1, 0.2, REPLICAS_STEPS / 2},
    };
    struct daemon_process d = {.threads = 1};
    char service[40];
    float wanted[REPLICAS_PARAMS];

    daemon_need(&d);
    snprintf(service, sizeof(service), "127.0.0.1:%d", d.port);
    setenv("TRIB_SERVICE", service, 1);
    replicas_oracle(1, wanted);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct replicas_job job = {
            .kind = rows[i].kind, .by_rule = true, .check = knows_itself};

        run(&job);
        each_sample_once(job.kind, &job, rows[i].devices);
        const double off = replicas_distance(job.params, wanted);
        const int stale = atomic_load(&job.stale);
        if (!(off <= rows[i].near) || (rows[i].stale >= 0 && stale != rows[i].stale))
            fail_msg("%s: %g off, %d stale", job.kind, off, stale);
    }
    unsetenv("TRIB_SERVICE");
    daemon_end(&d);
}

/* ---- what does not fit ----------------------------------------------------------- */

TEST(test_refused)
{
    static const struct {
        const char *kind, *words;
    } rows[] = {
        {"worker", "\"workers\""},
        {"threads", "the number of threads is missing"},
        {"threads:0", "a number of threads from 1"},
        {"ps:shares=2", "ps has no parameter \"shares\""},
        {"workers:input=all", "replica, worker or single"},
        {"threads:3,devices=2", "3 ranks cannot be divided into replicas of 2 devices"},
        {"threads:5",
         "a batch of 12 samples is not divisible by 5 replicas: 15 would be"},
        {"threads:4,shares=6", "6 shares are not divisible by 4 replicas"},
        {"one:shares=5", "is not divisible by 5 shares: 15 would be"},
        {"hybrid:threads=4,groups=3", "4 replicas cannot be divided into 3 equal"},
        {"ps:threads=3", "8 steps are not divisible by 3 groups: 9 would be"},
        {"ps:threads=4,input=single", "one pipeline for 4 groups"},
        {"ps:threads=4,input=worker", "replicas of several groups"},
        {"ps", "TRIB_SERVICE"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct replicas_job job = {.kind = rows[i].kind, .by_rule = true};

        if (replicas_run(&job) == TRIB_OK ||
            !strstr(trib_replicator_error(), rows[i].words))
            fail_msg("%s: wanted \"%s\", got \"%s\"", job.kind, rows[i].words,
                     trib_replicator_error());
        assert_int_equal(atomic_load(&job.finished), 0);
    }
    trib_replicator_opts_t opts = TRIB_REPLICATOR_OPTS_INIT;
    assert_status(trib_replicator_run(&opts), TRIB_ERR_INVALID);
    assert_non_null(strstr(trib_replicator_error(), "input and step"));
}

RANKS_TEST(test_do_not_fit, .size = 2, .config = "transport=shm")
{
    static const struct {
        const char *kinds[2], *words;
    } rows[] = {
        {{"one", "one"}, "\"one\" has one process, but this job has 2"},
        {{"threads:2", "threads:2"}, "use \"workers:threads=2\""},
        {{"workers:devices=2,input=worker", "workers:devices=2,input=worker"},
         "1 of the 2 devices"},
        {{"workers", "workers:shares=2"}, "process 1 differs from process 0 in kind"},
        {{"workers", "nothing"}, "process 1 cannot start"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct replicas_job job = {.kind = rows[i].kinds[self->rank],
                                   .comm = self->comm};

        ranks_assert(self, replicas_run(&job) != TRIB_OK);
        if (!strstr(trib_replicator_error(), rows[i].words) &&
            !(self->rank == 1 && strstr(trib_replicator_error(), "there is no")))
            ranks_die(self, "wanted \"%s\", got \"%s\"", rows[i].words,
                      trib_replicator_error());
    }
    return 0;
}
