/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_CHECK=sum: a byte that changes between a sender and a receiver ends the
 * operation with an error that names the rank and the chunk. Without the setting the
 * sum is wrong, and no error is reported.
 */
#include <sys/mman.h>

#include "tests/agg/client/aggregators.h"

enum { COUNT = 20000, STEPS = 8, CHUNK = 4096, LARGE = 512 };

struct scene {
    trib_coll_t coll;
    const char *algorithm;
    const char *codec;
    bool registered; /* buffers that peers read and write in place */
    bool fed;
    const char *quorum;
};

/* Counters of the ranks. */
struct seen {
    _Atomic int wrong;   /* wrong results of calls that succeeded */
    _Atomic int named;   /* failures with the message of this check */
    _Atomic int others;  /* other failures */
};

struct job {
    const struct scene *scene;
    struct seen *seen;
    struct aggregators *aggregators;
    const char *transport; /* of agg_comm */
    int damaged; /* the rank with damaged memory; -1: none, the network is damaged */
};

static const struct scene scenes[] = {
    {.coll = TRIB_ALLREDUCE, .algorithm = "direct"},
    {.coll = TRIB_ALLREDUCE, .algorithm = "direct", .registered = true},
    {.coll = TRIB_ALLREDUCE, .algorithm = "ring", .registered = true},
    {.coll = TRIB_ALLREDUCE, .algorithm = "ring", .fed = true},
    {.coll = TRIB_ALLREDUCE, .algorithm = "tree"},
    {.coll = TRIB_ALLREDUCE, .algorithm = "ring", .codec = "bf16"},
    {.coll = TRIB_ALLREDUCE, .algorithm = "direct", .codec = "qsgd:bits=8"},
    {.coll = TRIB_ALLREDUCE, .algorithm = "ring", .codec = "topk:ratio=0.5"},
    {.coll = TRIB_ALLREDUCE, .algorithm = "direct", .codec = "exact"},
    {.coll = TRIB_ALLREDUCE, .algorithm = "ring", .codec = "int8"},
    {.coll = TRIB_REDUCE, .algorithm = "auto", .registered = true},
    {.coll = TRIB_REDUCE_SCATTER, .algorithm = "auto", .registered = true},
    {.coll = TRIB_ALLGATHER, .algorithm = "auto", .registered = true},
    {.coll = TRIB_BROADCAST, .algorithm = "auto"},
};

enum { SCENES = sizeof(scenes) / sizeof(*scenes) };

static struct seen *share_memory(void)
{
    struct seen *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    return s;
}

/* Each rank contributes the same at all steps; other ranks contribute other numbers. */
static float given(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 13) % 32) - 8.0f;
}

static void note_failure(struct ranks_self *self, trib_comm_t *comm,
                         const struct job *job)
{
    const char *text = trib_last_error(comm);
    const char *const words[] = {"rank ",
                                 "damaged in transit",
                                 "CRC-32C",
                                 "TRIB_CHECK=sum",
                                 job->aggregators ? "to rank" : "layer",
                                 NULL};

    if (ranks_has(text, words) && (strstr(text, "chunk ") || strstr(text, "buffers")))
        job->seen->named++;
    else
        job->seen->others++;
    ranks_say(self, "%s", text);
}

static trib_status_t step(struct ranks_self *self, const struct scene *s,
                          trib_plan_t *plan)
{
    trib_status_t st = trib_plan_start(plan);

    (void)self;
    for (size_t i = 0; s->fed && i < COUNT && st == TRIB_OK; i += 3000)
        st = trib_plan_ready(plan, i, COUNT - i < 3000 ? COUNT - i : 3000);
    return st == TRIB_OK ? trib_plan_wait(plan) : st;
}

/* test_lossy and others test the losses of codecs; here encoded chunks must arrive
 * unchanged. */
static bool right(const struct scene *s, int ranks, int rank, const float *y)
{
    const size_t n = COUNT;

    for (size_t i = 0; i < n && !s->codec; i++) {
        float want = 0;
        for (int r = 0; r < ranks; r++)
            want += given(r, s->coll == TRIB_REDUCE_SCATTER ? (size_t)rank * n + i : i);
        if (s->coll == TRIB_BROADCAST)
            want = given(0, i);
        if (s->coll == TRIB_ALLGATHER) {
            for (int r = 0; r < ranks; r++)
                if (y[(size_t)r * n + i] < given(r, i) ||
                    y[(size_t)r * n + i] > given(r, i))
                    return false;
        } else if (y[i] < want || y[i] > want) {
            return false;
        }
    }
    return true;
}

/* Allocate x and y. */
static float *buffer(struct ranks_self *self, const struct scene *s, size_t n)
{
    void *p = NULL;

    if (s->registered)
        ranks_ok(self, trib_alloc(self->comm, n * sizeof(float), &p));
    return p ? p : calloc(n, sizeof(float));
}

static void give_back(struct ranks_self *self, const struct scene *s, float *p)
{
    if (s->registered)
        (void)trib_free(self->comm, p);
    else
        free(p);
}

