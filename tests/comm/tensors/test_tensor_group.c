/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of tensors compared with plain sums: dtypes, odd sizes, codecs, feeds,
 * buckets, orders that differ between ranks, memory in place and elsewhere, many steps;
 * all transports, with and without tribd. All ranks have the same bits, and an encoded
 * tensor has those of a plan with its name.
 */
#include <poll.h>

#include "build-config.h"
#include "tests/comm/tensors/tensors.h"
#include "tests/harness/daemon.h"

enum { STEPS = 5 };

static const char *const codecs[] = {"none", "none",       "bf16", "topk:ratio=0.05",
                                     "int8", "qsgd:bits=4"};

struct scene {
    size_t n;
    uint64_t seed;
    trib_op_t op;
    trib_feed_t feed;
    size_t bucket_bytes, alone_bytes;
    unsigned cycle_us;
    bool coded;
};

/* Results of the callbacks of a step. */
struct told {
    int times[TENSORS_MOST];
    trib_status_t status[TENSORS_MOST];
};

static void tell(void *arg, size_t tensor, trib_status_t status)
{
    struct told *told = arg;

    told->times[tensor]++;
    told->status[tensor] = status;
}

/* Create a separate plan for an encoded tensor, with the name that the group
 * assigns. */
static trib_plan_t *plan_of(struct ranks_self *self, const struct tensors *t, size_t i)
{
    return ranks_plan(self, TRIB_ALLREDUCE, .name = t->of[i].name,
                      .count = t->of[i].count, .dtype = t->of[i].dtype, .op = t->op,
                      .codec = t->of[i].codec);
}

/* When tribd encodes sums again, it draws numbers by the number of the plan there. */
static bool draws_alike(const struct ranks_self *self, const char *codec)
{
    return !strstr(self->opts.config, "service=") || strncmp(codec, "qsgd", 4) != 0;
}

static bool is_coded(const struct tensors *t, size_t i)
{
    return strcmp(t->of[i].codec, "none") != 0 && t->of[i].count;
}

/* Check that all ranks have the same bits of all tensors. */
static void check_bits(struct ranks_self *self, const struct tensors *t)
{
    uint64_t mine = 1, all[RANKS_MAX];

    for (size_t i = 0; i < t->n; i++)
        mine = oracle_mix(
            mine ^
            oracle_hash(t->recv[i], t->of[i].count * trib_dtype_size(t->of[i].dtype)));
    ranks_ok(self, trib_allgather(self->comm, &mine, all, 1, TRIB_I64));
    for (int r = 0; r < self->size; r++)
        if (all[r] != mine)
            ranks_die(self, "rank %d has other bits", r);
}

/* Wait for the step in one of several ways, once all tensors are ready. */
static void end_step(struct ranks_self *self, trib_group_t *group,
                     const struct tensors *t, uint64_t draw)
{
    const size_t some = draw / 8 % t->n;
    trib_status_t st;

    if (draw % 4 == 1)
        ranks_ok(self, trib_group_wait_tensor(group, some));
    if (draw % 4 == 2)
        while ((st = trib_group_test_tensor(group, some)) != TRIB_OK)
            ranks_assert(self, st == TRIB_INPROGRESS);
    if (draw % 4 == 3)
        while ((st = trib_group_test(group)) != TRIB_OK)
            ranks_assert(self, st == TRIB_INPROGRESS);
    ranks_ok(self, trib_group_wait(group));
    ranks_ok(self, trib_group_test_tensor(group, some));
}

static void mark_all(struct ranks_self *self, trib_group_t *group,
                     const struct tensors *t, uint64_t seed)
{
    size_t order[TENSORS_MOST];

    tensors_shuffle(order, t->n, seed);
    for (size_t k = 0; k < t->n; k++) {
        ranks_ok(self, trib_group_ready(group, order[k]));
        if (tensors_draw(&seed) % 8 == 0)
            usleep((useconds_t)(tensors_draw(&seed) % 300));
        if (tensors_draw(&seed) % 8 == 0)
            (void)trib_group_test(group);
    }
}

