/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tensor_groups - the 161 gradients of ResNet-50 in one group, beside one vector of the
 * same bytes.
 *
 *     trib-run -n 4 -- tensor_groups [ROUNDS [alloc|malloc]]
 *
 * Each round takes by turns one all-reduce of a vector, a step of a group whose tensors
 * are all ready at its start, one whose tensors are marked ready from the last to the
 * first, and the vector again: how far the two runs of the vector differ is the noise.
 * A round's time is that of the slowest rank. The tensors lie apart from each other, so
 * that those which are fused are copied.
 *
 * Prints csv: what,seconds,min_seconds,max_seconds,ratio,min_ratio,max_ratio. seconds
 * is the median of all rounds; ratio that of the quotients of each round with its first
 * run of the vector.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tributary.h>

enum { TENSORS = 161, ROUNDS_MOST = 1000, GAP = 64 };

enum way { VECTOR, WHOLE, MARKED, AGAIN, WAYS };

static const char *const names[WAYS] = {"vector", "group", "group-marked",
                                         "vector-again"};

struct model {
    trib_tensor_t tensors[TENSORS];
    char names[TENSORS][48];
    size_t n, elements;
};

static void add(struct model *m, const char *name, size_t count, int dims)
{
    trib_tensor_t *t = &m->tensors[m->n];

    *t = (trib_tensor_t)TRIB_TENSOR_INIT;
    snprintf(m->names[m->n], sizeof(m->names[m->n]), "%s", name);
    t->name = m->names[m->n++];
    t->count = count;
    t->dims = dims;
    m->elements += count;
}

/* A convolution and its batch normalisation. */
static void add_conv(struct model *m, const char *block, const char *number, size_t in,
                     size_t out, size_t kernel)
{
    char name[48];

    snprintf(name, sizeof(name), "%sconv%s.weight", block, number);
    add(m, name, in * out * kernel * kernel, 4);
    snprintf(name, sizeof(name), "%sbn%s.weight", block, number);
    add(m, name, out, 1);
    snprintf(name, sizeof(name), "%sbn%s.bias", block, number);
    add(m, name, out, 1);
}