/* Damaged memory: a byte changes when the first large chunk is checked, in the slots of
 * this rank or in the buffers of another one. */
static struct {
    const struct trib_engine *engine;
    const struct trib_kernels *right;
    struct trib_kernels bad;
    const uint8_t *own; /* the memory that this rank sends from: x, followed by y */
    size_t own_bytes;
    bool done;
} memory;

static bool came(const uint8_t *p)
{
    const struct trib_arena *a = &memory.engine->arena;

    if (memory.own)
        return p < memory.own || p >= memory.own + memory.own_bytes;
    return p >= a->base && p < a->base + trib_arena_bytes(a);
}

static uint32_t crc_of_bad_memory(uint32_t crc, const void *src, size_t bytes)
{
    if (bytes >= LARGE && !memory.done && came(src)) {
        memory.done = true;
        ((uint8_t *)(uintptr_t)src)[bytes / 3] ^= 4;
    }
    return memory.right->crc32c(crc, src, bytes);
}

static void spoil_memory(struct ranks_self *self)
{
    struct trib_engine *e = &self->comm->engine;

    memory.engine = e;
    memory.right = e->kernels;
    memory.bad = *e->kernels;
    memory.bad.crc32c = crc_of_bad_memory;
    memory.own = NULL;
    memory.done = false;
    e->kernels = &memory.bad;
}

static void use(struct ranks_self *self, trib_comm_t *comm, const struct job *job,
                int ranks)
{
    const struct scene *s = job->scene;
    const size_t n = COUNT * (size_t)ranks;
    float *x = buffer(self, s, 2 * n), *y = x + n;
    const bool broadcast = s->coll == TRIB_BROADCAST;
    trib_plan_t *plan;
    trib_desc_t d =
        sized(trib_desc_t, .send = broadcast ? NULL : x, .recv = y, .count = COUNT,
              .algorithm = s->algorithm, .codec = s->codec ? s->codec : "none",
              .quorum = s->quorum, .feed = s->fed ? TRIB_FEED_FORWARD : TRIB_FEED_WHOLE,
              .chunk = CHUNK, .name = "layer");

    trib_status_t st = trib_plan_create(comm, s->coll, &d, &plan); /* others may already
                                                                    * be in it */
    if (st == TRIB_ERR_CODEC || st == TRIB_ERR_INVALID || st == TRIB_ERR_UNSUPPORTED)
        ranks_die(self, "%s", trib_last_error(comm));
    if (s->registered) {
        memory.own = (const uint8_t *)x;
        memory.own_bytes = 2 * n * sizeof(*x);
    }
    for (size_t i = 0; i < n; i++)
        x[i] = given(self->rank, i);
    for (int i = 0; i < STEPS && st == TRIB_OK; i++) {
        memcpy(y, x, broadcast ? COUNT * sizeof(*y) : 0);
        st = step(self, s, plan);
        const bool mine = s->coll != TRIB_REDUCE || self->rank == 0;
        job->seen->wrong += st == TRIB_OK && mine && !right(s, ranks, self->rank, y);
    }
    if (st != TRIB_OK)
        note_failure(self, comm, job);
    (void)trib_plan_free(plan);
    give_back(self, s, x);
}

static int by_ranks(struct ranks_self *self)
{
    const struct job *job = self->arg;

    if (self->rank == job->damaged)
        spoil_memory(self);
    (void)trib_barrier(self->comm); /* all ranks have been in trib_init: a quick rank
                                     * fails soon */
    use(self, self->comm, job, self->size);
    return 0;
}

static struct seen run(const struct job *job, const char *config, int size)
{
    struct ranks_job ranks = {.size = size,
                              .fn = by_ranks,
                              .arg = (void *)(uintptr_t)job,
                              .config = config,
                              .noisy = true};
    char text[300];

    snprintf(text, sizeof(text), "%s;timeout_ms=20000", config);
    ranks.config = text;
    memset(job->seen, 0, sizeof(*job->seen));
    assert_int_equal(ranks_run(&ranks), 0);
    return *job->seen;
}

static void say(const char *what, const struct scene *s, const char *config,
                struct seen seen)
{
    print_message("%s: %s by %s, codec %s, %s: %d wrong, %d named, %d others\n", what,
                  trib_coll_name(s->coll), s->algorithm, s->codec ? s->codec : "none",
                  config, seen.wrong, seen.named, seen.others);
}

static const char *const networks[] = {"transport=tcp+corrupt:nth=3,least=512",
                                       "transport=shm+nomap+corrupt:nth=3,least=512"};

/* A wrong sum is not reported. */
TEST(test_without)
{
    struct job job = {.seen = share_memory(), .damaged = -1};

    for (int i = 0; i < SCENES; i++) {
        job.scene = &scenes[i];
        if (scenes[i].codec)
            continue;
        const struct seen seen = run(&job, networks[i % 2], 3);
        say("without", job.scene, networks[i % 2], seen);
        assert_true(seen.wrong > 0);
        assert_int_equal(seen.named + seen.others, 0);
    }
}