static void one_step(struct ranks_self *self, const struct scene *s, struct tensors *t,
                     trib_group_t *group, trib_plan_t *const *plans, uint64_t step)
{
    uint64_t seed = step * 100 + (uint64_t)self->rank;
    const void *sends[TENSORS_MOST] = {NULL};
    void *recvs[TENSORS_MOST];
    const bool moved = tensors_draw(&seed) % 2;

    for (size_t i = 0; i < t->n; i++) {
        const bool in_place = moved && tensors_draw(&seed) % 2;
        tensors_fill(self, t, i, step, in_place);
        sends[i] = in_place ? NULL : t->send[i];
        recvs[i] = t->recv[i];
        if (in_place) /* for the separate plan */
            tensors_fill(self, t, i, step, false);
    }
    ranks_ok(self, moved ? trib_group_start_with(group, sends, recvs)
                         : trib_group_start(group));
    if (s->feed != TRIB_FEED_WHOLE)
        mark_all(self, group, t, seed);
    end_step(self, group, t, tensors_draw(&seed));
    for (size_t i = 0; i < t->n; i++) {
        if (!is_coded(t, i)) {
            tensors_check(self, t, i, step);
            continue;
        }
        ranks_ok(self, trib_plan_start_with(plans[i], NULL, t->send[i]));
        ranks_ok(self, trib_plan_wait(plans[i]));
        if (draws_alike(self, t->of[i].codec) &&
            memcmp(t->send[i], t->recv[i], t->of[i].count * sizeof(float)) != 0)
            ranks_die(self, "%s by %s: not the bits of its plan", t->names[i],
                      t->of[i].codec);
    }
    check_bits(self, t);
}

static void check_stats(struct ranks_self *self, const struct scene *s,
                        trib_group_t *group)
{
    trib_group_stats_t stats = {.size = sizeof(stats)};
    trib_stats_t of_comm = {.size = sizeof(of_comm)};
    char text[20000];

    ranks_ok(self, trib_stats(self->comm, &of_comm));
    ranks_assert(self, !strstr(self->opts.config, "service=") || of_comm.served > 0);
    ranks_ok(self, trib_group_stats(group, &stats));
    ranks_assert(self, stats.steps == STEPS && stats.tensors == s->n);
    ranks_assert(self, stats.buckets + stats.fused >= stats.buckets);
    ranks_assert(self, (s->feed == TRIB_FEED_WHOLE || self->size == 1) ==
                           (stats.agreements == 0));
    ranks_assert(self, (stats.fused == 0) == (stats.copied_bytes == 0));
    ranks_ok(self, trib_group_explain(group, text, sizeof(text)));
    ranks_assert(self, strstr(text, "tensors in"));
}

static int whole(struct ranks_self *self)
{
    const struct scene *s = self->arg;
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_plan_t *plans[TENSORS_MOST] = {NULL};
    struct told told = {{0}, {0}};
    trib_group_t *group;
    struct tensors t;

    tensors_make(self, &t, s->n, s->seed, codecs,
                 s->coded ? sizeof(codecs) / sizeof(*codecs) : 0);
    t.op = opts.op = s->op;
    opts.feed = s->feed;
    opts.bucket_bytes = s->bucket_bytes;
    opts.alone_bytes = s->alone_bytes;
    opts.cycle_us = s->cycle_us;
    opts.done = tell;
    opts.arg = &told;
    const trib_status_t st = trib_group_create(self->comm, t.of, t.n, &opts, &group);
    if (st != TRIB_OK)
        ranks_die(self, "create: %s", trib_last_error(self->comm));
    for (size_t i = 0; i < t.n; i++)
        plans[i] = is_coded(&t, i) ? plan_of(self, &t, i) : NULL;
    for (uint64_t step = 0; step < STEPS; step++)
        one_step(self, s, &t, group, plans, s->seed * 50 + step);
    for (size_t i = 0; i < t.n; i++)
        ranks_assert(self, told.times[i] == STEPS && told.status[i] == TRIB_OK);
    check_stats(self, s, group);
    for (size_t i = 0; i < t.n; i++)
        ranks_ok(self, trib_plan_free(plans[i]));
    ranks_ok(self, trib_group_free(group));
    tensors_free(&t);
    return 0;
}

