/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A failure in one replica ends the run on all ranks, which report the cause and its
 * rank. A process that is killed or stopped is named, and other groups continue without
 * it.
 */
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"
#include "tests/train/replicas.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct row {
    const char *kind;
    enum replicas_fault fault;
    int replica;
    uint64_t step;
    trib_status_t status;
    const char *words;
} rows[] = {
    {"one", FAULT_STEP, 0, 3, TRIB_ERR_ABORTED,
     "replica 0 has failed in step 3: label 11"},
    {"threads:4", FAULT_STEP, 2, 3, TRIB_ERR_ABORTED,
     "replica 2 has failed in step 3: label 11"},
    {"threads:4", FAULT_STEP_SILENT, 1, 0, TRIB_ERR_ABORTED,
     "replica 1 has failed in step 0: its function \"step\" returned 7"},
    {"threads:4,shares=12", FAULT_GRADIENT, 3, 2, TRIB_ERR_ABORTED,
     "replica 3 has failed in step 2: the loss is NaN"},
    {"threads:4,devices=2", FAULT_STEP, 1, 2, TRIB_ERR_ABORTED,
     "replica 1 (device 1) has failed in step 2: label 11"},
    {"threads:3", FAULT_START, 2, 0, TRIB_ERR_ABORTED, "in step 0: no model"},
    {"threads:3", FAULT_INPUT, 1, 2, TRIB_ERR_ABORTED, "in step 2: no more samples"},
    {"threads:4,devices=2,input=single", FAULT_INPUT, 1, 2, TRIB_ERR_ABORTED,
     "replica 0 (device 0) has failed in step 2: no more samples"},
    {"threads:2", FAULT_FINISH, 1, 0, TRIB_ERR_ABORTED, "no room for the model"},
    {"threads:3", FAULT_ORDER, 1, 2, TRIB_ERR_MISMATCH, "rank 1"},
    {"threads:2,shares=4", FAULT_BY_HAND, 1, 2, TRIB_ERR_UNSUPPORTED,
     "with shares, make a step by trib_replica_train"},
    {"threads:2,shares=4", FAULT_STRATEGY, 1, 0, TRIB_ERR_UNSUPPORTED,
     "a trainer cannot have shares and the strategy \"local:period=4\""},
};

/* Return true if the run ended as the row specifies. */
static bool is_as(const struct row *row, trib_status_t status)
{
    return status == row->status && strstr(trib_replicator_error(), row->words);
}

TEST(test_threads)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct replicas_job job = {.kind = rows[i].kind,
                                   .fault = rows[i].fault,
                                   .replica = rows[i].replica,
                                   .step = rows[i].step};

        if (!is_as(&rows[i], replicas_run(&job)))
            fail_msg("%s: wanted %s, \"%s\", got \"%s\"", rows[i].kind,
                     trib_status_name(rows[i].status), rows[i].words,
                     trib_replicator_error());
    }
}

/* ---- processes ------------------------------------------------------------------- */

struct scene {
    const char *kind;
    enum replicas_fault fault;
    trib_status_t status; /* of the others */
    const char *words;
    bool by_rule;
    int signal;
    bool others; /* ranks 2 and 3 belong to a group that continues */
};

/* A rank detects the loss at once if it is still in a barrier. */
static bool is_right(trib_status_t wanted, trib_status_t st)
{
    return st == wanted || (wanted == TRIB_ERR_TIMEOUT && st == TRIB_ERR_PEER_LOST);
}

static int one_fails(struct ranks_self *self)
{
    const struct scene *scene = self->arg;
    const trib_status_t wanted =
        scene->others && self->rank > 1 ? TRIB_OK : scene->status;
    struct replicas_job job = {.kind = scene->kind,
                               .fault = scene->fault,
                               .by_rule = scene->by_rule,
                               .replica = 1,
                               .step = 1,
                               .waits = (_Atomic int *)&self->slot->phase};

    ranks_ok(self, trib_init(&self->opts, &job.comm));
    const trib_status_t st = replicas_run(&job);
    trib_free_comm(job.comm); /* which may have failed */
    if (!is_right(wanted, st) ||
        (st != TRIB_OK && !strstr(trib_replicator_error(), scene->words)))
        ranks_die(self, "wanted %s, \"%s\", got %s, \"%s\"", trib_status_name(wanted),
                  scene->words, trib_status_name(st), trib_replicator_error());
    ranks_assert(self, st != TRIB_OK || atomic_load(&job.finished) == 1);
    return 0;
}

