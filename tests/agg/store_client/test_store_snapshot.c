/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Snapshots of a store: later runs that have its key, invalid files, a full disk, a
 * tribd without snapshots, and one that shuts down normally.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/agg/store_client/snapshot_rig.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER_KEY "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* Find the only file of a folder. */
static void only_file(const char *folder, char path[2 * DAEMON_PATH])
{
    DIR *dir = opendir(folder);

    path[0] = '\0';
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            snprintf(path, 2 * DAEMON_PATH, "%s/%.200s", folder, e->d_name);
    if (dir)
        closedir(dir);
}

/* Later runs ----------------------------------------------------------------------- */

static int run_by_key(struct ranks_self *self)
{
    const struct snapshot_rig *rig = self->arg;
    trib_store_t *store = snapshot_rig_store(self, rig->key, 0);
    trib_vector_state_t state = TRIB_VECTOR_STATE_INIT;
    trib_vector_t *v = NULL;
    uint64_t version = 0;
    double x[3] = {1, 2, 3};
    const bool mine = strcmp(rig->key, KEY) == 0;
    trib_vector_desc_t d =
        sized(trib_vector_desc_t, .name = "x", .count = 3, .dtype = TRIB_F64);

    snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
    const trib_status_t st =
        trib_store_restore(store, v, TRIB_RESTORE_SNAPSHOT, NULL, &version);
    if (!rig->again || !mine)
        snapshot_rig_refused(self, store, st, TRIB_ERR_NO_RESOURCE,
                             "no snapshot of vector x with this key");
    if (rig->again && mine) {
        snapshot_rig_need(self, store, st, "restore");
        snapshot_rig_need(self, store, trib_store_state(v, &state), "state");
        ranks_assert(self, version == 2 && state.pushes == (self->size == 2));
        snapshot_rig_need(self, store, trib_store_pull(v, x, NULL, NULL), "pull");
        ranks_assert(self, x[0] == 2 && x[1] == 4 && x[2] == 6);
    } else {
        snapshot_rig_need(self, store, trib_store_push(v, x, NULL, NULL), "push");
        ranks_ok(self, trib_barrier(self->comm));
        if (mine)
            snapshot_rig_need(self, store, trib_store_snapshot(store, v, &version),
                              "snapshot");
        ranks_assert(self, !mine || version == 2);
    }
    ranks_ok(self, trib_barrier(self->comm));
    ranks_ok(self, trib_store_free(store));
    return 0;
}

TEST(test_later_runs)
{
    struct snapshot_rig rig;
    char config[200];

    if (!snapshot_rig_open(&rig, 1, true))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    rig.key = KEY;
    ranks_pass(.size = 2, .fn = run_by_key, .arg = &rig, .config = config);
    daemon_signal(&rig.d[0], SIGKILL);
    for (int status; rig.d[0].pid > 0 && !daemon_ended(&rig.d[0], &status);)
        usleep(1000);
    setenv("TRIBD_SNAPSHOTS", rig.folder[0], 1);
    assert_true(daemon_run(&rig.d[0]));
    rig.again = true;
    ranks_pass(.size = 2, .fn = run_by_key, .arg = &rig, .config = config);
    ranks_pass(.size = 3, .fn = run_by_key, .arg = &rig, .config = config);
    rig.key = OTHER_KEY;
    ranks_pass(.size = 2, .fn = run_by_key, .arg = &rig, .config = config);
    snapshot_rig_close(&rig);
}

/* Open a store with one key again and again. tribd may read the goodbyes of the ranks
 * later than the next request. */
static int reopen(struct ranks_self *self)
{
    enum { TIMES = 40, ELEMENTS = 300000 };
    float *x = calloc(ELEMENTS, sizeof(*x));
    trib_vector_desc_t d = sized(trib_vector_desc_t, .name = "x", .count = ELEMENTS);

    for (int i = 0; i < TIMES; i++) {
        trib_store_t *store = snapshot_rig_store(self, KEY, 0);
        trib_vector_t *v = NULL;
        snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
        snapshot_rig_need(self, store, trib_store_push(v, x, NULL, NULL), "push");
        if (i % 4 == 0)
            snapshot_rig_need(self, store, trib_store_snapshot(store, v, NULL),
                              "snapshot");
        ranks_ok(self, trib_store_free(store));
    }
    free(x);
    return 0;
}

