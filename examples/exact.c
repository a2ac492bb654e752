/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums whose bits do not depend on the order of addition.
 *
 *     trib-run -n 4 -- exact [--shift N] [--elements N] [--codec TEXT]
 *
 * Ranks N, N + 1 and N + 2 contribute vectors of very different numbers; all other
 * ranks contribute zeros. Rank 0 prints a hash of the sum, and the time of one sum.
 * With codec "exact" the hash is the same for any algorithm, number of ranks,
 * aggregators and N; with "none" it is not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tributary.h>

enum { VECTORS = 3, TIMED = 20 };

static float number(int vector, size_t i)
{
    uint64_t h = (i * VECTORS + (uint64_t)vector + 1) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 32;
    const uint32_t exponent = 127 - 30 + (uint32_t)(h >> 32) % 60;
    const uint32_t bits = (uint32_t)(h & 0x807fffff) | exponent << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t hash_of(const float *x, size_t n)
{
    uint32_t h = 2166136261u;
    const unsigned char *bytes = (const unsigned char *)x;
    for (size_t i = 0; i < n * sizeof *x; i++)
        h = (h ^ bytes[i]) * 16777619u;
    return h;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct options {
    const char *codec;
    size_t elements;
    int shift;
};

static struct options read_options(int argc, char **argv)
{
    struct options o = {"exact", 100000, 0};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--codec") == 0)
            o.codec = argv[i + 1];
        else if (strcmp(argv[i], "--elements") == 0)
            o.elements = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--shift") == 0)
            o.shift = atoi(argv[i + 1]);
    }
    return o;
}

static trib_status_t sum(trib_comm_t *comm, const struct options *o, const float *x,
                         float *y)
{
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;
    d.send = x;
    d.recv = y;
    d.count = o->elements;
    d.codec = o->codec;
    trib_status_t st = trib_plan_allreduce(comm, &d, &plan);
    double begin = 0;
    if (st != TRIB_OK)
        return st;
    for (int i = 0; i <= TIMED && st == TRIB_OK; i++) {
        begin = i == 1 ? seconds() : begin;
        st = trib_plan_start(plan);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
    }
    const double each = (seconds() - begin) / TIMED;
    if (st == TRIB_OK && trib_rank(comm) == 0)
        printf("%s: sum %08x of %zu elements of %d ranks, %.0f us per sum\n", o->codec,
               hash_of(y, o->elements), o->elements, trib_size(comm), each * 1e6);
    trib_plan_free(plan);
    return st;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv);
    trib_comm_t *comm;
    if (trib_init(NULL, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return 1;
    }
    const int size = trib_size(comm),
              vector = (trib_rank(comm) + size - o.shift % size) % size;
    float *x = calloc(o.elements + 1, sizeof *x),
          *y = calloc(o.elements + 1, sizeof *y);
    for (size_t i = 0; x && vector < VECTORS && i < o.elements; i++)
        x[i] = number(vector, i);
    trib_status_t st = x && y ? sum(comm, &o, x, y) : TRIB_ERR_NO_MEMORY;
    if (st != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    free(x);
    free(y);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
