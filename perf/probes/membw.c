/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * membw - measure the memory bandwidth of this machine, for copies and updates.
 *
 *     membw [SIZES [CORES]]
 *
 * SIZES, such as 256K,16M: bytes that each core reads and writes. CORES: number of
 * cores that run at once; by default one, then all.
 *
 * Prints csv: bytes,cores,kernel,GBps,min_GBps,max_GBps. GB/s (1e9 bytes) count bytes
 * read and written, but not the cache lines fetched before a write. Each thread is
 * bound to a core and copies its own block.
 *
 *     libc         memcpy
 *     cached       16-byte stores
 *     streaming    16-byte non-temporal stores
 *     update       modifies one block in place, as an in-place sum does: half the
 *                  memory, and no unneeded fetches
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>

#include "perf/common/samples.h"
#include "perf/common/sizes.h"
#include "tools/common/bind.h"
#include "tools/common/options.h"
#endif


#define MAX_CORES 64
#define REPEATS 7
#define REPEAT_SECONDS 0.02
#define LINE 64

typedef void (*copy_fn)(char *to, const char *from, size_t bytes);

static void copy_libc(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
    __asm__ volatile("" ::: "memory"); /* keep a copy whose result is not read */
}

#if defined(__SSE2__)
static void copy_cached(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE) {
        const __m128i *in = (const __m128i *)(const void *)(from + i);
        __m128i *out = (__m128i *)(void *)(to + i);
        __m128i a = _mm_load_si128(in), b = _mm_load_si128(in + 1);
        __m128i c = _mm_load_si128(in + 2), d = _mm_load_si128(in + 3);
        _mm_store_si128(out, a);
        _mm_store_si128(out + 1, b);
        _mm_store_si128(out + 2, c);
        _mm_store_si128(out + 3, d);
        __asm__ volatile("" ::: "memory");
    }
}

static void copy_streaming(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE) {
        const __m128i *in = (const __m128i *)(const void *)(from + i);
        __m128i *out = (__m128i *)(void *)(to + i);
        __m128i a = _mm_load_si128(in), b = _mm_load_si128(in + 1);
        __m128i c = _mm_load_si128(in + 2), d = _mm_load_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
}

static void update(char *to, const char *from, size_t bytes)
{
    const __m128i flip = _mm_set1_epi8(1);

    (void)from;
    for (size_t i = 0; i < bytes; i += LINE) {
        __m128i *line = (__m128i *)(void *)(to + i);
        __m128i a = _mm_load_si128(line), b = _mm_load_si128(line + 1);
        __m128i c = _mm_load_si128(line + 2), d = _mm_load_si128(line + 3);
        _mm_store_si128(line, _mm_xor_si128(a, flip));
        _mm_store_si128(line + 1, _mm_xor_si128(b, flip));
        _mm_store_si128(line + 2, _mm_xor_si128(c, flip));
        _mm_store_si128(line + 3, _mm_xor_si128(d, flip));
        __asm__ volatile("" ::: "memory");
    }
}
#endif

static const struct {
    const char *name;
    copy_fn copy;
} kernels[] = {
    {"libc", copy_libc},
#if defined(__SSE2__)
    {"cached", copy_cached},
    {"streaming", copy_streaming},
    {"update", update},
#endif
};

struct team {
    pthread_barrier_t barrier;
    copy_fn copy;
    size_t bytes;
    int cores;
    long rounds; /* copies per repeat; set by core 0 between barriers */
    double *rates; /* REPEATS of them, in GB/s */
    bool out_of_memory; /* a core could not allocate its blocks */
};

struct member {
    struct team *team;
    int core;
};

/* Time of the whole team for `rounds` copies per core. */
static double team_time(struct team *team, char *to, const char *from)
{
    pthread_barrier_wait(&team->barrier);
    double start = perf_now();
    for (long i = 0; i < team->rounds; i++)
        team->copy(to, from, team->bytes);
    pthread_barrier_wait(&team->barrier);
    return perf_now() - start;
}