TEST(test_reopened)
{
    struct snapshot_rig rig;
    char config[200];

    if (!snapshot_rig_open(&rig, 1, true))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    ranks_pass(.size = 2, .fn = reopen, .arg = &rig, .config = config);
    snapshot_rig_close(&rig);
}

/* Rank 0 asks again while another store uses the key, but not until the time limit of
 * rank 1, which waits for it: that would end the communicator. */
static int key_in_use(struct ranks_self *self)
{
    trib_store_t *store = snapshot_rig_store(self, KEY, 0), *second = NULL;
    trib_store_opts_t o = sized(trib_store_opts_t, .key = KEY);

    const trib_status_t st = trib_store_open_with(self->comm, &o, &second);
    if (st != TRIB_ERR_BUSY)
        ranks_die(self, "open again: %d, %s", st, trib_last_error(self->comm));
    ranks_ok(self, trib_barrier(self->comm));
    ranks_ok(self, trib_store_free(store));
    return 0;
}

struct idle_calls {
    int n, most;
};

static int count_idle(void *arg)
{
    struct idle_calls *calls = arg;

    return ++calls->n >= calls->most;
}

/* While it waits, it calls the idle function, which may end the wait. */
static int key_in_use_idle(struct ranks_self *self)
{
    struct idle_calls calls = {0, INT32_MAX};
    trib_store_opts_t o = sized(trib_store_opts_t, .key = KEY);
    trib_store_t *second = NULL;

    self->opts.idle = count_idle;
    self->opts.idle_arg = &calls;
    ranks_ok(self, trib_init(&self->opts, &self->comm));
    trib_store_t *store = snapshot_rig_store(self, KEY, 0);
    calls.n = 0;
    ranks_expect(self, trib_store_open_with(self->comm, &o, &second), TRIB_ERR_BUSY,
                 "open again");
    ranks_say(self, "%d calls", calls.n);
    ranks_assert(self, calls.n > 200); /* in half a second */
    calls.most = calls.n + 100;
    ranks_expect(self, trib_store_open_with(self->comm, &o, &second), TRIB_ERR_ABORTED,
                 "open until the idle function ends it");
    ranks_assert(self, calls.n < calls.most + 50);
    ranks_ok(self, trib_store_free(store));
    (void)trib_free_comm(self->comm);
    return 0;
}

TEST(test_key_in_use)
{
    struct snapshot_rig rig;
    char config[200], limited[220];

    if (!snapshot_rig_open(&rig, 1, true))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    snprintf(limited, sizeof(limited), "%s;timeout_ms=2000", config);
    ranks_pass(.size = 2, .fn = key_in_use, .arg = &rig, .config = limited);
    ranks_pass(.size = 1, .fn = key_in_use_idle, .config = limited, .bare = true);
    snapshot_rig_close(&rig);
}

/* More stores than a user may open at once are delayed, not refused. */
static int many_stores(struct ranks_self *self)
{
    enum { TIMES = 128 + 8 };

    for (int i = 0; i < TIMES; i++)
        ranks_ok(self, trib_store_free(snapshot_rig_store(self, NULL, 0)));
    return 0;
}

TEST(test_many_stores)
{
    struct snapshot_rig rig;
    char config[200];

    if (!snapshot_rig_open(&rig, 1, true))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    ranks_pass(.size = 1, .fn = many_stores, .config = config);
    snapshot_rig_close(&rig);
}

/* Invalid files -------------------------------------------------------------------- */

static void spoil(const char *folder, bool cut)
{
    char path[2 * DAEMON_PATH];
    uint8_t byte = 0;

    only_file(folder, path);
    const int fd = open(path, O_RDWR);
    if (fd < 0)
        abort();
    struct stat s;
    if (fstat(fd, &s) || (cut && ftruncate(fd, s.st_size - 1)))
        abort();
    if (!cut && (pread(fd, &byte, 1, s.st_size - 5) != 1 || (byte ^= 4, false) ||
                 pwrite(fd, &byte, 1, s.st_size - 5) != 1))
        abort();
    close(fd);
}

