/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The user's part of coded computing is in fit(). The rest provides samples and delays,
 * and compares the decoded gradients with plain ones.
 */
#include "train/program/train_coded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tributary/coded.h>

#include "train/program/progress_line.h"
#include "train/program/train_comm.h"
#include "train/program/train_table.h"
#include "train/tasks/linear.h"

enum { STEPS = 100 };

/* The weights at some steps, and the gradients decoded there. */
struct kept {
    struct train_point points[TRAIN_POINTS_MAX];
    bool decoded[TRAIN_POINTS_MAX]; /* gradients has this point */
    float *weights, *gradients; /* [TRAIN_POINTS_MAX * n_params] */
    int n;
    size_t next;
};

struct coded {
    const struct train_job *job;
    const struct train_args *args;
    trib_comm_t *comm;
    int rank, ranks; /* initial ranks */
    bool newcomer;
    uint64_t seed;
    struct task *task;
    size_t n, rows, steps; /* parameters; samples per partition */
    int partitions;
    double rate;
    float *features, *labels, *weights;
    struct kept kept;
    double begun, paused; /* seconds: the first step, and pauses outside of steps */
    trib_listener_t *listener;
    trib_coded_stats_t stats;
    struct train_result *result;
    struct progress_line line;
};

/* --- options --- */

/* Return true if the code mixes gradients of plain partitions. */
static bool mixes(const char *code)
{
    return strncmp(code, "gradient", 8) == 0 || strncmp(code, "none", 4) == 0;
}

/* Return an even number for codes of sums, whose rows contain half of the
 * partitions. */
static int default_partitions(const char *code, int ranks)
{
    return mixes(code) || ranks < 3 ? ranks : (ranks * 3 / 4 & ~1);
}

/* Return the rate; 0: not a positive number. */
static double rate_of(const struct train_job *job)
{
    const char *text = job->args->rate ? job->args->rate : job->task->rate;
    char *end;
    const double rate = strtod(text, &end);

    return *end == '\0' && rate > 0 && isfinite(rate) ? rate : 0;
}

bool train_coded_built(void)
{
    return true;
}

int train_coded_check(const struct train_job *job)
{
    const struct train_args *a = job->args;
    const char *wrong = NULL;

    if (!linear_is(job->task))
        wrong = "--code is for gradients of linear models: logreg and svm";
    else if (rate_of(job) <= 0)
        wrong = "--rate must be a number with --code, such as 0.02";
    else if ((a->straggle > 0 || a->slow_times > 0) && a->compute_ms <= 0)
        wrong = "--straggle and --slow-rank with --code need --compute-ms, whose time "
                "they multiply";
    else if (a->slow_times > 0 && a->slow_rank == 0)
        wrong = "--slow-rank 0: with --code, rank 0 only waits for the others and "
                "cannot be slowed";
    else if (a->join && (a->ranks < 2 || a->n_links))
        wrong = "--join needs --ranks of at least 2, the last of which starts later, "
                "and no --link";
    else if ((a->join || a->leave) && job->seeds > 1)
        wrong = "--leave and --join work with a single seed only";
    else if (a->join && a->leave && a->leave_rank == 0)
        wrong =
            "--leave 0: with --join a rank joins at rank 0, so another rank must leave";
    if (wrong)
        fprintf(stderr, "trib-train: %s\n", wrong);
    return wrong ? 2 : -1;
}

/* --- the run --- */

static void keep(struct coded *c, const trib_coded_step_t *s, double now)
{
    struct kept *k = &c->kept;
    const size_t bytes = c->n * sizeof(float);

    if (k->n && s->gradient &&
        k->points[k->n - 1].step + 1 == (double)s->step) { /* of the previous step */
        memcpy(k->gradients + (size_t)(k->n - 1) * c->n, s->gradient, bytes);
        k->decoded[k->n - 1] = true;
    }
    if (s->step < k->next || k->n == TRAIN_POINTS_MAX)
        return;
    k->next = s->step + s->step / 2 + 1;
    k->points[k->n] = (struct train_point){.step = (double)s->step,
                                           .wire_bytes = (double)NAN,
                                           .seconds = now,
                                           .loss = s->loss};
    memcpy(k->weights + (size_t)k->n * c->n, s->weights, bytes);
    k->n++;
}

/* Publish the listener's address and wait for the newcomer, so that no step waits for
 * its process to start. */
