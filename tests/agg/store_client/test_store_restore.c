/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kill -9 of the tribd of a store at any moment: all ranks learn which version is
 * safe, and return to it or to a rank's copy; each push is applied once.
 */
#include "build-config.h"
#include "tests/agg/store_client/snapshot_rig.h"

enum { ODD = 20011, VECTORS = 3, BEFORE = 4, BEHIND = 3, KILLS = 14 };

/* Vectors -------------------------------------------------------------------------- */

/* Create vectors of three rules and dtypes. */
static void create(const struct ranks_self *self, trib_store_t *store,
                   trib_vector_t *v[VECTORS])
{
    static const char *const rules[] = {"sgd:rate=0.25,momentum=0.5", "adam:rate=0.01",
                                        NULL};
    static const char *const names[] = {"layer/1", "layer/2", "counts"};
    static const trib_dtype_t dtypes[] = {TRIB_F32, TRIB_BF16, TRIB_I64};

    for (int i = 0; i < VECTORS; i++) {
        trib_vector_desc_t d =
            sized(trib_vector_desc_t, .name = names[i], .count = (size_t)(ODD - i),
                  .dtype = dtypes[i], .rule = rules[i]);
        snapshot_rig_need(self, store, trib_store_create(store, &d, &v[i]), "create");
    }
}

/* Push number n in turn, so that the order is known. */
static void push_in_turn(const struct ranks_self *self, trib_store_t *store,
                         trib_vector_t *const *v, int n)
{
    uint8_t *x = calloc(ODD, 8);

    ranks_assert(self, x);
    for (int k = 0; k < ODD; k++) {
        const float f = (float)(k % 7 - 3) * (float)(n + 1);
        const int64_t i = (int64_t)k * n;
        memcpy(x + 4 * (size_t)k, &f, 4);
        if (k % 2)
            memcpy(x + 8 * (size_t)(k / 2), &i, 8);
    }
    for (int i = 0; i < VECTORS; i++)
        if (n % self->size == self->rank) {
            for (size_t k = 0; i == 1 && k < ODD; k++) { /* bfloat16 without NaN */
                const uint16_t b = (uint16_t)(0x3f80 + (k + (size_t)n) % 64);
                memcpy(x + 2 * k, &b, 2);
            }
            snapshot_rig_need(self, store, trib_store_push(v[i], x, NULL, NULL),
                              "push");
        }
    free(x);
    ranks_ok(self, trib_barrier(self->comm));
}

static uint8_t *pull_all(const struct ranks_self *self, trib_store_t *store,
                         trib_vector_t *const *v, uint64_t *version)
{
    uint8_t *x = calloc((size_t)VECTORS * ODD, 8);

    ranks_assert(self, x);
    for (int i = 0; i < VECTORS; i++)
        snapshot_rig_need(
            self, store,
            trib_store_pull(v[i], x + 8 * (size_t)(i * ODD), NULL, version), "pull");
    return x;
}

static void same(const struct ranks_self *self, const uint8_t *a, const uint8_t *b)
{
    ranks_assert(self, memcmp(a, b, (size_t)8 * VECTORS * ODD) == 0);
}

/* Restore an older copy of the last rank while nothing is lost. */
static void back_to_copy(const struct ranks_self *self, trib_store_t *store,
                         trib_vector_t *v, const uint8_t *copy)
{
    trib_vector_state_t state = TRIB_VECTOR_STATE_INIT;
    const uint64_t newest = (uint64_t)(BEFORE * self->size + BEHIND);
    int64_t *x = calloc(ODD, sizeof(*x));
    uint64_t version = 0;

    ranks_assert(self, x);
    snapshot_rig_need(self, store,
                      trib_store_restore(store, v, self->size - 1, copy, &version),
                      "a copy");
    ranks_assert(self, version == newest);
    snapshot_rig_need(self, store, trib_store_state(v, &state), "state");
    ranks_assert(self, state.pushes == 0);
    snapshot_rig_need(self, store, trib_store_pull(v, x, NULL, NULL), "pull");
    ranks_assert(self, memcmp(x, copy, (size_t)8 * (ODD - 2)) == 0);
    snapshot_rig_refused(self, store, trib_store_restore(store, NULL, 0, x, NULL),
                         TRIB_ERR_INVALID, "requires a vector");
    snapshot_rig_refused(self, store, trib_store_restore(store, v, self->size, x, NULL),
                         TRIB_ERR_INVALID, "invalid rank");
    free(x);
}