static int spoiled(struct ranks_self *self)
{
    struct snapshot_rig *rig = self->arg;
    trib_store_t *store = snapshot_rig_store(self, NULL, 0);
    trib_vector_t *v = NULL, *other = NULL;
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    uint64_t version = 0;
    float x[1000];

    for (int i = 0; i < 1000; i++)
        x[i] = (float)i;
    d.name = "x";
    d.count = 1000;
    snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
    d.name = "other";
    snapshot_rig_need(self, store, trib_store_create(store, &d, &other), "create");
    snapshot_rig_need(self, store, trib_store_push(v, x, NULL, NULL), "push");
    ranks_ok(self, trib_barrier(self->comm));
    snapshot_rig_need(self, store, trib_store_snapshot(store, v, NULL), "snapshot");
    ranks_ok(self, trib_barrier(self->comm));
    for (int cut = 0; cut < 2; cut++) {
        if (self->rank == 0)
            spoil(rig->folder[0], cut);
        if (cut)
            snapshot_rig_kill(self, rig, 0);
        ranks_ok(self, trib_barrier(self->comm));
        snapshot_rig_refused(
            self, store,
            trib_store_restore(store, v, TRIB_RESTORE_SNAPSHOT, NULL, NULL),
            cut ? TRIB_ERR_NO_RESOURCE : TRIB_ERR_MISMATCH,
            cut ? "no snapshot of vector" : "its elements are damaged");
    }
    ranks_assert(self, self->rank || daemon_said(&rig->d[0], "it is truncated"));
    snapshot_rig_refused(self, store, trib_store_pull(v, x, NULL, NULL),
                         TRIB_ERR_PEER_LOST, "is back without this vector");
    snapshot_rig_need(self, store, trib_store_restore(store, v, 1, x, &version),
                      "a copy");
    ranks_assert(self, version == (uint64_t)self->size);
    x[7] = 0;
    snapshot_rig_need(self, store, trib_store_pull(v, x, NULL, NULL), "pull");
    ranks_assert(self, x[7] == 7);
    snapshot_rig_refused(self, store, trib_store_pull(other, x, NULL, NULL),
                         TRIB_ERR_PEER_LOST, "knows of no snapshot of it");
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0)
        daemon_signal(&rig->d[0], SIGKILL);
    return 0;
}

TEST(test_spoiled)
{
    struct snapshot_rig rig;
    char config[200];

    if (!snapshot_rig_open(&rig, 1, true))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    ranks_pass(.size = 2, .fn = spoiled, .arg = &rig, .config = config, .noisy = true);
    snapshot_rig_close(&rig);
}

/* Refusals ------------------------------------------------------------------------- */

/* The disk has no room for the second snapshot: the first one stays. */
static int no_room(struct ranks_self *self)
{
    const struct snapshot_rig *rig = self->arg;
    trib_store_t *store = snapshot_rig_store(self, NULL, 0);
    trib_vector_t *small = NULL, *large = NULL;
    int64_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    trib_vector_desc_t d = sized(trib_vector_desc_t, .name = "small", .count = 8,
                                 .dtype = TRIB_I64, .initial = x);

    snapshot_rig_need(self, store, trib_store_create(store, &d, &small), "create");
    d.name = "large";
    d.count = 300000;
    d.initial = NULL;
    snapshot_rig_need(self, store, trib_store_create(store, &d, &large), "create");
    snapshot_rig_need(self, store, trib_store_snapshot(store, small, NULL), "snapshot");
    if (rig->again)
        snapshot_rig_refused(self, store, trib_store_snapshot(store, large, NULL),
                             TRIB_ERR_NO_RESOURCE,
                             "exceeds tribd's settings disk or user_disk");
    else
        snapshot_rig_refused(self, store, trib_store_snapshot(store, large, NULL),
                             TRIB_ERR_SYSTEM, "File too large");
    ranks_ok(self, trib_barrier(self->comm));
    snapshot_rig_need(self, store, trib_store_push(small, x, NULL, NULL), "push");
    ranks_ok(self, trib_barrier(self->comm));
    snapshot_rig_need(
        self, store,
        trib_store_restore(store, small, TRIB_RESTORE_SNAPSHOT, NULL, NULL), "restore");
    snapshot_rig_need(self, store, trib_store_pull(small, x, NULL, NULL), "pull");
    ranks_assert(self, x[7] == 8);
    ranks_ok(self, trib_store_free(store));
    return 0;
}

