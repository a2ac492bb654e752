/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: sums vectors one after the other, and records how long each sum took.
 *
 * Worker 0 of a job decides which operation of a round is the last, before it begins
 * that operation. The others check after they end an operation, which they cannot do
 * before worker 0 has begun it.
 */
#include "perf/agg/agg.h"
#include "perf/coll/arguments.h"
#include "perf/coll/operation.h"
#include "perf/coll/perf_oracle.h"
#include "perf/common/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct load {
    const struct agg_workers *workers;
    const struct agg_args *args;
    int job, rank;
    struct agg_worker *notes;
    trib_comm_t *comm;
    struct perf_operation op;
    double check_cpu_s; /* processor time of checks in this round, to subtract */
};

/* --- log --- */

/* Keep the first message about the service. Other threads call this, too. */
static void hear(void *arg, trib_log_level_t level, const char *line)
{
    struct agg_worker *w = arg;
    const char *service = strstr(line, ": service: ");
    int none = 0;

    if (service == NULL || level > TRIB_LOG_WARN) {
        fprintf(stderr, "%s\n", line);
        return;
    }
    if (!atomic_compare_exchange_strong(&w->words, &none, 1))
        return;
    snprintf(w->lost, sizeof(w->lost), "%s", service + strlen(": service: "));
    atomic_store(&w->words, 2);
}

static void set_environment(const struct load *l)
{
    const struct agg_args *args = l->args;
    const struct tool_tribd *own = l->workers->daemon;
    char text[80];

    snprintf(text, sizeof(text), "%s.%d", args->prefix, l->job);
    setenv("TRIB_SERVICE_JOB", text, 1);
    setenv("TRIB_SERVICE", own != NULL ? own->address : args->service, 1);
    if (args->n_weights > 0) {
        snprintf(text, sizeof(text), "%d", agg_weight_of(args, l->job));
        setenv("TRIB_SERVICE_WEIGHT", text, 1);
    }
    if (own == NULL)
        return;
    setenv("TRIB_SERVICE_AUTH", "key", 1);
    setenv("TRIB_SERVICE_KEY", own->key, 1);
}

/* --- checks --- */

static double thread_cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Change the input, or a result of the previous operation would pass the check. */
static void new_input(struct load *l)
{
    double before = thread_cpu();

    l->op.oracle.seed += (uint64_t)1 << 32;
    perf_operation_fill(&l->op);
    l->check_cpu_s += thread_cpu() - before;
}

/* Compare the hashes of all ranks for the previous operation, as this rank may be ahead
 * of worker 0 in the current one. */
static uint64_t differs(const struct load *l, uint64_t i)
{
    const struct agg_worker *first = agg_worker_at(l->workers, l->job, 0);

    return i > 0 &&
           l->notes->hash[(i - 1) % AGG_HASHES] != first->hash[(i - 1) % AGG_HASHES];
}

static void judge(struct load *l, uint64_t i)
{
    struct agg_worker *w = l->notes;
    struct perf_verdict verdict;
    double before = thread_cpu();

    perf_oracle_compare(&l->op.oracle, l->op.output, &verdict);
    w->hash[i % AGG_HASHES] = verdict.hash;
    uint64_t wrong = verdict.wrong + perf_operation_guards(&l->op) + differs(l, i);
    if (wrong > 0 && w->wrong == 0)
        w->first_wrong = i;
    w->wrong += wrong;
    if (verdict.error2 > 0)
        w->nmse = fmax(w->nmse, verdict.error2 / verdict.reference2);
    perf_operation_judge_later(&l->op);
    l->check_cpu_s += thread_cpu() - before;
}

/* --- rounds --- */

static void keep_sample(struct agg_worker *w, uint64_t i, double seconds)
{
    w->longest_s = fmax(w->longest_s, seconds);
    if (i % w->stride != 0)
        return;
    if (w->n_samples == AGG_SAMPLES) {
        for (uint32_t k = 0; k < AGG_SAMPLES / 2; k++)
            w->seconds[k] = w->seconds[2 * k];
        w->n_samples = AGG_SAMPLES / 2;
        w->stride *= 2;
        if (i % w->stride != 0)
            return;
    }
    w->seconds[w->n_samples++] = (float)seconds;
}

static bool is_last(const struct load *l, uint64_t i)
{
    if (l->args->each.iters > 0)
        return i + 1 == (uint64_t)l->args->each.iters;
    return perf_now() - l->workers->shared->begin >= l->args->seconds;
}