/* After the kill all ranks learn the safe version, return to it, and repeat the pushes:
 * with the state of the rules, the results are bit-identical. */
static int back_to_snapshot(struct ranks_self *self)
{
    struct snapshot_rig *rig = self->arg;
    trib_store_t *store = snapshot_rig_store(self, NULL, 0);
    trib_vector_t *v[VECTORS];
    trib_vector_state_t state = TRIB_VECTOR_STATE_INIT;
    uint64_t version = 0;
    const int until = BEFORE * self->size;

    create(self, store, v);
    for (int n = 0; n < until; n++)
        push_in_turn(self, store, v, n);
    uint8_t *before = pull_all(self, store, v, &version);
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == self->size - 1)
        snapshot_rig_need(self, store, trib_store_snapshot(store, NULL, NULL),
                          "snapshot");
    ranks_ok(self, trib_barrier(self->comm));
    for (int n = until; n < until + BEHIND; n++)
        push_in_turn(self, store, v, n);
    uint8_t *behind = pull_all(self, store, v, &version);
    ranks_assert(self, version == (uint64_t)(until + BEHIND));
    snapshot_rig_kill(self, rig, 0);
    snapshot_rig_refused(self, store, trib_store_pull(v[0], behind, NULL, NULL),
                         TRIB_ERR_PEER_LOST, "tribd was restarted; its snapshots: ");
    snapshot_rig_refused(self, store, trib_store_push(v[2], behind, NULL, NULL),
                         TRIB_ERR_PEER_LOST,
                         " is in a snapshot: use trib_store_restore");
    snapshot_rig_need(self, store,
                      trib_store_restore(store, NULL, TRIB_RESTORE_LOST, NULL, NULL),
                      "restore");
    snapshot_rig_need(
        self, store,
        trib_store_restore(store, v[2], TRIB_RESTORE_SNAPSHOT, NULL, &version),
        "restore one again");
    ranks_assert(self, version == (uint64_t)until);
    uint8_t *now = pull_all(self, store, v, &version);
    same(self, now, before);
    snapshot_rig_need(self, store, trib_store_state(v[2], &state), "state");
    ranks_assert(self, state.pushes == BEFORE && state.version == (uint64_t)until &&
                           state.saved == (uint64_t)until && !state.lost);
    free(now);
    ranks_ok(self, trib_barrier(self->comm));
    for (int n = until; n < until + BEHIND; n++)
        push_in_turn(self, store, v, n);
    now = pull_all(self, store, v, &version);
    same(self, now, behind);
    back_to_copy(self, store, v[2], before + 16 * ODD);
    free(before);
    free(behind);
    free(now);
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0)
        daemon_signal(&rig->d[0], SIGKILL);
    return 0;
}

TEST_ON(test_back, "shm", "tcp", IF_UCX("ucx"))
{
    const char *transport = *state;
    char config[200];

    for (int size = 1; size <= 3; size += 2) {
        struct snapshot_rig rig;
        if (!snapshot_rig_open(&rig, 1, true))
            tribtest_skip("built without libmicrohttpd");
        snapshot_rig_config(&rig, transport + sizeof("transport=") - 1, config);
        ranks_pass(.size = size, .fn = back_to_snapshot, .arg = &rig, .config = config,
                   .seconds = 100, .noisy = true);
        snapshot_rig_close(&rig);
    }
}

/* The sweep ------------------------------------------------------------------------ */

enum { ROW = 8, COUNT = 2500 * ROW };

/* Return what push n of a rank adds to an element: 1 to element `rank` of each row of
 * ROW elements, and n (rank + 1) to elements of no rank. */
