/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How all peers are timed, which equals trib-perf --sync --sample TIME --iters N.
 *
 * Sums of float32. First every size is checked against the known sum. After a warm-up
 * and a barrier, a batch of as many calls as fit `seconds` (at least one) is timed. A
 * sample is the slowest rank's time of the batch, divided by its calls. Vectors are
 * zero while timed. With -w (trib-perf --rewrite) a sample is one call, and each rank
 * writes its input before it.
 *
 * Rank 0 prints a csv line per size: label,ranks,bytes,samples,batch,p50,min,max
 * (microseconds).
 */
#ifndef PEERS_TIMING_H
#define PEERS_TIMING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PEER_MAX_SAMPLES 1001

/* The operations of a peer. `most` returns the maximum over all ranks, on all ranks. */
struct peer {
    int rank;
    int ranks;
    void *state;
    /* send == NULL: in place */
    void (*allreduce)(void *state, const float *send, float *recv, size_t count);
    void (*barrier)(void *state);
    double (*most)(void *state, double value);
    /* Return element i of this rank's result, of `count`; NULL: the sum over all
     * ranks. */
    int (*want)(const struct peer *p, size_t i, size_t count);
};

#define PEER_ANY (-1) /* element i is not defined on this rank */

struct peer_args {
    const char *label;
    const char *sizes; /* bytes, comma-separated */
    const char *extra; /* option -x, specific to the peer */
    int samples;
    double seconds;
    int out_of_place;
    int rewrite;
};

static const char peer_usage[] =
    "[-l LABEL] [-s BYTES,…] [-n SAMPLES] [-t SECONDS] [-o (out of place)] "
    "[-w (rewrite)] [-x OPTION]";

/* Return 0, or 2 after a message. */
static inline int peer_args_parse(int argc, char **argv, struct peer_args *args)
{
    int option;
    args->label = "peer";
    args->sizes = "8,64,512,4096,32768,262144,1048576,2097152,16777216,67108864";
    args->extra = "";
    args->samples = 7;
    args->seconds = 0.05;
    args->out_of_place = 0;
    args->rewrite = 0;
    while ((option = getopt(argc, argv, "l:s:n:t:owx:")) != -1) {
        switch (option) {
        case 'l':
            args->label = optarg;
            break;
        case 's':
            args->sizes = optarg;
            break;
        case 'n':
            args->samples = atoi(optarg);
            break;
        case 't':
            args->seconds = atof(optarg);
            break;
        case 'o':
            args->out_of_place = 1;
            break;
        case 'w':
            args->rewrite = 1;
            break;
        case 'x':
            args->extra = optarg;
            break;
        default:
            fprintf(stderr, "usage: %s %s\n", argv[0], peer_usage);
            return 2;
        }
    }
    if (args->samples < 1 || args->samples > PEER_MAX_SAMPLES) {
        fprintf(stderr, "%s: -n: 1 to %d samples\n", argv[0], PEER_MAX_SAMPLES);
        return 2;
    }
    return 0;
}

static inline double peer_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int peer_by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Buffers of one size. */
struct peer_run {
    const struct peer *peer;
    const float *send;
    float *recv;
    size_t count;
    float *input; /* buffer to write before each sample, send or recv; else NULL */
};

/* Return the seconds of one call: the mean over the batch, on the slowest rank. */
static inline double peer_sample(const struct peer_run *run, long batch)
{
    const struct peer *p = run->peer;
    if (run->input != NULL)
        memset(run->input, 0, run->count * sizeof(float));
    p->barrier(p->state);
    double start = peer_now();
    for (long i = 0; i < batch; i++)
        p->allreduce(p->state, run->send, run->recv, run->count);
    return p->most(p->state, peer_now() - start) / (double)batch;
}

static inline int peer_check(const struct peer_run *run, float *input)
{
    const struct peer *p = run->peer;
    for (size_t i = 0; i < run->count; i++)
        input[i] = (float)(p->rank + 1 + (int)(i % 7));
    p->allreduce(p->state, run->send, run->recv, run->count);
    for (size_t i = 0; i < run->count; i++) {
        int want = p->want ? p->want(p, i, run->count)
                           : p->ranks * (p->ranks + 1) / 2 + p->ranks * (int)(i % 7);
        if (want != PEER_ANY && run->recv[i] != (float)want) {
            fprintf(stderr, "rank %d: element %zu of %zu is %g, not %d\n", p->rank, i,
                    run->count, (double)run->recv[i], want);
            return 1;
        }
    }
    return 0;
}

static inline void peer_time(const struct peer_run *run, const struct peer_args *args)
{
    double us[PEER_MAX_SAMPLES];
    int few = run->count > 262144;
    for (int i = 0; i < (few ? 2 : 20); i++)
        run->peer->allreduce(run->peer->state, run->send, run->recv, run->count);
    double once = peer_sample(run, few ? 1 : 10);
    double fit = args->seconds / (once > 0 ? once : 1e-9);
    long batch = fit < 1 || args->rewrite ? 1 : fit > 1e6 ? 1000000 : (long)fit;
    for (int i = 0; i < args->samples; i++)
        us[i] = 1e6 * peer_sample(run, batch);
    if (run->peer->rank != 0)
        return;
    qsort(us, (size_t)args->samples, sizeof(us[0]), peer_by_value);
    printf("%s,%d,%zu,%d,%ld,%.4f,%.4f,%.4f\n", args->label, run->peer->ranks,
           run->count * sizeof(float), args->samples, batch,
           us[(args->samples - 1) / 2], us[0], us[args->samples - 1]);
    fflush(stdout);
}

static inline int peer_size(const struct peer *peer, const struct peer_args *args,
                            size_t bytes)
{
    void *send = NULL, *recv = NULL;
    int wrong = 1;
    if (posix_memalign(&recv, 4096, bytes) == 0 &&
        posix_memalign(&send, 4096, bytes) == 0) {
        struct peer_run run;
        float *input = (float *)(args->out_of_place ? send : recv);
        run.peer = peer;
        run.send = args->out_of_place ? (const float *)send : NULL;
        run.recv = (float *)recv;
        run.count = bytes / sizeof(float);
        run.input = args->rewrite ? input : NULL;
        wrong = peer_check(&run, input);
        memset(send, 0, bytes);
        memset(recv, 0, bytes); /* sums of zeros stay finite */
        if (!wrong)
            peer_time(&run, args);
    } else {
        fprintf(stderr, "rank %d: no memory for %zu bytes\n", peer->rank, bytes);
    }
    free(send);
    free(recv);
    return wrong;
}

/* Time all sizes. Return 0, or 1 if a sum was wrong. */
static inline int peer_sweep(const struct peer *peer, const struct peer_args *args)
{
    const char *at = args->sizes;
    while (*at != '\0') {
        char *end;
        size_t bytes = strtoull(at, &end, 10);
        if (end == at || bytes < sizeof(float)) {
            fprintf(stderr, "-s %s: bytes, with commas between\n", args->sizes);
            return 2;
        }
        if (peer_size(peer, args, bytes) != 0)
            return 1;
        at = *end == ',' ? end + 1 : end;
    }
    return 0;
}

#endif
