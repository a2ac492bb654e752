/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handed - measure the rate at which a core sums vectors that another core has written.
 *
 *     handed [BYTES [WORKERS]]      bytes of a vector [1048576], vectors per sum [2]
 *
 * This is the data path of tribd over shared memory, without tribd. Core 0 sums vectors
 * in chunks with the library's add kernel. Core 1 copies the result once per worker,
 * then rewrites the vectors. There are two sets, so that core 1 works on one while core
 * 0 sums the other: cores may share more than memory. Prints the 1e9 elements of input
 * vectors that core 0 sums per second: median of 0.5 s.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "compress/kernels/kernels.h"
#include "perf/common/samples.h"
#include "tools/common/bind.h"
#include "tools/common/options.h"

enum { CHUNK_BYTES = 65536, SETS = 2, SAMPLES_MOST = 100000 };
#define SECONDS 0.5

struct set {
    char *in[TRIB_REDUCE_MAX_SRC], *out[TRIB_REDUCE_MAX_SRC];
    char *sum;
    _Alignas(128) atomic_uint summed; /* sums by core 0 so far */
    _Alignas(128) atomic_uint written; /* sets written by core 1 so far */
};

struct handed {
    const struct trib_kernels *kernels;
    size_t bytes;
    int workers;
    struct set sets[SETS];
    _Alignas(128) atomic_bool over;
};

static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void fetch_and_write(const struct handed *h, struct set *s, unsigned turn)
{
    for (int w = 0; w < h->workers; w++)
        memcpy(s->out[w], s->sum, h->bytes);
    for (int w = 0; w < h->workers; w++)
        memset(s->in[w], (int)(turn % 64), h->bytes);
}

static void *work(void *arg)
{
    struct handed *h = arg;

    (void)tool_bind_rank(TOOL_BIND_CORE, 1, 0);
    for (unsigned turn = 0;; turn++) {
        struct set *s = &h->sets[turn % SETS];
        while (atomic_load_explicit(&s->summed, memory_order_acquire) < turn / SETS) {
            if (atomic_load_explicit(&h->over, memory_order_relaxed))
                return NULL;
            pause_core();
        }
        fetch_and_write(h, s, turn);
        atomic_store_explicit(&s->written, turn / SETS + 1, memory_order_release);
    }
}

static void sum_chunk(const struct handed *h, const struct set *s, size_t first)
{
    struct trib_reduce_args r = {.dst = {s->sum + first},
                                 .n_src = h->workers,
                                 .n_dst = 1,
                                 .n = CHUNK_BYTES / sizeof(float),
                                 .stream = true};

    for (int w = 0; w < h->workers; w++)
        r.src[w] = s->in[w] + first;
    h->kernels->reduce[TRIB_F32][TRIB_SUM](&r);
}

/* Sum a set; return the seconds. */
static double sum_set(struct handed *h, unsigned turn)
{
    struct set *s = &h->sets[turn % SETS];

    while (atomic_load_explicit(&s->written, memory_order_acquire) < turn / SETS + 1)
        pause_core();
    const double begin = perf_now();
    for (size_t first = 0; first < h->bytes; first += CHUNK_BYTES)
        sum_chunk(h, s, first);
    const double seconds = perf_now() - begin;
    atomic_store_explicit(&s->summed, turn / SETS + 1, memory_order_release);
    return seconds;
}

static double measure(struct handed *h)
{
    double *seconds = malloc(SAMPLES_MOST * sizeof(*seconds));
    struct perf_summary summary;
    unsigned n = 0;

    if (seconds == NULL)
        return 0;
    for (double end = perf_now() + SECONDS;
         n < SAMPLES_MOST && (n < 3 || perf_now() < end); n++)
        seconds[n] = sum_set(h, n);
    perf_summarise(seconds, n, &summary);
    free(seconds);
    return 1e-9 * (double)(h->bytes / sizeof(float)) * h->workers / summary.p50;
}

static char *block(size_t bytes)
{
    void *p;

    if (posix_memalign(&p, 4096, bytes) != 0)
        return NULL;
    memset(p, 0, bytes);
    return p;
}

static bool open_set(const struct handed *h, struct set *s)
{
    bool ok = (s->sum = block(h->bytes)) != NULL;

    for (int w = 0; ok && w < h->workers; w++) {
        s->in[w] = block(h->bytes);
        s->out[w] = block(h->bytes);
        ok = s->in[w] != NULL && s->out[w] != NULL;
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct handed h = {
        .kernels = trib_kernels_get(NULL), .bytes = 1 << 20, .workers = 2};
    pthread_t thread;

    if (argc > 1)
        h.bytes = strtoul(argv[1], NULL, 10) / CHUNK_BYTES * CHUNK_BYTES;
    if (argc > 2)
        h.workers = atoi(argv[2]);
    if (argc > 3 || h.bytes == 0 || h.workers < 1 || h.workers > TRIB_REDUCE_MAX_SRC) {
        fprintf(stderr,
                "usage: handed [BYTES [WORKERS]]: at least %d bytes, 1 to %d workers\n",
                CHUNK_BYTES, TRIB_REDUCE_MAX_SRC);
        return 2;
    }
    if (!open_set(&h, &h.sets[0]) || !open_set(&h, &h.sets[1]) ||
        pthread_create(&thread, NULL, work, &h) != 0) {
        fputs("handed: no memory, or cannot start a thread\n", stderr);
        return 1;
    }
    (void)tool_bind_rank(TOOL_BIND_CORE, 0, 0);
    printf("%.3f\n", measure(&h));
    atomic_store(&h.over, true);
    pthread_join(thread, NULL);
    return 0;
}