static int64_t pushed_at(const struct ranks_self *self, int k, uint64_t n)
{
    return k % ROW < self->size ? k % ROW == self->rank : (int64_t)n * (self->rank + 1);
}

/* Check that each row contains whole pushes: the pushes of each rank from the first on.
 * The minimum over the rows is the count of the vector. */
static void check_rows(const struct ranks_self *self, const int64_t *x,
                       uint64_t version, uint64_t pushes)
{
    int64_t least = INT64_MAX, own = INT64_MAX;

    for (int k = 0; k < COUNT; k++) {
        const int64_t *row = x + k / ROW * ROW;
        int64_t sum = 0, all = 0;
        if (k % ROW < self->size)
            continue;
        for (int r = 0; r < self->size; r++) {
            all += row[r];
            sum += row[r] * (row[r] + 1) / 2 * (r + 1);
        }
        ranks_assert(self, x[k] == sum);
        least = all < least ? all : least;
        own = row[self->rank] < own ? row[self->rank] : own;
    }
    ranks_assert(self, (uint64_t)least == version && (uint64_t)own == pushes);
}

static void check_sum(const struct ranks_self *self, trib_store_t *store,
                      trib_vector_t *v)
{
    int64_t *x = calloc(COUNT, sizeof(*x));
    trib_vector_state_t state = TRIB_VECTOR_STATE_INIT;
    uint64_t version = 0;

    ranks_assert(self, x);
    snapshot_rig_need(self, store, trib_store_pull(v, x, NULL, &version), "pull");
    snapshot_rig_need(self, store, trib_store_state(v, &state), "state");
    check_rows(self, x, version, state.pushes);
    free(x);
    ranks_ok(self, trib_barrier(self->comm));
}

/* Push until tribd is lost. */
static void push_until_lost(const struct ranks_self *self, trib_store_t *store,
                            trib_vector_t *v)
{
    int64_t *x = calloc(COUNT, sizeof(*x));
    trib_vector_state_t state = TRIB_VECTOR_STATE_INIT;
    trib_status_t st = TRIB_OK;

    ranks_assert(self, x);
    while (st == TRIB_OK) {
        snapshot_rig_need(self, store, trib_store_state(v, &state), "state");
        for (int k = 0; k < COUNT; k++)
            x[k] = pushed_at(self, k, state.pushes + 1);
        st = trib_store_push(v, x, NULL, NULL);
    }
    free(x);
    if (st != TRIB_ERR_PEER_LOST || !strstr(trib_store_error(store), "tribd at "))
        ranks_die(self, "a push: %s", trib_store_error(store));
}

/* Start a process that kills tribd after `us` microseconds. */
static pid_t kill_later(const struct snapshot_rig *rig, int i, unsigned us)
{
    fflush(NULL);
    const pid_t pid = fork();

    if (pid == 0) {
        usleep(us);
        kill(rig->d[i].pid, SIGKILL);
        _exit(0);
    }
    return pid;
}

static int kill_anywhere(struct ranks_self *self)
{
    struct snapshot_rig *rig = self->arg;
    trib_store_t *store = snapshot_rig_store(self, NULL, 2);
    trib_vector_t *v = NULL;
    unsigned us = 1000;
    uint64_t version = 0, last = 0, furthest = 0;
    trib_vector_desc_t d = sized(trib_vector_desc_t, .name = "sum", .count = COUNT,
                                 .dtype = TRIB_I64, .shards = rig->n);

    snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
    snapshot_rig_need(self, store, trib_store_snapshot(store, v, NULL),
                      "the first snapshot");
    for (int i = 0; i < KILLS; i++) {
        const int which = i / 2 % rig->n;
        ranks_ok(self, trib_barrier(self->comm));
        us = us * 7919 % 79979; /* 0 to 80 ms */
        const unsigned in_us = us * tribtest_slowness();
        const pid_t killer = self->rank == 0 ? kill_later(rig, which, in_us) : 0;
        push_until_lost(self, store, v);
        ranks_ok(self, trib_barrier(self->comm));
        if (self->rank == 0) {
            waitpid(killer, NULL, 0);
            snapshot_rig_start(self, rig, which);
        }
        ranks_ok(self, trib_barrier(self->comm));
        snapshot_rig_need(
            self, store, trib_store_restore(store, NULL, TRIB_RESTORE_LOST, NULL, NULL),
            "restore");
        check_sum(self, store, v);
        snapshot_rig_need(self, store, trib_store_wait(v, 0, 0, &version), "version");
        ranks_assert(self, version >= last); /* a safe version stays safe */
        last = version;
        furthest = version > furthest ? version : furthest;
    }
    ranks_assert(self, furthest > 0);
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_barrier(self->comm));
    for (int i = 0; i < rig->n && self->rank == 0; i++)
        daemon_signal(&rig->d[i], SIGKILL);
    return 0;
}

