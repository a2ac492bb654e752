/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators created from others: colours, keys, nesting, independence.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "build-config.h"
#include "tests/harness/ranks.h"

/* Return the sum of one number over a communicator. */
static long sum(struct ranks_self *self, trib_comm_t *comm, long x)
{
    int64_t v = x;

    ranks_ok(self, trib_allreduce(comm, NULL, &v, 1, TRIB_I64, TRIB_SUM));
    return (long)v;
}

static trib_comm_t *split(struct ranks_self *self, trib_comm_t *comm, int color,
                          int key)
{
    trib_comm_t *child = NULL;

    ranks_ok(self, trib_split(comm, color, key, &child));
    ranks_assert(self, (child == NULL) == (color < 0));
    return child;
}

static int colors(struct ranks_self *self)
{
    int rank = self->rank, size = self->size;
    trib_comm_t *odd = split(self, self->comm, rank % 2, 0);
    int members = rank % 2 ? size / 2 : (size + 1) / 2;
    long expected = 0;

    for (int r = rank % 2; r < size; r += 2)
        expected += r + 1;
    ranks_assert(self, trib_size(odd) == members && trib_rank(odd) == rank / 2);
    ranks_assert(self, sum(self, odd, rank + 1) == expected);
    ranks_assert(self, sum(self, self->comm, 1) == size);
    ranks_ok(self, trib_free_comm(odd));
    ranks_assert(self, sum(self, self->comm, 1) == size);
    return 0;
}

static int keys(struct ranks_self *self)
{
    int rank = self->rank, size = self->size;
    trib_comm_t *reversed = split(self, self->comm, 7, -rank);
    trib_comm_t *same = split(self, self->comm, 0, 5);
    int64_t all[RANKS_MAX], mine = rank;

    ranks_assert(self, trib_size(reversed) == size);
    ranks_assert(self, trib_rank(reversed) == size - 1 - rank);
    ranks_assert(self, trib_rank(same) == rank);
    ranks_ok(self, trib_allgather(reversed, &mine, all, 1, TRIB_I64));
    for (int i = 0; i < size; i++)
        ranks_assert(self, all[i] == size - 1 - i);
    ranks_ok(self, trib_broadcast(reversed, &mine, 1, TRIB_I64, 0));
    ranks_assert(self, mine == size - 1);
    ranks_ok(self, trib_free_comm(same));
    ranks_ok(self, trib_free_comm(reversed));
    return 0;
}

static int some_stay_out(struct ranks_self *self)
{
    int rank = self->rank, size = self->size;
    trib_comm_t *most = split(self, self->comm, rank == size - 1 ? -1 : 1, 0);
    trib_comm_t *none = split(self, self->comm, -5, rank);

    ranks_assert(self, !none);
    if (most)
        ranks_assert(self, sum(self, most, 1) == size - 1);
    ranks_assert(self, sum(self, self->comm, rank) == (long)size * (size - 1) / 2);
    ranks_ok(self, trib_free_comm(most));
    return 0;
}

static int nested(struct ranks_self *self)
{
    trib_comm_t *chain[4] = {self->comm};
    int depth = 0;

    /* The upper half splits again and again; the lower half has left by then. */
    while (depth < 3 && trib_size(chain[depth]) > 1) {
        int rank = trib_rank(chain[depth]), size = trib_size(chain[depth]);
        trib_comm_t *half = split(self, chain[depth], rank >= size / 2, 0);
        int expected = rank >= size / 2 ? size - size / 2 : size / 2;
        ranks_assert(self, sum(self, half, 1) == expected);
        chain[++depth] = half;
    }
    for (; depth > 0; depth--) {
        ranks_ok(self, trib_free_comm(chain[depth]));
        ranks_assert(self,
                     sum(self, chain[depth - 1], 1) == trib_size(chain[depth - 1]));
    }
    return 0;
}

/* Two communicators of one process, each used by a separate thread. */
struct lane {
    struct ranks_self *self;
    trib_comm_t *comm;
    int turns;
};

static void *use(void *arg)
{
    struct lane *l = arg;
    static const size_t n = 3000;
    float *x = malloc(n * sizeof(*x));

    for (int i = 0; i < l->turns && x; i++) {
        for (size_t k = 0; k < n; k++)
            x[k] = (float)(i + trib_rank(l->comm));
        ranks_ok(l->self, trib_allreduce(l->comm, NULL, x, n, TRIB_F32, TRIB_MAX));
        ranks_assert(l->self, x[0] == (float)(i + trib_size(l->comm) - 1));
        ranks_assert(l->self, x[n - 1] == x[0]);
    }
    free(x);
    return NULL;
}

static int by_two_threads(struct ranks_self *self)
{
    struct lane a = {self, self->comm, 300};
    struct lane b = {self, split(self, self->comm, self->rank % 2, 0), 500};
    pthread_t thread;

    ranks_assert(self, pthread_create(&thread, NULL, use, &b) == 0);
    use(&a);
    pthread_join(thread, NULL);
    ranks_ok(self, trib_free_comm(b.comm));
    return 0;
}

/* The failure of one communicator does not affect the other. */
static int independent(struct ranks_self *self)
{
    trib_comm_t *child = split(self, self->comm, 0, 0);
    float x[8] = {0};
    size_t count = self->rank == 0 ? 7 : 8;

    trib_status_t st = trib_allreduce(child, NULL, x, count, TRIB_F32, TRIB_SUM);
    ranks_assert(self, st == TRIB_ERR_MISMATCH);
    ranks_assert(self, sum(self, self->comm, 1) == self->size);
    ranks_ok(self, trib_free_comm(child));
    ranks_assert(self, sum(self, self->comm, 1) == self->size);
    return 0;
}

