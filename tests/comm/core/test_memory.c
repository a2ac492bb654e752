/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resources of a communicator: shared memory within its bound and constant, open files
 * and resident memory that do not grow, nothing left in /dev/shm.
 */
#include <dirent.h>

#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

#define OPERATIONS 10000
#define LARGE ((size_t)8 << 20) /* bytes of a buffer with a separate segment */

static int entries(const char *folder, const char *with)
{
    DIR *dir = opendir(folder);
    int n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));)
        n += strstr(e->d_name, with) != NULL;
    if (dir)
        closedir(dir);
    return n;
}

static int open_files(void)
{
    return entries("/proc/self/fd", "");
}

/* Return resident KiB of anonymous and shared memory. */
static long resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long whole = 0, pages = 0;

    if (f) {
        if (fscanf(f, "%ld %ld", &whole, &pages) != 2)
            pages = 0;
        fclose(f);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Return KiB of segments that this process has mapped and touched, its own and those of
 * its peers. From smaps: the counters in /proc/self/status are delayed. */
static long shared_resident(void)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool ours = false;
    long sum = 0, kib;
    unsigned long from, to;

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            ours = strstr(line, "memfd:") != NULL;
        else if (ours && sscanf(line, "Rss: %ld", &kib) == 1)
            sum += kib;
    }
    if (f)
        fclose(f);
    return sum;
}

static trib_stats_t stats_of(struct ranks_self *self, trib_comm_t *comm)
{
    trib_stats_t s = {.size = sizeof(s)};

    ranks_ok(self, trib_stats(comm, &s));
    return s;
}

/* Run operations of all kinds, with all kinds of buffers. */
static void operate(struct ranks_self *self, int from, int to, float *shared)
{
    static const size_t counts[] = {1, 100, 5000, 40000};
    trib_comm_t *c = self->comm;
    float *x = malloc(40000 * sizeof(*x));

    for (int i = from; i < to; i++) {
        size_t n = counts[i % 50 == 0 ? 3 : i % 10 == 0 ? 2 : i % 2];
        memset(i % 3 ? x : shared, 0, n * sizeof(*x));
        ranks_ok(self, trib_allreduce(c, NULL, i % 3 ? x : shared, n, TRIB_F32,
                                      (trib_op_t)(i % 2)));
        if (i % 100 == 0)
            ranks_ok(self, trib_broadcast(c, x, (size_t)(i % 97), TRIB_F32,
                                          i / 100 % self->size));
    }
    free(x);
}

static int constant(struct ranks_self *self)
{
    void *shared;

    ranks_ok(self, trib_alloc(self->comm, 40000 * sizeof(float), &shared));
    operate(self, 0, 1000, shared);
    trib_stats_t first = stats_of(self, self->comm);
    int files = open_files();
    long kib = resident();
    operate(self, 1000, OPERATIONS, shared);
    trib_stats_t last = stats_of(self, self->comm);
    ranks_assert(self, last.shared_bytes == first.shared_bytes);
    ranks_assert(self, last.slot_bytes == first.slot_bytes);
    ranks_assert(self, last.operations >= OPERATIONS);
    if (open_files() != files)
        ranks_die(self, "%d open files became %d", files, open_files());
    if (resident() > kib + 2048)
        ranks_die(self, "%ld KiB became %ld", kib, resident());
    ranks_ok(self, trib_free(self->comm, shared));
    return 0;
}

TEST(test_nothing_grows)
{
    struct ranks_job job = {.size = 2, .fn = constant, .seconds = 60};

    assert_int_equal(ranks_run(&job), 0);
    job.config = "transport=shm+nomap";
    assert_int_equal(ranks_run(&job), 0);
}