TEST(test_network)
{
    struct job job = {.seen = share_memory(), .damaged = -1};
    char config[200];

    for (int n = 0; n < 2; n++) {
        for (int i = 0; i < SCENES; i++) {
            job.scene = &scenes[i];
            snprintf(config, sizeof(config), "%s;check=%s", networks[n],
                     i % 3 ? "sum" : "finite,sum");
            const struct seen seen = run(&job, config, 3);
            say("with", job.scene, config, seen);
            assert_int_equal(seen.wrong, 0);
            assert_int_equal(seen.others, 0);
            assert_int_equal(seen.named, 3);
        }
    }
}

/* Within load/store reach, a receiver checks the data in shared memory. */
TEST(test_shared_memory)
{
    const struct scene of_memory[] = {
        {.coll = TRIB_ALLREDUCE, .algorithm = "flat"},
        {.coll = TRIB_ALLREDUCE, .algorithm = "flat", .registered = true},
        {.coll = TRIB_ALLREDUCE, .algorithm = "flat", .codec = "f16"},
        {.coll = TRIB_REDUCE, .algorithm = "flat", .registered = true},
        {.coll = TRIB_BROADCAST, .algorithm = "auto", .registered = true},
        {.coll = TRIB_BROADCAST, .algorithm = "auto"},
    };
    struct job job = {.seen = share_memory()};

    for (size_t i = 0; i < sizeof(of_memory) / sizeof(*of_memory); i++) {
        job.scene = &of_memory[i];
        job.damaged = job.scene->coll == TRIB_BROADCAST ? 2 : 0;
        const struct seen seen = run(&job, "transport=shm;check=sum", 3);
        say("shared memory", job.scene, "shm", seen);
        assert_int_equal(seen.wrong, 0);
        assert_int_equal(seen.others, 0);
        assert_int_equal(seen.named, 3);
    }
}

/* Nothing is damaged, and nothing is refused. */
TEST(test_whole)
{
    static const char *const configs[] = {
        "transport=shm;check=sum", "transport=tcp;check=sum",
        "transport=shm+nomap;check=norm:1e6,sum", "transport=shm;check=sum;cpu=c"};
    struct job job = {.seen = share_memory(), .damaged = -1};

    for (size_t c = 0; c < sizeof(configs) / sizeof(*configs); c++) {
        for (int i = 0; i < SCENES; i++) {
            job.scene = &scenes[i];
            const struct seen seen = run(&job, configs[c], 4);
            assert_int_equal(seen.wrong + seen.named + seen.others, 0);
        }
    }
}

/* An aggregator checks the frames of ranks, and ranks check those of the aggregator. */
static int by_aggregators(struct ranks_self *self)
{
    const struct job *job = self->arg;
    struct aggregators *s = job->aggregators;
    struct trib_comm *agg_comm;

    snprintf(self->comm->cfg.transport, sizeof(self->comm->cfg.transport), "%s",
             job->transport); /* for agg_comm */
    agg_comm = aggregators_join(self, s, self->comm);
    if (self->rank < s->ranks) {
        use(self, agg_comm, job, s->ranks);
        (void)trib_free_comm(agg_comm);
        return 0;
    }
    agg_comm->cfg.check[0] = 0; /* the announcement contains the check */
    aggregators_serve(self, s, agg_comm);
    trib_agg_comm_dispose(agg_comm);
    return 0;
}

TEST(test_aggregators)
{
    static const struct scene offloaded[] = {
        {.coll = TRIB_ALLREDUCE, .algorithm = "auto"},
        {.coll = TRIB_ALLREDUCE, .algorithm = "auto", .codec = "bf16"},
        {.coll = TRIB_ALLREDUCE, .algorithm = "auto", .codec = "exact"},
        {.coll = TRIB_ALLREDUCE, .algorithm = "auto", .codec = "qsgd:bits=8,ef=1"},
        {.coll = TRIB_ALLREDUCE, .algorithm = "auto", .codec = "topk:ratio=0.5"},
        {.coll = TRIB_ALLREDUCE,
         .algorithm = "auto",
         .codec = "topk:ratio=0.5",
         .quorum = "0.6,deadline=10s"},
        {.coll = TRIB_ALLREDUCE, .algorithm = "auto", .codec = "int8", .fed = true},
    };
    struct job job = {.seen = share_memory(), .damaged = -1};
    char config[200];

    for (size_t i = 0; i < 2 * sizeof(offloaded) / sizeof(*offloaded); i++) {
        struct aggregators s = {.ranks = 3, .n = 1};
        job.scene = &offloaded[i / 2];
        job.aggregators = &s;
        job.transport = networks[i % 2] + strlen("transport=");
        snprintf(config, sizeof(config), "transport=shm;check=sum;timeout_ms=20000");
        memset(job.seen, 0, sizeof(*job.seen));
        aggregators_run(&s, (struct ranks_job){.fn = by_aggregators,
                                               .arg = &job,
                                               .config = config,
                                               .noisy = true});
        say("aggregator", job.scene, job.transport, *job.seen);
        assert_int_equal(job.seen->wrong + job.seen->others, 0);
        assert_true(job.seen->named > 0);
    }
}