/* A child does not need its parent after its creation. */
static int outlives_parent(struct ranks_self *self)
{
    trib_comm_t *child = split(self, self->comm, 0, 0);

    ranks_ok(self, trib_free_comm(self->comm));
    self->comm = NULL;
    ranks_assert(self, sum(self, child, 2) == 2 * self->size);
    ranks_ok(self, trib_free_comm(child));
    return 0;
}

static int many(struct ranks_self *self)
{
    for (int i = 0; i < 30; i++) {
        trib_comm_t *c = split(self, self->comm, i % 3 ? 0 : self->rank % 2, i);
        ranks_assert(self, sum(self, c, 1) == trib_size(c));
        ranks_ok(self, trib_free_comm(c));
    }
    return 0;
}

/* Split by colours, as `colors` does, but with sums in f32, which any codec
 * supports. */
static int halves(struct ranks_self *self)
{
    trib_comm_t *half = split(self, self->comm, self->rank % 2, 0);
    float x = 1;

    ranks_ok(self, trib_allreduce(half, NULL, &x, 1, TRIB_F32, TRIB_SUM));
    ranks_assert(self, x == (float)trib_size(half));
    ranks_ok(self, trib_free_comm(half));
    return 0;
}

/* One rank has no descriptor left for the memory of a child: no rank gets the child,
 * all get the error, and the parent remains usable. */
static int one_cannot(struct ranks_self *self)
{
    struct rlimit before, none;
    trib_comm_t *child = NULL;
    int culprit = self->size - 1;

    ranks_ok(self, trib_free_comm(split(self, self->comm, 0, 0))); /* connects all
                                                                    * ranks */
    ranks_assert(self, getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 0;
    if (self->rank == culprit)
        ranks_assert(self, setrlimit(RLIMIT_NOFILE, &none) == 0);
    trib_status_t st = trib_split(self->comm, 0, 0, &child);
    if (self->rank == culprit)
        ranks_assert(self, setrlimit(RLIMIT_NOFILE, &before) == 0);
    ranks_assert(self, st != TRIB_OK && child == NULL);
    char name[32];
    snprintf(name, sizeof(name), "rank %d could not join", culprit);
    const char *text = trib_last_error(self->comm);
    if ((strstr(text, name) != NULL) != (self->rank != culprit))
        ranks_die(self, "said: %s", text);
    ranks_assert(self, sum(self, self->comm, 1) == self->size);
    return 0;
}

static void run_everywhere(ranks_fn fn)
{
    static const char *const configs[] = {"transport=shm,chunk=8K",
                                          "transport=shm+nomap,chunk=8K",
                                          "transport=loop,chunk=8K"};

    for (int c = 0; c < 3; c++) {
        for (int size = 2; size <= 5; size += 3) {
            ranks_pass(.size = size, .fn = fn, .config = configs[c], .threads = c == 2);
        }
    }
}

TEST(test_colors)
{
    run_everywhere(colors);
}

TEST(test_keys)
{
    run_everywhere(keys);
}

TEST(test_some_stay_out)
{
    run_everywhere(some_stay_out);
}

TEST(test_nested)
{
    run_everywhere(nested);
}

TEST(test_two_threads)
{
    run_everywhere(by_two_threads);
}

TEST(test_independent)
{
    run_everywhere(independent);
}

TEST(test_outlives_parent)
{
    run_everywhere(outlives_parent);
}

TEST(test_one_cannot)
{
    struct ranks_job job = {.fn = one_cannot, .config = "transport=shm", .noisy = true};

    for (job.size = 2; job.size <= 4; job.size++)
        assert_int_equal(ranks_run(&job), 0);
}

/* With any configured algorithm, even one without all-gather. */
TEST(test_any_algorithm)
{
    static const char *const configs[] = {"algorithm=tree", "algorithm=flat",
                                          "algorithm=ring",
                                          "algorithm=tree,codec=bf16"};

    for (size_t i = 0; i < sizeof(configs) / sizeof(*configs); i++)
        ranks_pass(.size = 3, .fn = halves, .config = configs[i]);
}

/* A finished rank waits in another communicator for a rank that still needs its data,
 * which is more than a socket buffers: no call polls for it. */
static int done_and_elsewhere(struct ranks_self *self)
{
    enum { N = 4 << 20, ROUNDS = 3, PATIENCE_MS = 200 };
    trib_comm_t *child = split(self, self->comm, 0, 0);
    _Atomic int *done = self->arg;
    float *x = calloc(N, sizeof(*x));

    ranks_assert(self, x);
    for (int k = 1; k <= ROUNDS; k++) {
        x[N - 1] = self->rank ? 0 : (float)k;
        for (int ms = 0; self->rank && *done < k && ms < PATIENCE_MS; ms++)
            usleep(1000);
        ranks_ok(self, trib_broadcast(self->comm, x, N, TRIB_F32, 0));
        if (!self->rank)
            *done = k;
        ranks_ok(self, trib_barrier(child));
        ranks_assert(self, x[N - 1] == (float)k);
    }
    free(x);
    ranks_ok(self, trib_free_comm(child));
    return 0;
}

TEST_ON(test_done_and_elsewhere, "shm", "tcp,chunk=4M", IF_UCX("ucx,chunk=4M"),
        IF_UCX("ucx"))
{
    _Atomic int *done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(done, MAP_FAILED);
    ranks_pass(.size = 2, .fn = done_and_elsewhere, .arg = done, .config = *state);
    munmap((void *)done, sizeof(*done));
}

TEST(test_many)
{
    run_everywhere(many);
}