static void let_in(struct coded *c)
{
    const double begin = train_seconds();

    memcpy(c->job->rendezvous->text, trib_listener_text(c->listener),
           TRIB_ROOT_TEXT_MAX);
    atomic_store(&c->job->rendezvous->open, 1);
    while (!trib_listener_waiting(c->listener) && train_seconds() - begin < 30)
        train_sleep(0.5);
    c->paused += train_seconds() - begin;
}

static void before_step(void *arg, const trib_coded_step_t *s)
{
    struct coded *c = arg;

    if (c->begun <= 0 || s->step == c->job->timed_from) {
        c->begun = train_seconds();
        c->paused = 0;
    }
    if (c->args->leave && c->rank == c->args->leave_rank &&
        s->step >= c->args->leave_step)
        _exit(0); /* exit without notice, as if killed */
    if (c->listener && s->step + 1 == c->args->join)
        let_in(c);
    if (trib_rank(c->comm) != 0)
        return;

    const double now = train_seconds() - c->begun - c->paused;
    const struct progress_state state = {.step = s->step,
                                         .steps = c->steps,
                                         .loss = s->loss,
                                         .wire_bytes = (double)NAN,
                                         .step_ms = 1e3 * now / (double)(s->step + 1)};
    keep(c, s, now);
    progress_line_show(&c->line, &state);
}

/* Never slow down rank 0: it collects, so no code would help. */
static void before_work(void *arg, size_t step, double work)
{
    const struct coded *c = arg;
    const double times = c->rank ? train_slowness(c->args, c->seed, c->rank, step) : 1;

    train_sleep(c->args->compute_ms * work * c->ranks / c->partitions * times);
}

static int fit(struct coded *c)
{
    trib_coded_fit_desc_t desc = TRIB_CODED_FIT_DESC_INIT;

    desc.loss = linear_loss(c->task);
    desc.code = c->args->code;
    desc.features = c->features;
    desc.labels = c->labels;
    desc.rows = c->rows;
    desc.columns = c->n - 1;
    desc.partitions = c->partitions;
    desc.seed = c->seed;
    desc.steps = c->steps;
    desc.rate = c->rate;
    desc.decay = (double)LINEAR_DECAY;
    desc.meet = c->args->join;
    desc.listener = c->listener;
    desc.step = before_step;
    desc.work = before_work;
    desc.step_arg = c;
    c->stats = (trib_coded_stats_t)TRIB_CODED_STATS_INIT;
    const trib_status_t st = trib_coded_fit(&c->comm, &desc, c->weights, &c->stats);

    if (st == TRIB_OK)
        return 0;
    /* Rank 0 reports errors that are known to all ranks. */
    if (trib_rank(c->comm) == 0 || st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_TIMEOUT)
        fprintf(stderr, "trib-train: rank %d: %s\n", c->rank, trib_coded_error(NULL));
    return -1;
}

/* --- results --- */

/* Sum over the surviving ranks; shrink the communicator if ranks are lost. */
static int add_up(struct coded *c, double *sum)
{
    const double mine = *sum;

    for (int tries = 0; tries < c->ranks; tries++) {
        trib_comm_t *smaller;

        if (trib_allreduce(c->comm, &mine, sum, 1, TRIB_F64, TRIB_SUM) == TRIB_OK)
            return 0;
        if (trib_comm_shrink(c->comm, &smaller) != TRIB_OK)
            break;
        (void)trib_free_comm(c->comm);
        c->comm = smaller;
    }
    fprintf(stderr, "trib-train: rank %d: %s\n", c->rank, trib_last_error(c->comm));
    return -1;
}

/* Return the bytes that MDS would move: each rank without a partition fetches all
 * partitions of the samples and of their transpose. */
static double mds_bytes(const struct coded *c)
{
    const double parts = c->partitions, rows = (double)c->rows;
    const double columns = ceil((double)c->n / parts) * parts;

    return (c->ranks - parts) * parts * rows * 4 * ((double)c->n + columns);
}

/* Return |decoded - plain| / |plain|. */
static double distance(const struct coded *c, int point, double *plain)
{
    const float *decoded = c->kept.gradients + (size_t)point * c->n;
    double off = 0, norm = 0;

    linear_whole_gradient(c->task, c->kept.weights + (size_t)point * c->n, plain);
    for (size_t i = 0; i < c->n; i++) {
        const double d = (double)decoded[i] - plain[i];

        off += d * d;
        norm += plain[i] * plain[i];
    }
    return sqrt(off / norm);
}