TEST(test_no_room)
{
    struct snapshot_rig rig;
    char config[200];
    struct rlimit before, few;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    few = before;
    few.rlim_cur = 1 << 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    const bool up = snapshot_rig_open(&rig, 1, true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    if (!up)
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    ranks_pass(.size = 2, .fn = no_room, .arg = &rig, .config = config, .noisy = true);
    snapshot_rig_close(&rig);
    setenv("TRIBD_USER_DISK", "1", 1);
    assert_true(snapshot_rig_open(&rig, 1, true));
    unsetenv("TRIBD_USER_DISK");
    snapshot_rig_config(&rig, "shm", config);
    rig.again = true;
    ranks_pass(.size = 2, .fn = no_room, .arg = &rig, .config = config);
    snapshot_rig_close(&rig);
}

static int without(struct ranks_self *self)
{
    trib_store_t *store = NULL;
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_vector_t *v = NULL;
    float x = 1;
    trib_store_opts_t o = sized(trib_store_opts_t, .snapshot_s = 1);

    ranks_expect(self, trib_store_open_with(self->comm, &o, &store),
                 TRIB_ERR_UNSUPPORTED, "open");
    ranks_assert(self, strstr(trib_last_error(self->comm), "snapshots = DIRECTORY"));
    o.snapshot_s = -1;
    ranks_expect(self, trib_store_open_with(self->comm, &o, &store), TRIB_ERR_INVALID,
                 "open");
    o.snapshot_s = 0;
    o.key = "short";
    ranks_expect(self, trib_store_open_with(self->comm, &o, &store), TRIB_ERR_INVALID,
                 "open");
    store = snapshot_rig_store(self, NULL, 0);
    d.name = "x";
    d.count = 1;
    snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
    snapshot_rig_refused(self, store, trib_store_snapshot(store, v, NULL),
                         TRIB_ERR_UNSUPPORTED, "snapshots = DIRECTORY");
    snapshot_rig_need(self, store, trib_store_push(v, &x, NULL, NULL), "push");
    ranks_ok(self, trib_store_free(store));
    return 0;
}

TEST(test_without)
{
    struct snapshot_rig rig;
    char config[200];

    if (!snapshot_rig_open(&rig, 1, false))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    ranks_pass(.size = 2, .fn = without, .config = config);
    snapshot_rig_close(&rig);
}

/* Rank 0 shuts tribd down normally, and restarts it once its folder is free. */
static void restart(const struct ranks_self *self, struct snapshot_rig *rig)
{
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0) {
        const int fd = open(rig->folder[0], O_RDONLY | O_DIRECTORY);
        ranks_assert(self, fd >= 0);
        kill(rig->d[0].pid, SIGTERM);
        ranks_assert(self, flock(fd, LOCK_EX) == 0);
        close(fd);
        snapshot_rig_start(self, rig, 0);
    }
    ranks_ok(self, trib_barrier(self->comm));
}