static void measure(const struct member *member, char *to, const char *from)
{
    struct team *team = member->team;
    double took = team_time(team, to, from);
    took = team_time(team, to, from);
    if (member->core == 0) {
        double rounds = REPEAT_SECONDS / took;
        team->rounds = rounds < 1 ? 1 : rounds > 1e7 ? 10000000 : (long)rounds;
    }
    for (int i = 0; i < REPEATS; i++) {
        took = team_time(team, to, from);
        double moved = 2.0 * (double)team->bytes * team->cores * (double)team->rounds;
        if (member->core == 0)
            team->rates[i] = moved / took * 1e-9;
    }
}

static void *work(void *arg)
{
    const struct member *member = arg;
    struct team *team = member->team;
    void *to = NULL, *from = NULL;

    (void)tool_bind_rank(TOOL_BIND_CORE, member->core, 0);
    if (posix_memalign(&to, 4096, team->bytes) != 0 ||
        posix_memalign(&from, 4096, team->bytes) != 0)
        __atomic_store_n(&team->out_of_memory, true, __ATOMIC_RELAXED);
    else {
        memset(to, 1, team->bytes);
        memset(from, 2, team->bytes);
    }
    pthread_barrier_wait(&team->barrier);
    if (!__atomic_load_n(&team->out_of_memory, __ATOMIC_RELAXED))
        measure(member, to, from);
    free(to);
    free(from);
    return NULL;
}

static bool run_team(size_t bytes, int cores, size_t kernel)
{
    double rates[REPEATS];
    pthread_t threads[MAX_CORES];
    struct member members[MAX_CORES];
    struct perf_summary summary;
    struct team team = {
        .copy = kernels[kernel].copy,
        .bytes = bytes,
        .cores = cores,
        .rounds = 1,
        .rates = rates,
    };
    pthread_barrier_init(&team.barrier, NULL, (unsigned)cores);
    for (int i = 0; i < cores; i++) {
        members[i] = (struct member){&team, i};
        if (pthread_create(&threads[i], NULL, work, &members[i]) != 0) {
            fputs("membw: cannot start a thread.\n", stderr);
            exit(1); /* the other threads wait at a barrier that never fills */
        }
    }
    for (int i = 0; i < cores; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&team.barrier);
    if (team.out_of_memory) {
        fprintf(stderr, "membw: no memory for 2 blocks of %zu bytes on %d core%s.\n",
                bytes, cores, cores == 1 ? "" : "s");
        return false;
    }
    perf_summarise(rates, REPEATS, &summary);
    printf("%zu,%d,%s,%.2f,%.2f,%.2f\n", bytes, cores, kernels[kernel].name,
           summary.p50, summary.min, summary.max);
    fflush(stdout);
    return true;
}

static int count_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < MAX_CORES ? n : MAX_CORES;
}

static bool run_size(size_t bytes, int cores)
{
    for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
        if (!run_team(bytes, cores, k))
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct perf_sizes sizes = {0};
    char why[256] = "too many arguments";
    int all = count_cores();
    int cores = argc == 3 ? atoi(argv[2]) : 0;
    const char *list = argc >= 2 ? argv[1] : "16K,256K,4M,64M";
    if (argc > 3 || !perf_sizes_parse(list, &sizes, why, sizeof(why))) {
        fprintf(stderr,
                "membw: %s\nusage: membw [SIZES [CORES]], such as membw 256K,64M\n",
                why);
        return 2;
    }
    if (argc == 3 && (cores < 1 || cores > all)) {
        fprintf(stderr, "membw: '%s': this process may use at most %d of its cores.\n",
                argv[2], all);
        perf_sizes_free(&sizes);
        return 2;
    }
    bool good = true;
    puts("bytes,cores,kernel,GBps,min_GBps,max_GBps");
    for (size_t i = 0; i < sizes.n && good; i++) {
        /* Round down to cache lines, at least one. */
        size_t bytes = sizes.bytes[i] < LINE ? LINE : sizes.bytes[i] / LINE * LINE;
        good = run_size(bytes, cores > 0 ? cores : 1);
        if (good && cores == 0 && all > 1)
            good = run_size(bytes, all);
    }
    perf_sizes_free(&sizes);
    return good ? 0 : 1;
}