static double evaluate(const struct coded *c, const float *weights)
{
    double right, all;

    c->task->ops->evaluate(c->task, weights, &right, &all);
    return 100 * right / all;
}

static int evaluate_kept(struct coded *c)
{
    struct train_result *result = c->result;
    double *plain = calloc(c->n, sizeof(*plain));

    if (!plain) {
        fputs("trib-train: out of memory\n", stderr);
        return -1;
    }
    result->gradient_error = 0;
    for (int i = 0; i < c->kept.n; i++) {
        if (c->kept.decoded[i])
            result->gradient_error =
                fmax(result->gradient_error, distance(c, i, plain));
        if (!c->job->watched || c->kept.points[i].step < 1)
            continue;
        result->points[result->n_points] = c->kept.points[i];
        result->points[result->n_points++].value =
            evaluate(c, c->kept.weights + (size_t)i * c->n);
    }
    free(plain);
    if (c->job->watched && result->n_points < TRAIN_POINTS_MAX)
        result->points[result->n_points++] =
            (struct train_point){.step = result->steps,
                                 .wire_bytes = (double)NAN,
                                 .seconds = result->seconds,
                                 .loss = (double)NAN,
                                 .value = result->value};
    return 0;
}

static int count(struct coded *c, double took, double fetched)
{
    struct train_result *result = c->result;
    const bool all = !c->args->leave && !c->args->join && !mixes(c->args->code);

    train_result_clear(result);
    result->params = (double)c->n;
    result->ranks = c->ranks;
    result->steps = (double)c->steps;
    result->rounds = (double)c->steps;
    result->seconds = took;
    result->encoded_bytes = fetched;
    result->encoded_ratio =
        all && c->ranks > c->partitions ? fetched / mds_bytes(c) : (double)NAN;
    result->waited = (double)c->stats.waited / (double)c->stats.products;
    result->value = evaluate(c, c->weights);
    result->hash = train_hash(c->weights, c->n * sizeof(float));
    result->identical = true; /* only one rank has the result */
    return evaluate_kept(c);
}

/* --- life cycle --- */

static trib_status_t take_samples(struct coded *c, struct trib_error *err)
{
    const size_t all = linear_count(c->task), width = c->n - 1;

    c->rows = (all + (size_t)c->partitions - 1) / (size_t)c->partitions;
    if (c->rank >= c->partitions || c->newcomer)
        return TRIB_OK;
    c->features = calloc(c->rows * width, sizeof(float));
    c->labels = calloc(c->rows, sizeof(float));
    if (!c->features || !c->labels)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < c->rows; i++) {
        const size_t number = (size_t)c->rank * c->rows + i;

        if (number < all) /* otherwise padding */
            c->labels[i] = linear_sample(c->task, number, c->features + i * width);
    }
    return TRIB_OK;
}

static trib_status_t check_ranks(const struct coded *c, struct trib_error *err)
{
    const struct train_args *a = c->args;

    if (c->partitions > c->ranks)
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "--partitions %d: each needs its own rank, but at first there %s %d",
            c->partitions, c->ranks == 1 ? "is" : "are", c->ranks);
    if (a->leave && a->leave_rank >= c->ranks)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "--leave %d: the initial ranks are 0 to %d", a->leave_rank,
                         c->ranks - 1);
    if ((a->leave && a->leave_step >= c->steps) || a->join >= c->steps)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "--leave or --join: the run has only %zu steps", c->steps);
    return TRIB_OK;
}

static trib_status_t make(struct coded *c, struct trib_error *err)
{
    const struct task_desc data = {
        .data = c->args->data, .kept = c->args->kept, .ranks = 1, .seed = c->seed};
    const struct task_row *row = c->job->task;

    c->steps = c->args->steps    ? c->args->steps
               : c->args->epochs ? c->args->epochs
                                 : STEPS;
    c->partitions = c->args->partitions ? c->args->partitions
                                        : default_partitions(c->args->code, c->ranks);
    c->rate = rate_of(c->job);
    trib_status_t st = check_ranks(c, err);
    if (st == TRIB_OK)
        st = task_create(row, &data, &c->task, err);
    if (st != TRIB_OK)
        return st;
    c->n = c->task->n_params;
    c->weights = calloc(c->n, sizeof(float));
    c->kept.weights = calloc(TRAIN_POINTS_MAX * c->n, sizeof(float));
    c->kept.gradients = calloc(TRAIN_POINTS_MAX * c->n, sizeof(float));
    if (!c->weights || !c->kept.weights || !c->kept.gradients)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    st = take_samples(c, err);
    return st == TRIB_OK && c->rank == 0 ? train_files_try(c->args, err) : st;
}