/* The vector is in one tribd, then over two; one of these is killed. */
TEST(test_kill_anywhere)
{
    struct snapshot_rig rig;
    char config[200];

    for (int n = 1; n <= 2; n++) {
        if (!snapshot_rig_open(&rig, n, true))
            tribtest_skip("built without libmicrohttpd");
        snapshot_rig_config(&rig, "shm", config);
        ranks_pass(.size = 2, .fn = kill_anywhere, .arg = &rig, .config = config,
                   .seconds = 200, .noisy = true);
        snapshot_rig_close(&rig);
    }
}

/* Two shards ----------------------------------------------------------------------- */

/* One of two tribds is killed: vectors of the other one are unchanged. */
static int one_of_two(struct ranks_self *self)
{
    struct snapshot_rig *rig = self->arg;
    trib_store_t *store = snapshot_rig_store(self, NULL, 0);
    trib_vector_t *v[6];
    int lost = 0;
    int32_t one = 1, x;

    for (int i = 0; i < 6; i++) {
        char name[] = {'v', (char)('0' + i), '\0'};
        trib_vector_desc_t d =
            sized(trib_vector_desc_t, .name = name, .count = 1, .dtype = TRIB_I32);
        snapshot_rig_need(self, store, trib_store_create(store, &d, &v[i]), "create");
        snapshot_rig_need(self, store, trib_store_push(v[i], &one, NULL, NULL), "push");
        ranks_ok(self, trib_barrier(self->comm));
        snapshot_rig_need(self, store, trib_store_snapshot(store, v[i], NULL),
                          "snapshot");
        ranks_ok(self, trib_barrier(self->comm));
        snapshot_rig_need(self, store, trib_store_push(v[i], &one, NULL, NULL), "push");
    }
    snapshot_rig_kill(self, rig, 1);
    snapshot_rig_need(self, store,
                      trib_store_restore(store, NULL, TRIB_RESTORE_LOST, NULL, NULL),
                      "restore");
    for (int i = 0; i < 6; i++) {
        snapshot_rig_need(self, store, trib_store_pull(v[i], &x, NULL, NULL), "pull");
        ranks_assert(self, x == self->size || x == 2 * self->size);
        lost += x == self->size;
    }
    ranks_assert(self, lost > 0 && lost < 6);
    snapshot_rig_need(
        self, store, trib_store_restore(store, NULL, TRIB_RESTORE_SNAPSHOT, NULL, NULL),
        "all");
    for (int i = 0; i < 6; i++) {
        snapshot_rig_need(self, store, trib_store_pull(v[i], &x, NULL, NULL), "pull");
        ranks_assert(self, x == self->size);
    }
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0)
        daemon_signal(&rig->d[1], SIGKILL);
    return 0;
}

TEST(test_one_of_two)
{
    struct snapshot_rig rig;
    char config[200];

    if (!snapshot_rig_open(&rig, 2, true))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "tcp", config);
    ranks_pass(.size = 2, .fn = one_of_two, .arg = &rig, .config = config,
               .seconds = 100, .noisy = true);
    snapshot_rig_close(&rig);
}
