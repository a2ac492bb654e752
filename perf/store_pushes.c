/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store_pushes - pushes to a vector in tribd and pulls of it, beside a plain
 * all-reduce of the same bytes.
 *
 *     TRIB_SERVICE=… trib-run -n 2 -- store_pushes [ROUNDS [RULE]]
 *
 * Each round takes by turns an all-reduce, a push by all ranks at once, and a pull by
 * all ranks at once; its time is that of the slowest rank. The all-reduce is by tribd,
 * too, unless TRIB_SERVICE is full.
 *
 * Prints csv: what,bytes,seconds,min_seconds,max_seconds,each_second,gb_each_second.
 * seconds is the median of all rounds; the last two count what all ranks did together:
 * operations, and 10^9 bytes of vectors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tributary.h>

enum { ROUNDS_MOST = 1000, SIZES = 5 };

enum way { ALLREDUCE, PUSH, PULL, WAYS };

static const char *const names[WAYS] = {"allreduce", "push", "pull"};
static const size_t sizes[SIZES] = {2, 1024, 65536, 1 << 20, 4 << 20};

struct bench {
    trib_comm_t *comm;
    trib_store_t *store;
    trib_vector_t *vector;
    float *x;
    size_t count;
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
    must(b, trib_barrier(b->comm), "barrier");
    const double begin = now();
    if (way == ALLREDUCE)
        must(b, trib_allreduce(b->comm, NULL, b->x, b->count, TRIB_F32, TRIB_MAX),
             "all-reduce");
    else if (way == PUSH)
        must(b, trib_store_push(b->vector, b->x, NULL, NULL), "push");
    else
        must(b, trib_store_pull(b->vector, b->x, NULL, NULL), "pull");
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
    struct bench b = {.x = calloc(sizes[SIZES - 1], sizeof(float))};

    if (!b.x || rounds < 1 || rounds > ROUNDS_MOST) {
        fputs("usage: store_pushes [ROUNDS [RULE]]\n", stderr);
        return 2;
    }
    must(&b, trib_init(NULL, &b.comm), "init");
    must(&b, trib_store_open(b.comm, &b.store), "open");
    if (trib_rank(b.comm) == 0)
        puts("what,bytes,seconds,min_seconds,max_seconds,each_second,gb_each_second");
    for (int i = 0; i < SIZES; i++)
        measure(&b, sizes[i], argc > 2 ? argv[2] : NULL, rounds);
    free(b.x);
    trib_store_free(b.store);
    return trib_free_comm(b.comm) != TRIB_OK;
}