/* ---- notifications and time limits ---- */

enum { LIMIT_MS = 400, PATIENCE_MS = 60000 };

struct heard {
    _Atomic int calls, ends;
    _Atomic int status; /* of the latest end */
};

static void hear(void *arg, trib_status_t st)
{
    struct heard *h = arg;

    h->calls++;
    if (st == TRIB_INPROGRESS)
        return;
    h->status = st;
    h->ends++;
}

static bool readable(int fd, int ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ms) == 1;
}

static trib_group_t *group_of(struct ranks_self *self, struct tensors *t,
                              trib_feed_t feed, int timeout_ms)
{
    trib_group_t *group;
    trib_group_opts_t o =
        sized(trib_group_opts_t, .name = "told", .feed = feed, .bucket_bytes = 20000,
              .alone_bytes = 3000, .cycle_us = feed == TRIB_FEED_FORWARD ? 200 : 0,
              .timeout_ms = timeout_ms);

    ranks_ok(self, trib_group_create(self->comm, t->of, t->n, &o, &group));
    return group;
}

/* Each rank marks in a different order, then sleeps until the descriptor wakes it. */
static int by_fd(struct ranks_self *self)
{
    const trib_feed_t feed = *(const trib_feed_t *)self->arg;
    struct heard heard = {.calls = 0};
    struct tensors t;
    int fd, none;

    tensors_make(self, &t, 30, 11, codecs, sizeof(codecs) / sizeof(codecs[0]));
    for (size_t i = 0; i < t.n; i++)
        t.of[i].codec = "none";
    trib_group_t *group = group_of(self, &t, feed, PATIENCE_MS);
    ranks_ok(self, trib_group_fd(group, &fd));
    ranks_ok(self, trib_group_notify(group, hear, &heard));
    ranks_assert(self, !readable(fd, 0));
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < t.n; i++)
            tensors_fill(self, &t, i, (uint64_t)step, false);
        ranks_ok(self, trib_group_start(group));
        ranks_assert(self, trib_group_fd(group, &none) == TRIB_ERR_BUSY);
        for (size_t k = 0; k < t.n && feed != TRIB_FEED_WHOLE; k++)
            ranks_ok(self, trib_group_ready(group, (k * 7 + (size_t)self->rank) % t.n));
        trib_status_t st;
        while ((st = trib_group_test(group)) == TRIB_INPROGRESS)
            ranks_assert(self, readable(fd, PATIENCE_MS));
        ranks_expect(self, st, TRIB_OK, "a step");
        ranks_assert(self, readable(fd, 0)); /* until the next start */
        ranks_assert(self, heard.ends == step + 1 && heard.status == TRIB_OK);
        for (size_t i = 0; i < t.n; i++)
            tensors_check(self, &t, i, (uint64_t)step);
    }
    ranks_assert(self, heard.calls > STEPS);
    ranks_ok(self, trib_group_free(group));
    tensors_free(&t);
    return 0;
}

TEST_ON(test_by_fd, "shm", "tcp")
{
    static const trib_feed_t feeds[] = {TRIB_FEED_WHOLE, TRIB_FEED_BACKWARD,
                                        TRIB_FEED_FORWARD};

    for (size_t i = 0; i < 3; i++)
        ranks_pass(.size = 1 + (int)i, .fn = by_fd, .arg = (void *)(uintptr_t)&feeds[i],
                   .config = *state);
}