static void listen_for_newcomers(struct coded *c, struct trib_error *err)
{
    const trib_status_t st = trib_listener_open(c->comm, NULL, &c->listener);

    if (st != TRIB_OK)
        trib_fail(err, st, "%s", trib_last_error(c->comm));
}

static int run(struct coded *c)
{
    struct trib_error err = {0};

    if (make(c, &err) == TRIB_OK && c->args->join && c->rank == 0)
        listen_for_newcomers(c, &err);
    if (train_all_good(c->comm, &err) != 0)
        return -1;
    progress_line_begin(&c->line,
                        c->rank == 0 ? c->args->progress : TRAIN_PROGRESS_NONE,
                        c->job->title);
    if (fit(c) != 0)
        return -1;
    const double took = train_seconds() - c->begun - c->paused;
    double fetched = (double)c->stats.fetched_bytes;

    progress_line_end(&c->line);
    if (add_up(c, &fetched) != 0)
        return -1;
    return trib_rank(c->comm) == 0 ? count(c, took, fetched) : 0;
}

/* Wait until the run admits this rank, then join it. */
static int run_as_newcomer(struct coded *c)
{
    struct trib_error err = {0};
    double fetched;
    int open;

    if (make(c, &err) != TRIB_OK) {
        fprintf(stderr, "trib-train: %s\n", trib_error_text(&err));
        return -1;
    }
    while (!(open = atomic_load(&c->job->rendezvous->open)))
        train_sleep(1);
    if (open == 2)
        return 0;
    if (trib_join(c->job->rendezvous->text, NULL, &c->comm) != TRIB_OK) {
        fprintf(stderr, "trib-train: %s\n", trib_last_error(NULL));
        return -1;
    }
    c->rank = trib_rank(c->comm);
    if (fit(c) != 0)
        return -1;
    fetched = (double)c->stats.fetched_bytes;
    return add_up(c, &fetched);
}

static void clean_up(struct coded *c)
{
    task_destroy(c->task);
    trib_listener_close(c->listener);
    free(c->features);
    free(c->labels);
    free(c->weights);
    free(c->kept.weights);
    free(c->kept.gradients);
}

/* Run one training; *comm is NULL for a rank that joins later. */
static int train(const struct train_job *job, trib_comm_t **comm, int seed)
{
    struct train_result own;
    struct coded c = {.job = job,
                      .args = job->args,
                      .comm = *comm,
                      .newcomer = !*comm,
                      .ranks = *comm ? trib_size(*comm) : job->args->ranks - 1,
                      .rank = *comm ? trib_rank(*comm) : job->args->ranks - 1,
                      .seed = job->args->seed + (uint64_t)seed,
                      .kept.next = job->first_point ? job->first_point : 1};

    c.result = *comm ? &job->results[seed] : &own;
    const int bad = *comm ? run(&c) : run_as_newcomer(&c);

    *comm = c.comm;
    clean_up(&c);
    return bad;
}

int train_coded_rank(const struct train_job *job, int rank, const char *root,
                     int (*report)(const struct train_job *job))
{
    const bool later = job->rendezvous && rank == job->args->ranks - 1;
    struct train_args args = *job->args;
    trib_comm_t *comm = NULL;
    int bad = 0;

    args.ranks -= job->rendezvous != NULL;
    if (!later && train_init(&args, rank, root, &comm) != 0)
        return 1;
    for (int i = 0; i < job->seeds && !bad; i++)
        bad = train(job, &comm, i);
    if (job->rendezvous && !later)
        atomic_store(&job->rendezvous->open, 2);
    if (!comm)
        return bad != 0;
    if (!bad && trib_rank(comm) == 0 && report)
        bad = report(job);
    bad |= train_leave(comm);
    return bad != 0;
}
