/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store_pushes - pushes to a vector in tribd and pulls of it, beside a plain
 * all-reduce of the same bytes.
 *
 *     TRIB_SERVICE=… trib-run -n 2 -- store_pushes [ROUNDS [RULE [CODEC]]]
 *
 * Each round takes by turns an all-reduce, a push by all ranks at once, and a pull by
 * all ranks at once: of all elements, of one in 100 by its index, and of all by a codec
 * (topk:ratio=0.01, or CODEC; pulls: bf16); its time is that of the slowest rank. The
 * all-reduce is by tribd, too, unless TRIB_SERVICE is full.
 *
 * Prints csv: what,bytes,seconds,min_seconds,max_seconds,each_second,gb_each_second.
 * seconds is the median of all rounds; the last two count what all ranks did together:
 * operations, and 10^9 bytes of vectors, whatever has crossed the wire.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tributary.h>

enum { ROUNDS_MOST = 1000, SIZES = 5, SPARSE = 100 };

enum way {
    ALLREDUCE,
    PUSH,
    PULL,
    PUSH_SPARSE,
    PULL_SPARSE,
    PUSH_CODED,
    PULL_CODED,
    WAYS
};

static const char *const names[WAYS] = {"allreduce",   "push",        "pull",
                                        "push_sparse", "pull_sparse", "push_coded",
                                        "pull_coded"};
static const size_t sizes[SIZES] = {2, 1024, 65536, 1 << 20, 4 << 20};

struct bench {
    trib_comm_t *comm;
    trib_store_t *store;
    trib_vector_t *vector;
    const char *codec;
    float *x;
    uint64_t *indices; /* one in SPARSE, at least one */
    size_t count, some;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(const struct bench *b, trib_status_t st, const char *what)
{
    if (st == TRIB_OK)
        return;
    fprintf(stderr, "%s: %s, %s\n", what, trib_store_error(b->store),
            trib_last_error(b->comm));
    exit(1);
}

/* Seconds of the slowest rank. */
static double take(struct bench *b, enum way way)
{
    trib_push_opts_t push = TRIB_PUSH_OPTS_INIT;
    trib_pull_opts_t pull = TRIB_PULL_OPTS_INIT;

    if (way == PUSH_SPARSE || way == PULL_SPARSE) {
        push.indices = pull.indices = b->indices;
        push.count = pull.count = b->some;
    } else if (way == PUSH_CODED || way == PULL_CODED) {
        push.codec = b->codec;
        pull.codec = "bf16";
    }
    must(b, trib_barrier(b->comm), "barrier");
    const double begin = now();
    if (way == ALLREDUCE)
        must(b, trib_allreduce(b->comm, NULL, b->x, b->count, TRIB_F32, TRIB_MAX),
             "all-reduce");
    else if (way % 2)
        must(b, trib_store_push(b->vector, b->x, &push, NULL), "push");
    else
        must(b, trib_store_pull(b->vector, b->x, &pull, NULL), "pull");
    double seconds = now() - begin;
    must(b, trib_allreduce(b->comm, NULL, &seconds, 1, TRIB_F64, TRIB_MAX), "a time");
    return seconds;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print(const struct bench *b, enum way way, double *seconds, int rounds)
{
    const double bytes = 4 * (double)b->count, ranks = trib_size(b->comm);

    qsort(seconds, (size_t)rounds, sizeof(*seconds), compare);
    const double median = seconds[rounds / 2];
    if (trib_rank(b->comm) == 0)
        printf("%s,%.0f,%.9f,%.9f,%.9f,%.1f,%.4f\n", names[way], bytes, median,
               seconds[0], seconds[rounds - 1], ranks / median,
               ranks * bytes / median / 1e9);
}

static void measure(struct bench *b, size_t count, const char *rule, int rounds)
{
    static double seconds[WAYS][ROUNDS_MOST];
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    char name[32];

    snprintf(name, sizeof(name), "v%zu", count);
    d.name = name;
    d.count = b->count = count;
    b->some = count < SPARSE ? 1 : count / SPARSE;
    for (size_t i = 0; i < b->some; i++)
        b->indices[i] = i * (count / b->some);
    d.rule = rule;
    must(b, trib_store_create(b->store, &d, &b->vector), "create");
    for (int r = -1; r < rounds; r++) /* the first one is for warmth */
        for (int way = 0; way < WAYS; way++) {
            const double s = take(b, (enum way)way);
            seconds[way][r < 0 ? 0 : r] = s;
        }
    for (int way = 0; way < WAYS; way++)
        print(b, (enum way)way, seconds[way], rounds);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 21;
    struct bench b = {.codec = argc > 3 ? argv[3] : "topk:ratio=0.01",
                      .x = calloc(sizes[SIZES - 1], sizeof(float)),
                      .indices = calloc(sizes[SIZES - 1], sizeof(uint64_t))};

    if (!b.x || !b.indices || rounds < 1 || rounds > ROUNDS_MOST) {
        fputs("usage: store_pushes [ROUNDS [RULE [CODEC]]]\n", stderr);
        return 2;
    }
    must(&b, trib_init(NULL, &b.comm), "init");
    must(&b, trib_store_open(b.comm, &b.store), "open");
    if (trib_rank(b.comm) == 0)
        puts("what,bytes,seconds,min_seconds,max_seconds,each_second,gb_each_second");
    for (int i = 0; i < SIZES; i++)
        measure(&b, sizes[i], argc > 2 ? argv[2] : NULL, rounds);
    free(b.x);
    free(b.indices);
    trib_store_free(b.store);
    return trib_free_comm(b.comm) != TRIB_OK;
}