/* Compare shared_bytes with the kernel's figure for this process. */
static void counted_as_the_kernel_does(struct ranks_self *self)
{
    long kib = shared_resident(), most = 64; /* KiB of other pages */
    uint64_t bytes = stats_of(self, self->comm).shared_bytes;
    void *p;

    ranks_ok(self, trib_alloc(self->comm, LARGE, &p));
    memset(p, 1, LARGE);
    long grown = shared_resident() - kib;
    long said = (long)(stats_of(self, self->comm).shared_bytes - bytes) / 1024;
    if (grown < said || grown > said + most)
        ranks_die(self, "shared_bytes grew by %ld KiB, memory by %ld", said, grown);
    ranks_ok(self, trib_free(self->comm, p));
    ranks_assert(self, stats_of(self, self->comm).shared_bytes == bytes);
    if (shared_resident() > kib + most)
        ranks_die(self, "%ld KiB became %ld", kib, shared_resident());
}

/* window * (chunk + a line) * lanes * edges, in both directions, and a page for the
 * rest. */
static int bounded(struct ranks_self *self)
{
    const size_t chunk = 16384, window = 4;
    size_t most = (window * (chunk + 64) * 2 + 8192) * (size_t)(self->size - 1);
    float x[1] = {1};
    void *p;

    trib_stats_t begin = stats_of(self, self->comm);
    ranks_ok(self, trib_allreduce(self->comm, NULL, x, 1, TRIB_F32, TRIB_SUM));
    trib_stats_t s = stats_of(self, self->comm);
    bool writes = strstr(self->opts.config, "nomap") != NULL;
    if (s.slot_bytes > (writes ? 2 : 1) * most ||
        (self->size > 1 && s.slot_bytes < window * chunk))
        ranks_die(self, "%llu bytes of slots", (unsigned long long)s.slot_bytes);
    ranks_assert(self, s.shared_bytes == s.slot_bytes);
    ranks_assert(self, begin.operations <= s.operations);
    ranks_ok(self, trib_alloc(self->comm, 100000, &p));
    trib_stats_t more = stats_of(self, self->comm);
    ranks_assert(self, more.shared_bytes >= s.shared_bytes + 100000);
    ranks_assert(self, more.shared_bytes < s.shared_bytes + 110000);
    ranks_ok(self, trib_free(self->comm, p));
    ranks_assert(self, stats_of(self, self->comm).shared_bytes == s.shared_bytes);
    counted_as_the_kernel_does(self);
    return 0;
}

TEST(test_bounded)
{
    struct ranks_job job = {.fn = bounded, .config = "chunk=16K,window=4"};

    for (job.size = 1; job.size <= 4; job.size++)
        assert_int_equal(ranks_run(&job), 0);
    job.size = 3;
    job.config = "chunk=16K,window=4,transport=shm+nomap";
    assert_int_equal(ranks_run(&job), 0);
}

/* Between buffers that all ranks can access, sums store every result in place. */
static int summed_in_place(struct ranks_self *self)
{
    const size_t n = 1 << 20;
    void *x;

    ranks_ok(self, trib_alloc(self->comm, n * sizeof(float), &x));
    memset(x, 0, n * sizeof(float));
    ranks_ok(self, trib_allreduce(self->comm, NULL, x, n, TRIB_F32, TRIB_SUM));
    uint64_t copied = stats_of(self, self->comm).copied_bytes;
    if (copied)
        ranks_die(self, "%llu bytes copied", (unsigned long long)copied);
    void *y = calloc(n, sizeof(float));
    ranks_ok(self, trib_allreduce(self->comm, NULL, y, n, TRIB_F32, TRIB_SUM));
    ranks_assert(self, stats_of(self, self->comm).copied_bytes > 0);
    free(y);
    ranks_ok(self, trib_free(self->comm, x));
    return 0;
}

TEST(test_no_needless_copies)
{
    struct ranks_job job = {.fn = summed_in_place, .config = "algorithm=direct"};

    for (job.size = 2; job.size <= 4; job.size++)
        assert_int_equal(ranks_run(&job), 0);
}

/* A size that exceeds any host is refused at once, before any allocation. */
static int more_than_all(struct ranks_self *self)
{
    void *p = self;

    if (trib_alloc(self->comm, (size_t)1 << 50, &p) != TRIB_ERR_NO_MEMORY || p)
        ranks_die(self, "not refused: %s", trib_last_error(self->comm));
    const char *said = trib_last_error(self->comm);
    if (!strstr(said, "1048576.0 GiB") || !strstr(said, "GiB of memory free"))
        ranks_die(self, "says \"%s\"", said);
    ranks_ok(self, trib_alloc(self->comm, (size_t)65 << 20, &p));
    return 0;
}

