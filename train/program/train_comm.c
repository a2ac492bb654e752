/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_comm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "train/program/progress_line.h"

/* Return true if the rank or replica of --slow-rank does not exist; rank 0 reports
 * it. */
static bool lacks_slow_rank(const struct train_args *args, trib_comm_t *comm)
{
    int n = trib_size(comm);

    if (args->ranks > n)
        n = args->ranks; /* some join later */
    if (args->replicas > n)
        n = args->replicas;
    if (args->slow_times <= 0 || args->slow_rank < n)
        return false;
    if (trib_rank(comm) == 0)
        fprintf(stderr,
                "trib-train: --slow-rank %d: there are %d ranks, numbered from 0\n",
                args->slow_rank, n);
    return true;
}

int train_leave(trib_comm_t *comm)
{
    const int rank = trib_rank(comm);

    if (trib_free_comm(comm) == TRIB_OK)
        return 0;
    fprintf(stderr, "trib-train: rank %d cannot leave: %s\n", rank,
            trib_last_error(NULL));
    return -1;
}

int train_init(const struct train_args *args, int rank, const char *root,
               trib_comm_t **comm_out)
{
    trib_opts_t opts = TRIB_OPTS_INIT;

    if (args->service)
        setenv("TRIB_SERVICE", args->service, 1);
    if (args->service_auth)
        setenv("TRIB_SERVICE_AUTH", args->service_auth, 1);
    if (root) {
        opts.rank_plus_1 = rank + 1;
        opts.ranks = args->ranks;
        opts.root = root;
    }
    if (trib_init(&opts, comm_out) != TRIB_OK) {
        fprintf(stderr, "trib-train: %s\n", trib_last_error(NULL));
        return -1;
    }
    if (!lacks_slow_rank(args, *comm_out))
        return 0;
    (void)train_leave(*comm_out);
    return -1;
}

int train_all_seeds(const struct train_job *job, trib_comm_t *comm,
                    int (*train)(const struct train_job *job, trib_comm_t *comm,
                                 uint64_t seed, struct train_result *result),
                    int (*report)(const struct train_job *job))
{
    const bool first = trib_rank(comm) == 0;
    struct train_result other; /* on ranks other than 0 */
    int bad = 0;

    for (int i = 0; i < job->seeds && !bad; i++)
        bad = train(job, comm, job->args->seed + (uint64_t)i,
                    first ? &job->results[i] : &other);
    if (!bad && first && report)
        bad = report(job);
    bad |= train_leave(comm);
    return bad != 0;
}

void train_result_fill(struct train_result *result, const struct train_counts *c,
                       size_t n, double ranks)
{
    const double dense = 4 * (double)n * c->steps;

    result->params = (double)n;
    result->ranks = ranks;
    result->steps = c->steps;
    result->rounds = c->rounds;
    result->seconds = c->seconds;
    result->hidden = 1 - c->library / c->seconds;
    result->wire_bytes = c->wire;
    if (c->wire > 0)
        result->wire_ratio = dense * 2 * (ranks - 1) / ranks / c->wire;
    /* the savings by codecs and by skipped rounds */
    if (c->round_bytes > 0)
        result->message_ratio = dense / c->round_bytes;
    if (c->input > 0)
        result->message_ratio *= c->input_dense / c->input;
}

void train_result_clear(struct train_result *result)
{
    *result = (struct train_result){.hidden = (double)NAN,
                                    .wire_bytes = (double)NAN,
                                    .message_ratio = (double)NAN,
                                    .wire_ratio = (double)NAN,
                                    .gradient_error = (double)NAN,
                                    .encoded_bytes = (double)NAN,
                                    .encoded_ratio = (double)NAN,
                                    .waited = (double)NAN};
}

uint64_t train_hash(const void *data, size_t bytes)
{
    const uint8_t *byte = data;
    uint64_t value = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < bytes; i++)
        value = (value ^ byte[i]) * UINT64_C(0x100000001b3);
    return value;
}

int train_all_good(trib_comm_t *comm, const struct trib_error *err)
{
    const char *sentence = err->status == TRIB_OK ? NULL : trib_error_text(err);
    int64_t mine = sentence ? (int64_t)(train_hash(sentence, strlen(sentence)) | 1) : 0;
    const int rank = trib_rank(comm), ranks = trib_size(comm);
    int64_t *all = calloc((size_t)ranks, sizeof(*all));
    int bad = 0, first = 1;

    if (!all || trib_allgather(comm, &mine, all, 1, TRIB_I64) != TRIB_OK) {
        fprintf(stderr, "trib-train: rank %d: %s\n", rank,
                all ? trib_last_error(comm) : "out of memory");
        free(all);
        return -1;
    }
    for (int i = 0; i < ranks; i++) {
        bad |= all[i] != 0;
        first &= i >= rank || all[i] != mine;
    }
    free(all);
    if (sentence && first)
        fprintf(stderr, "trib-train: %s\n", sentence);
    return bad ? -1 : 0;
}

double train_seconds(void)
{
    return 1e-9 * (double)progress_clock();
}

void train_sleep(double ms)
{
    const struct timespec pause = {(time_t)(ms / 1000), (long)(fmod(ms, 1000) * 1e6)};

    if (ms > 0)
        nanosleep(&pause, NULL);
}

double train_slowness(const struct train_args *args, uint64_t seed, int rank,
                      size_t step)
{
    const uint64_t key[3] = {seed, (uint64_t)rank, step};
    const double draw = (double)(train_hash(key, sizeof(key)) >> 11) * 0x1p-53;

    const double always =
        args->slow_times > 0 && rank == args->slow_rank ? args->slow_times : 1;

    return draw < args->straggle ? always * args->straggle_times : always;
}