/* Rank 1 does not mark a tensor, or starts no step: all ranks get an error in time. */
static int over_limit(struct ranks_self *self)
{
    const trib_feed_t feed = *(const trib_feed_t *)self->arg;
    const bool late = self->rank == 1;
    struct heard heard = {.calls = 0};
    struct tensors t;
    trib_status_t st = TRIB_OK;

    tensors_make(self, &t, 6, 3, codecs, 1);
    ranks_assert(self, t.of[4].count > 0); /* this tensor is not marked */
    trib_group_t *group = group_of(self, &t, feed, LIMIT_MS);
    ranks_ok(self, trib_group_notify(group, hear, &heard));
    ranks_ok(self, trib_barrier(self->comm));
    const double begin = ranks_seconds();
    if (feed != TRIB_FEED_WHOLE || !late)
        st = trib_group_start(group);
    for (size_t i = 0; st == TRIB_OK && i < t.n && feed != TRIB_FEED_WHOLE; i++)
        st = late && i == 4 ? TRIB_OK : trib_group_ready(group, i);
    if (late && feed == TRIB_FEED_WHOLE)
        while ((st = trib_progress(self->comm)) == TRIB_OK)
            usleep(1000);
    else
        while (st == TRIB_OK || st == TRIB_INPROGRESS)
            st = late ? trib_group_test(group) : trib_group_wait(group);
    const double took = ranks_seconds() - begin;
    ranks_expect(self, st, TRIB_ERR_TIMEOUT, "a step that is late");
    /* The message of another rank is cut at 199 characters. An operation that was
     * started during the step has the rest of its time. */
    if (!strstr(trib_last_error(self->comm), "400 ms") &&
        !strstr(trib_last_error(self->comm), "not finish within 3"))
        ranks_die(self, "%s", trib_last_error(self->comm));
    ranks_assert(self, took > 0.3 && took < 3 * tribtest_slowness());
    ranks_assert(self, heard.ends == (late && feed == TRIB_FEED_WHOLE ? 0 : 1));
    (void)trib_group_free(group);
    tensors_free(&t);
    return 0;
}

TEST_ON(test_over_limit, "shm", "tcp")
{
    static const trib_feed_t feeds[] = {TRIB_FEED_WHOLE, TRIB_FEED_BACKWARD};

    for (size_t i = 0; i < 2; i++)
        ranks_pass(.size = 3, .fn = over_limit, .arg = (void *)(uintptr_t)&feeds[i],
                   .config = *state, .noisy = true);
}

static const struct scene scenes[] = {
    {.n = 40, .seed = 1, .feed = TRIB_FEED_BACKWARD, .bucket_bytes = 20000},
    {.n = 40, .seed = 2, .feed = TRIB_FEED_FORWARD, .alone_bytes = 3000, .coded = true},
    {.n = 40, .seed = 3, .feed = TRIB_FEED_WHOLE, .coded = true},
    {.n = 64, .seed = 4, .feed = TRIB_FEED_BACKWARD, .alone_bytes = 1},
    {.n = 40, .seed = 5, .feed = TRIB_FEED_BACKWARD, .cycle_us = 300, .coded = true},
    {.n = 40,
     .seed = 6,
     .feed = TRIB_FEED_BACKWARD,
     .op = TRIB_MAX,
     .alone_bytes = 500},
    {.n = 1, .seed = 7, .feed = TRIB_FEED_FORWARD},
};

static void run_all(const char *config, int least, int most)
{
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        ranks_pass(.size = least + (int)i % (most - least + 1), .fn = whole,
                   .arg = (void *)(uintptr_t)&scenes[i], .config = config);
}

TEST_ON(test_on, "shm", "shm+nomap", "tcp", IF_UCX("ucx"))
{
    run_all(*state, 1, 4);
}

TEST(test_tribd)
{
    static const trib_feed_t backward = TRIB_FEED_BACKWARD;
    struct daemon_process d = {.threads = 1};
    char config[80];

    daemon_need(&d);
    snprintf(config, sizeof(config), "service=127.0.0.1:%d", d.port);
    run_all(config, 2, 3);
    ranks_pass(.size = 2, .fn = by_fd, .arg = (void *)(uintptr_t)&backward,
               .config = config);
    daemon_end(&d);
}