/* A planned restart loses no push, although no snapshot was requested. */
static int drained(struct ranks_self *self)
{
    trib_store_t *store = snapshot_rig_store(self, NULL, 0);
    trib_vector_state_t state = TRIB_VECTOR_STATE_INIT;
    trib_vector_t *v[3];
    uint64_t version = 0;
    double x = 1;
    trib_vector_desc_t d = sized(trib_vector_desc_t, .count = 1, .dtype = TRIB_F64);

    for (int i = 0; i < 3; i++) {
        d.name = i ? i == 1 ? "two" : "unchanged" : "one";
        snapshot_rig_need(self, store, trib_store_create(store, &d, &v[i]), "create");
        for (int n = 0; n < 3 && i < 2; n++)
            snapshot_rig_need(self, store, trib_store_push(v[i], &x, NULL, NULL),
                              "push");
    }
    restart(self, self->arg);
    snapshot_rig_refused(self, store, trib_store_push(v[0], &x, NULL, NULL),
                         TRIB_ERR_PEER_LOST, "one version ");
    for (int i = 0; i < 2; i++) {
        snapshot_rig_need(
            self, store,
            trib_store_restore(store, v[i], TRIB_RESTORE_SNAPSHOT, NULL, &version),
            "restore");
        ranks_assert(self, version == (uint64_t)(3 * self->size));
        snapshot_rig_need(self, store, trib_store_state(v[i], &state), "state");
        ranks_assert(self, state.pushes == 3);
        snapshot_rig_need(self, store, trib_store_pull(v[i], &x, NULL, NULL), "pull");
        ranks_assert(self, x == 3 * self->size);
    }
    ranks_expect(self,
                 trib_store_restore(store, v[2], TRIB_RESTORE_SNAPSHOT, NULL, &version),
                 TRIB_ERR_NO_RESOURCE, "a vector of zeros");
    ranks_ok(self, trib_store_free(store));
    ranks_ok(self, trib_barrier(self->comm));
    if (self->rank == 0)
        daemon_signal(&((struct snapshot_rig *)self->arg)->d[0], SIGKILL);
    return 0;
}

TEST(test_drained)
{
    struct snapshot_rig rig;
    char config[200];

    setenv("TRIBD_DRAIN_MS", "100", 1);
    if (!snapshot_rig_open(&rig, 1, true))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    ranks_pass(.size = 3, .fn = drained, .arg = &rig, .config = config, .noisy = true);
    unsetenv("TRIBD_DRAIN_MS");
    snapshot_rig_close(&rig);
}

/* Wait until tribd has taken a periodic snapshot. */
static void await_snapshot(const struct ranks_self *self, trib_store_t *store,
                           trib_vector_t *v)
{
    trib_vector_state_t state = TRIB_VECTOR_STATE_INIT;

    do {
        snapshot_rig_need(self, store, trib_store_wait(v, 0, 0, NULL), "wait");
        snapshot_rig_need(self, store, trib_store_state(v, &state), "state");
    } while (state.saved == TRIB_VERSION_NONE);
}

/* The initial elements of a later run do not replace the snapshot of an earlier one:
 * not periodically, and not when tribd shuts down. */
static int initial_elements(struct ranks_self *self)
{
    struct snapshot_rig *rig = self->arg;
    const trib_store_opts_t o =
        sized(trib_store_opts_t, .key = KEY, .snapshot_s = 0.001);
    double x = 7;
    trib_vector_desc_t d =
        sized(trib_vector_desc_t, .count = 1, .dtype = TRIB_F64, .initial = &x);
    trib_vector_t *v, *w;
    trib_store_t *store;
    uint64_t version;

    ranks_ok(self, trib_store_open_with(self->comm, &o, &store));
    d.name = "x";
    snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
    if (!rig->again) {
        snapshot_rig_need(self, store, trib_store_push(v, &x, NULL, NULL), "push");
        snapshot_rig_need(self, store, trib_store_snapshot(store, v, NULL), "snapshot");
        ranks_ok(self, trib_store_free(store));
        return 0;
    }
    d.name = "y";
    snapshot_rig_need(self, store, trib_store_create(store, &d, &w), "create");
    await_snapshot(self, store, w); /* the one of x would have come first */
    restart(self, rig);
    snapshot_rig_need(
        self, store,
        trib_store_restore(store, v, TRIB_RESTORE_SNAPSHOT, NULL, &version), "restore");
    snapshot_rig_need(self, store, trib_store_pull(v, &x, NULL, NULL), "pull");
    ranks_assert(self, version == 1 && x == 14);
    ranks_ok(self, trib_store_free(store));
    daemon_signal(&rig->d[0], SIGKILL);
    return 0;
}

TEST(test_initial_elements)
{
    struct snapshot_rig rig;
    char config[200];

    setenv("TRIBD_DRAIN_MS", "100", 1);
    if (!snapshot_rig_open(&rig, 1, true))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, "shm", config);
    for (int run = 0; run < 2; run++) {
        rig.again = run;
        ranks_pass(.size = 1, .fn = initial_elements, .arg = &rig, .config = config,
                   .noisy = true);
    }
    unsetenv("TRIBD_DRAIN_MS");
    snapshot_rig_close(&rig);
}