/* He et al., 2016: four stages of 3, 4, 6 and 3 bottlenecks. */
static void resnet50(struct model *m)
{
    static const size_t blocks[] = {3, 4, 6, 3};
    size_t in = 64;

    add_conv(m, "", "1", 3, 64, 7);
    for (size_t stage = 0; stage < 4; stage++) {
        const size_t width = (size_t)64 << stage, out = 4 * width;
        for (size_t i = 0; i < blocks[stage]; i++) {
            char block[32];
            snprintf(block, sizeof(block), "layer%u.%u.", (unsigned)stage + 1,
                     (unsigned)i);
            add_conv(m, block, "1", in, width, 1);
            add_conv(m, block, "2", width, width, 3);
            add_conv(m, block, "3", width, out, 1);
            if (i == 0)
                add_conv(m, block, "_downsample", in, out, 1);
            in = out;
        }
    }
    add(m, "fc.weight", 1000 * in, 2);
    add(m, "fc.bias", 1000, 1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(trib_comm_t *comm, trib_status_t st)
{
    if (st == TRIB_OK)
        return;
    fprintf(stderr, "tensor_groups: %s\n", trib_last_error(comm));
    exit(1);
}

static void *memory(trib_comm_t *comm, size_t bytes, int plain)
{
    void *p = plain ? calloc(1, bytes) : NULL;

    if (!plain)
        must(comm, trib_alloc(comm, bytes, &p));
    if (!p)
        exit(1);
    memset(p, 0, bytes);
    return p;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

struct bench {
    trib_comm_t *comm;
    trib_plan_t *vector;
    trib_group_t *groups[WAYS];
};

static void run(const struct bench *b, enum way way)
{
    trib_group_t *g = b->groups[way];

    if (!g) {
        must(b->comm, trib_plan_start(b->vector));
        must(b->comm, trib_plan_wait(b->vector));
        return;
    }
    must(b->comm, trib_group_start(g));
    for (size_t i = TENSORS; way == MARKED && i-- > 0;)
        must(b->comm, trib_group_ready(g, i));
    must(b->comm, trib_group_wait(g));
}

/* Seconds that the slowest rank takes. */
static double time_of(const struct bench *b, enum way way)
{
    must(b->comm, trib_barrier(b->comm));
    double seconds = -now();
    run(b, way);
    seconds += now();
    must(b->comm, trib_allreduce(b->comm, NULL, &seconds, 1, TRIB_F64, TRIB_MAX));
    return seconds;
}

static void report(double seconds[WAYS][ROUNDS_MOST], size_t rounds)
{
    static double sorted[ROUNDS_MOST], ratios[ROUNDS_MOST];

    printf("what,seconds,min_seconds,max_seconds,ratio,min_ratio,max_ratio\n");
    for (int w = 0; w < WAYS; w++) {
        for (size_t r = 0; r < rounds; r++) {
            sorted[r] = seconds[w][r];
            ratios[r] = seconds[w][r] / seconds[VECTOR][r];
        }
        qsort(sorted, rounds, sizeof(*sorted), by_value);
        qsort(ratios, rounds, sizeof(*ratios), by_value);
        printf("%s,%.6f,%.6f,%.6f,%.3f,%.3f,%.3f\n", names[w], sorted[rounds / 2],
               sorted[0], sorted[rounds - 1], ratios[rounds / 2], ratios[0],
               ratios[rounds - 1]);
    }
}

static void tell(const struct bench *b)
{
    trib_group_stats_t s = {.size = sizeof(s)};

    must(b->comm, trib_group_stats(b->groups[MARKED], &s));
    printf("# %llu tensors in %llu buckets, %llu fused; %llu bytes copied and %llu "
           "agreements a step\n",
           (unsigned long long)s.tensors, (unsigned long long)s.buckets,
           (unsigned long long)s.fused, (unsigned long long)(s.copied_bytes / s.steps),
           (unsigned long long)(s.agreements / s.steps));
}

int main(int argc, char **argv)
{
    static double seconds[WAYS][ROUNDS_MOST];
    static struct model m;
    const size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 21;
    const int plain = argc > 2 && strcmp(argv[2], "malloc") == 0;
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_desc_t d = TRIB_DESC_INIT;
    struct bench b = {0};

    if (!rounds || rounds > ROUNDS_MOST)
        return fprintf(stderr, "usage: tensor_groups [ROUNDS [alloc|malloc]]\n"), 2;
    if (trib_init(NULL, &b.comm) != TRIB_OK)
        return fprintf(stderr, "tensor_groups: %s\n", trib_last_error(NULL)), 1;
    resnet50(&m);
    float *vector = memory(b.comm, m.elements * sizeof(float), plain);
    float *apart = memory(b.comm, (m.elements + TENSORS * GAP) * sizeof(float), plain);
    d.recv = vector;
    d.count = m.elements;
    must(b.comm, trib_plan_allreduce(b.comm, &d, &b.vector));
    for (size_t i = 0; i < TENSORS; apart += m.tensors[i++].count + GAP)
        m.tensors[i].recv = apart;
    must(b.comm,
         trib_group_create(b.comm, m.tensors, TENSORS, &opts, &b.groups[WHOLE]));
    opts.feed = TRIB_FEED_BACKWARD;
    must(b.comm,
         trib_group_create(b.comm, m.tensors, TENSORS, &opts, &b.groups[MARKED]));
    for (int w = 0; w < WAYS; w++)
        (void)time_of(&b, (enum way)w);
    for (size_t r = 0; r < rounds; r++)
        for (int w = 0; w < WAYS; w++)
            seconds[w][r] = time_of(&b, (enum way)w);
    if (trib_rank(b.comm) == 0) {
        report(seconds, rounds);
        tell(&b);
    }
    must(b.comm, trib_group_free(b.groups[WHOLE]));
    must(b.comm, trib_group_free(b.groups[MARKED]));
    must(b.comm, trib_plan_free(b.vector));
    return trib_free_comm(b.comm) != TRIB_OK;
}