TEST(test_more_than_all)
{
    struct ranks_job job = {.size = 2, .fn = more_than_all};

    assert_int_equal(ranks_run(&job), 0);
}

/* 8 GiB are reserved for each rank and peer, but only used pages are allocated: a host
 * without 48 GiB of free memory is no reason to refuse. */
static int sums_in_large_arena(struct ranks_self *self)
{
    float x = 1;

    ranks_ok(self, trib_allreduce(self->comm, NULL, &x, 1, TRIB_F32, TRIB_SUM));
    ranks_assert(self, x == (float)self->size);
    return 0;
}

TEST(test_large_arena)
{
    struct ranks_job job = {.size = 6, .fn = sums_in_large_arena};

    job.config = "chunk=16M,window=256,transport=shm,algorithm=ring";
    assert_int_equal(ranks_run(&job), 0);
}

/* Buffers are allocated and freed, and so are the imports of them at peers. */
static int alloc_loops(struct ranks_self *self)
{
    int files = 0;
    long kib = 0;

    for (int i = 0; i < 5000; i++) {
        size_t n = i % 100 == 0 ? 300000 : i % 5 == 0 ? 9000 : 10;
        void *p;
        if (i == 500) {
            files = open_files();
            kib = resident();
        }
        ranks_ok(self, trib_alloc(self->comm, n * sizeof(float), &p));
        float *x = p;
        ranks_assert(self, (uintptr_t)p % 4096 == 0 && x[0] == 0 && x[n - 1] == 0);
        x[0] = x[n - 1] = 1;
        if (i % 5 == 0) {
            ranks_ok(self, trib_allreduce(self->comm, NULL, x, n, TRIB_F32, TRIB_SUM));
            ranks_assert(self, x[n - 1] == (float)self->size && x[1] == 0);
        }
        ranks_ok(self, trib_free(self->comm, p));
    }
    if (open_files() > files + 20)
        ranks_die(self, "%d open files became %d", files, open_files());
    if (resident() > kib + 8192)
        ranks_die(self, "%ld KiB became %ld", kib, resident());
    return 0;
}

/* A freed buffer is released, although the peers that have mapped it make no further
 * call. */
static int large_loops(struct ranks_self *self)
{
    size_t n = LARGE / sizeof(float);
    uint64_t bytes = stats_of(self, self->comm).shared_bytes;
    long kib = shared_resident();
    void *p;

    ranks_assert(self, kib > 0); /* the arena */
    for (int i = 0; i < 20; i++) {
        ranks_ok(self, trib_alloc(self->comm, LARGE, &p));
        memset(p, 0, LARGE);
        ranks_ok(self, trib_allreduce(self->comm, NULL, p, n, TRIB_F32, TRIB_SUM));
        ranks_ok(self, trib_free(self->comm, p));
        long own = (long)(stats_of(self, self->comm).shared_bytes - bytes) / 1024;
        long limit = kib + own + 2 * (long)(LARGE / 1024); /* the peer may be delayed */
        if (shared_resident() > limit)
            ranks_die(self, "loop %d: %ld KiB became %ld", i, kib, shared_resident());
    }
    ranks_ok(self, trib_barrier(self->comm));
    if (shared_resident() > kib + 4096)
        ranks_die(self, "%ld KiB became %ld", kib, shared_resident());
    return 0;
}

TEST(test_alloc_and_free)
{
    struct ranks_job job = {.size = 2, .fn = alloc_loops, .seconds = 60};

    assert_int_equal(ranks_run(&job), 0);
    job.fn = large_loops;
    assert_int_equal(ranks_run(&job), 0);
}

/* Sum up the mappings of this process, of its own memory and that of peers, each with
 * its address. */
