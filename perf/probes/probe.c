/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe - measure how close the first two cores are.
 *
 *     probe             prints "0.034 near": microseconds one way, and a word
 *
 * Two threads on two cores pass a flag in shared memory back and forth. Virtual
 * machines may or may not place their cores on a common cache, and change that at any
 * time. Latency over shared memory then changes by a factor of five: compare only equal
 * placements.
 *
 *     near   below 0.08 µs: the cores share a cache
 *     far    0.12 to 1 µs: they do not
 *     mixed  between near and far
 *     busy   above: other processes use these cores
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "perf/common/samples.h"
#include "tools/common/bind.h"
#include "tools/common/options.h"


#define REPEATS 9
#define ROUNDS 10000
#define PATIENCE_SECONDS 5.0

struct flags {
    _Alignas(128) atomic_uint there;
    _Alignas(128) atomic_uint back;
    _Alignas(128) atomic_bool given_up;
};

static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Return false if the other side did not answer for PATIENCE_SECONDS. */
static bool await(struct flags *f, atomic_uint *flag, unsigned want)
{
    double deadline = 0;
    for (unsigned spins = 1;; spins++) {
        if (atomic_load_explicit(flag, memory_order_acquire) == want)
            return true;
        pause_core();
        if (spins % 65536 != 0)
            continue;
        double now = perf_now();
        if (deadline == 0.0)
            deadline = now + PATIENCE_SECONDS;
        if (now > deadline || atomic_load(&f->given_up)) {
            atomic_store(&f->given_up, true);
            return false;
        }
    }
}

static void *echo(void *arg)
{
    struct flags *f = arg;
    (void)tool_bind_rank(TOOL_BIND_CORE, 1, 0);
    for (unsigned i = 1; i <= (REPEATS + 1) * ROUNDS; i++) {
        if (!await(f, &f->there, i))
            break;
        atomic_store_explicit(&f->back, i, memory_order_release);
    }
    return NULL;
}

static bool call(struct flags *f, double *us)
{
    unsigned at = 0;
    (void)tool_bind_rank(TOOL_BIND_CORE, 0, 0);
    for (int r = -1; r < REPEATS; r++) { /* the first is a warm-up */
        double start = perf_now();
        for (int i = 0; i < ROUNDS; i++) {
            atomic_store_explicit(&f->there, ++at, memory_order_release);
            if (!await(f, &f->back, at))
                return false;
        }
        if (r >= 0)
            us[r] = (perf_now() - start) / ROUNDS / 2 * 1e6;
    }
    return true;
}

static const char *word(double us)
{
    return us < 0.08 ? "near" : us < 0.12 ? "mixed" : us < 1 ? "far" : "busy";
}

int main(int argc, char **argv)
{
    struct flags flags = {0};
    double us[REPEATS];
    cpu_set_t set;
    pthread_t thread;
    struct perf_summary summary;
    (void)argv;
    if (argc > 1) {
        fputs("usage: probe (no arguments): prints the one-way microseconds between "
              "the first two cores, and near, mixed, far or busy\n",
              stderr);
        return 2;
    }
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < 2) {
        puts("0 single");
        return 0;
    }
    if (pthread_create(&thread, NULL, echo, &flags) != 0) {
        fputs("probe: cannot start a thread.\n", stderr);
        return 1;
    }
    bool heard = call(&flags, us);
    pthread_join(thread, NULL);
    if (!heard) {
        printf("%.0f busy\n", PATIENCE_SECONDS * 1e6);
        return 0;
    }
    perf_summarise(us, REPEATS, &summary);
    printf("%.3f %s\n", summary.p50, word(summary.p50));
    return 0;
}