TEST_ON(test_processes, "shm", "tcp")
{
    static struct scene scenes[] = {
        {"workers", FAULT_STEP, TRIB_ERR_ABORTED,
         "replica 1 has failed in step 1: label 11", false, 0, false},
        {"workers:threads=2", FAULT_GRADIENT, TRIB_ERR_ABORTED,
         "replica 1 has failed in step 1: the loss is NaN", false, 0, false},
        {"workers", FAULT_ORDER, TRIB_ERR_MISMATCH, "rank 1", false, 0, false},
    };

    for (size_t i = 0; i < COUNT(scenes); i++)
        ranks_pass(.size = 3, .fn = one_fails, .arg = &scenes[i], .config = *state,
                   .noisy = true, .bare = true);
}

enum { SIZE = 4 };

/* Rank 1 waits in a step, and is killed or stopped there. */
static void lose_one(struct scene *scene, const char *config)
{
    struct ranks r;
    const struct ranks_job job = {.size = SIZE,
                                  .fn = one_fails,
                                  .arg = scene,
                                  .config = config,
                                  .noisy = true,
                                  .bare = true,
                                  .seconds = 30};

    assert_true(ranks_start(&r, &job));
    while (!ranks_poll(&r) && !atomic_load(&r.slots[1].phase))
        usleep(500);
    ranks_signal(&r, 1, scene->signal);
    ranks_outlive(&r, 1u << 1);
    ranks_survived(&r, 1u << 1, "%s, signal %d", scene->kind, scene->signal);
}

TEST_ON(test_losses, "shm", "tcp")
{
    char config[120];
    struct scene killed = {"workers", FAULT_DIES, TRIB_ERR_PEER_LOST, "rank 1", false,
                           SIGKILL,   false};
    struct scene stopped = killed;

    snprintf(config, sizeof(config), "%s,stop_timeout_ms=%d", (const char *)*state,
             500 * (int)tribtest_slowness());
    stopped.signal = SIGSTOP;
    lose_one(&killed, config);
    lose_one(&stopped, config);
}

/* Through a store the others make their steps, and have the model. */
TEST(test_asynchronous)
{
    struct daemon_process d = {.threads = 1};
    static struct scene scenes[] = {
        {"ps", FAULT_DIES, TRIB_OK, "", true, SIGKILL, false},
        {"ps", FAULT_DIES, TRIB_OK, "", true, SIGSTOP, false},
        {"ps", FAULT_STEP, TRIB_ERR_ABORTED, "replica 1 has failed in step 1: label 11",
         true, 0, false},
        {"ps:staleness=0", FAULT_STEP, TRIB_ERR_ABORTED,
         "replica 1 has failed in step 1: label 11", true, 0, false},
        {"ps:staleness=0", FAULT_DIES, TRIB_ERR_TIMEOUT, "rank 1", true, SIGKILL,
         false},
        {"hybrid", FAULT_STEP, TRIB_ERR_ABORTED,
         "replica 1 has failed in step 1: label 11", true, 0, false},
        {"hybrid", FAULT_DIES, TRIB_ERR_PEER_LOST, "rank 1", true, SIGKILL, true},
    };
    char config[120];

    daemon_need(&d);
    snprintf(config, sizeof(config),
             "transport=shm;service=127.0.0.1:%d;stop_timeout_ms=%d;timeout_ms=%d",
             d.port, 500 * (int)tribtest_slowness(), 1500 * (int)tribtest_slowness());
    for (size_t i = 0; i < COUNT(scenes); i++)
        lose_one(&scenes[i], config);
    daemon_signal(&d, SIGKILL); /* it would wait for the rank that is lost */
    daemon_end(&d);
}