static uint64_t mappings(int *n_out)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    uint64_t hash = 1;

    *n_out = 0;
    while (f && fgets(line, sizeof(line), f)) {
        if (!strstr(line, "memfd:"))
            continue;
        hash = oracle_mix(hash ^ oracle_hash(line, strlen(line)));
        ++*n_out;
    }
    if (f)
        fclose(f);
    return hash;
}

/* With several buffers, those of a peer are mapped at their first use and stay
 * mapped. */
static int rotates(struct ranks_self *self)
{
    enum { N = 40, COUNT = 100000 };
    void *x[N];
    int before, after;
    uint64_t first = 0;

    for (int i = 0; i < N; i++)
        ranks_ok(self, trib_alloc(self->comm, COUNT * sizeof(float), &x[i]));
    (void)mappings(&before);
    for (int turn = 0; turn < 3 * N; turn++) {
        ranks_ok(self, trib_allreduce(self->comm, NULL, x[turn % N], COUNT, TRIB_F32,
                                      TRIB_SUM));
        uint64_t now = mappings(&after);
        if (turn == N - 1)
            first = now;
        if (turn >= N && now != first)
            ranks_die(self, "turn %d: other mappings than after the first", turn);
    }
    if (after < before + N * (self->size - 1))
        ranks_die(self, "%d mappings, %d before the peers' came", after, before);
    for (int i = 0; i < N; i++)
        ranks_ok(self, trib_free(self->comm, x[i]));
    return 0;
}

TEST(test_many_buffers)
{
    struct ranks_job job = {.size = 2, .fn = rotates, .config = "algorithm=direct"};

    assert_int_equal(ranks_run(&job), 0);
}

static int register_loops(struct ranks_self *self)
{
    enum { N = 50000 };
    float *x = calloc(N, sizeof(*x));
    int files = open_files();

    for (int i = 0; i < 500; i++) {
        ranks_ok(self, trib_register(self->comm, x, N * sizeof(*x)));
        x[7] = 1;
        ranks_ok(self, trib_allreduce(self->comm, NULL, x, N, TRIB_F32, TRIB_SUM));
        ranks_assert(self, x[7] == (float)self->size);
        ranks_ok(self, trib_deregister(self->comm, x));
    }
    ranks_assert(self, open_files() <= files + 4);
    free(x);
    return 0;
}

TEST(test_register_and_deregister)
{
    struct ranks_job job = {.size = 2, .fn = register_loops};

    assert_int_equal(ranks_run(&job), 0);
}

/* Two communicators on one root, one after the other and at once. */
static int twice(struct ranks_self *self)
{
    trib_comm_t *second;
    int files = open_files();
    float x[1];

    for (int i = 0; i < 20; i++) {
        ranks_ok(self, trib_init(&self->opts, &self->comm));
        ranks_ok(self, trib_init(&self->opts, &second));
        x[0] = 1;
        ranks_ok(self, trib_allreduce(self->comm, NULL, x, 1, TRIB_F32, TRIB_SUM));
        ranks_ok(self, trib_allreduce(second, NULL, x, 1, TRIB_F32, TRIB_SUM));
        ranks_assert(self, x[0] == (float)(self->size * self->size));
        ranks_assert(self, stats_of(self, second).operations >= 1);
        ranks_ok(self, trib_free_comm(self->comm));
        ranks_ok(self, trib_barrier(second));
        ranks_ok(self, trib_free_comm(second));
    }
    if (open_files() != files)
        ranks_die(self, "%d open files became %d", files, open_files());
    return 0;
}

TEST(test_init_twice)
{
    static const char *const configs[] = {"transport=shm", "transport=loop"};
    int before = entries("/dev/shm", "trib");

    for (int i = 0; i < 2; i++) {
        struct ranks_job job = {.fn = twice, .bare = true, .config = configs[i]};
        job.threads = i == 1;
        for (job.size = 1; job.size <= 4; job.size += 3) {
            if (job.threads && job.size > 1)
                continue; /* threads share the files of their process, so counts race */
            assert_int_equal(ranks_run(&job), 0);
        }
    }
    assert_int_equal(entries("/dev/shm", "trib"), before);
}