static trib_status_t run_one(struct load *l, uint64_t i)
{
    struct agg_worker *w = l->notes;

    if (l->args->each.check)
        new_input(l);
    else if (l->args->each.rewrite)
        perf_operation_rewrite(&l->op);
    double before = perf_now();
    trib_status_t status = l->op.run(&l->op);
    double now = perf_now();
    atomic_fetch_add(&w->beats, 1);
    if (status != TRIB_OK)
        return status;
    keep_sample(w, i, now - before);
    w->elapsed_s = now - l->workers->shared->begin;
    w->operations++;
    if (l->args->each.check)
        judge(l, i);
    return TRIB_OK;
}

static trib_status_t run_all(struct load *l)
{
    _Atomic uint64_t *last = &l->workers->shared->last[l->job];
    trib_status_t status = TRIB_OK;

    for (uint64_t i = 0; status == TRIB_OK; i++) {
        if (l->rank == 0 && is_last(l, i))
            atomic_store(last, i);
        status = run_one(l, i);
        if (atomic_load(last) == i)
            break;
    }
    return status;
}

static trib_status_t served(const struct load *l, uint64_t *out)
{
    trib_stats_t stats = {.size = sizeof(stats)};
    trib_status_t status = trib_stats(l->comm, &stats);

    *out = stats.served;
    return status;
}

/* Reset the counters; the parent has read the previous round's. */
static void clear_notes(struct agg_worker *w, int round)
{
    w->round = round;
    w->operations = w->fell_back = 0;
    w->elapsed_s = w->cpu_s = w->longest_s = w->nmse = 0;
    w->wrong = w->first_wrong = 0;
    w->stride = 1;
    w->n_samples = 0;
    memset(w->hash, 0, sizeof(w->hash));
}

static void await_round(struct load *l, int round)
{
    const struct timespec pause = {.tv_nsec = 3000000};

    atomic_store(&l->notes->ready, round);
    while (atomic_load(&l->workers->shared->round) < round) {
        atomic_fetch_add(&l->notes->beats, 1);
        nanosleep(&pause, NULL);
    }
    clear_notes(l->notes, round);
}

static trib_status_t run_round(struct load *l, int round)
{
    struct agg_worker *w = l->notes;
    uint64_t before, after;
    trib_status_t status = TRIB_OK;
    /* With error feedback, the first operation has the tightest bound: do not warm
     * up. */
    bool warm = !(l->args->each.check && l->op.oracle.loss.feedback);

    perf_operation_fill(&l->op);
    for (long i = 0; warm && i < l->args->each.warmup && status == TRIB_OK; i++)
        status = l->op.run(&l->op);
    if (status == TRIB_OK && l->args->each.rewrite)
        status = perf_operation_keep(&l->op);
    if (status == TRIB_OK)
        status = served(l, &before);
    if (status != TRIB_OK)
        return status;
    await_round(l, round);
    double cpu = perf_cpu_seconds();
    l->check_cpu_s = 0;
    status = run_all(l);
    w->cpu_s = perf_cpu_seconds() - cpu - l->check_cpu_s;
    if (served(l, &after) == TRIB_OK && w->operations > after - before)
        w->fell_back = w->operations - (after - before);
    if (status == TRIB_OK)
        atomic_store(&w->done, round);
    return status;
}

static trib_status_t run_rounds(struct load *l)
{
    struct perf_args mine = l->args->each;
    trib_status_t status = TRIB_OK;

    mine.ranks = l->args->workers;
    mine.codec = agg_codec_of(l->args, l->job);
    for (size_t i = 0; i < mine.sizes.n && status == TRIB_OK; i++) {
        status = perf_operation_open(l->comm, &mine, mine.sizes.bytes[i], &l->op);
        if (status != TRIB_OK)
            break;
        status = run_round(l, (int)i + 1);
        perf_operation_close(&l->op);
    }
    return status;
}

int agg_worker_run(const struct agg_workers *workers, int job, int rank,
                   const char *root)
{
    struct load l = {.workers = workers,
                     .args = workers->args,
                     .job = job,
                     .rank = rank,
                     .notes = agg_worker_at(workers, job, rank)};
    trib_opts_t opts = TRIB_OPTS_INIT;

    opts.rank_plus_1 = rank + 1;
    opts.ranks = workers->args->workers;
    opts.root = root;
    opts.log = hear;
    opts.log_arg = l.notes;
    set_environment(&l);
    if (workers->args->each.bind == TOOL_BIND_CORE)
        (void)tool_bind_rank(TOOL_BIND_CORE, rank, 0);
    trib_status_t status = trib_init(&opts, &l.comm);
    if (status == TRIB_OK)
        status = run_rounds(&l);
    if (status != TRIB_OK)
        snprintf(l.notes->why, sizeof(l.notes->why), "%s", trib_last_error(l.comm));
    trib_status_t freed = trib_free_comm(l.comm);
    if (status == TRIB_OK && freed != TRIB_OK)
        snprintf(l.notes->why, sizeof(l.notes->why), "%s", trib_last_error(NULL));
    return status != TRIB_OK || freed != TRIB_OK;
}
