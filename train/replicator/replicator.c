/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run: the ranks of this process (threads if several), their communicators, the loop
 * over steps, and the shutdown of all ranks when one fails.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sized.h"
#include "train/replicator/replica.h"

static _Thread_local char run_error[700];

static const struct trib_sized opts_kind = {
    "trib_replicator_opts_t", "TRIB_REPLICATOR_OPTS_INIT",
    sizeof(trib_replicator_opts_t), TRIB_SIZED_UP_TO(trib_replicator_opts_t, comm)};

enum { STATE_ALIGN = 64 };

const char *trib_replicator_error(void)
{
    return run_error;
}

/* ---- one rank -------------------------------------------------------------------- */

/* Split the grid of replicas and devices, and the groups in it. */
static trib_status_t make_comms(struct trib_replica *r)
{
    const struct trib_kind *kind = &r->of->kind;
    const struct trib_kind_shape *shape = &r->of->shape;
    trib_status_t st = trib_fault_split(r, r->world, r->rank, 0, &r->self);

    r->all = r->world;
    r->model = r->self;
    if (st == TRIB_OK && kind->devices > 1)
        st = trib_fault_split(r, r->world, r->device, r->id, &r->all);
    if (st == TRIB_OK && kind->devices > 1)
        st = trib_fault_split(r, r->world, r->id, r->device, &r->model);
    r->sync = shape->groups == 1 ? r->all : r->self;
    if (st == TRIB_OK && shape->groups > 1 && shape->in_sync > 1)
        st = trib_fault_split(r, r->all, r->group, r->id, &r->sync);
    return st;
}

static trib_status_t open_replica(struct trib_replica *r)
{
    const size_t bytes = r->of->opts.state_bytes;

    r->id = r->rank / r->of->kind.devices;
    r->device = r->rank % r->of->kind.devices;
    r->group = r->id / r->of->shape.in_sync;
    trib_status_t st = make_comms(r);
    if (st == TRIB_OK)
        st = trib_pipeline_open(r);
    if (st != TRIB_OK)
        return st;
    r->state =
        aligned_alloc(STATE_ALIGN, (bytes + STATE_ALIGN) / STATE_ALIGN * STATE_ALIGN);
    if (!r->state)
        return trib_fail(&r->err, TRIB_ERR_NO_MEMORY,
                         "no memory for a state of %zu bytes", bytes);
    memset(r->state, 0, bytes);
    return TRIB_OK;
}

static void close_replica(struct trib_replica *r)
{
    for (int i = r->n_trainers; i-- > 0;) {
        trib_trainer_free(r->trainers[i].trainer);
        trib_ordered_close(&r->trainers[i]);
    }
    trib_pipeline_close(r);
    while (r->n_made > 0)
        trib_free_comm(r->made[--r->n_made]);
    free(r->state);
}

/* Return true if the run survives the loss of a rank: the rank belongs to another
 * group. */
static bool may_lose(const struct trib_replica *r, trib_status_t status)
{
    return r->of->shape.groups > 1 && status == TRIB_ERR_PEER_LOST;
}

static trib_status_t call(struct trib_replica *r, const char *name, trib_replica_fn fn)
{
    const int code = fn ? fn(r) : 0;

    return code == 0 ? r->err.status : trib_fault_callback(r, name, code);
}

/* With shares, refuse a step that the trainer made without trib_replica_train: its
 * gradient was not summed. */
static trib_status_t check_steps(struct trib_replica *r)
{
    for (int i = 0; i < r->n_trainers && r->of->kind.shares > 0; i++) {
        trib_trainer_stats_t stats = {.size = sizeof(stats)};

        if (trib_trainer_stats(r->trainers[i].trainer, &stats) == TRIB_OK &&
            stats.steps != r->trainers[i].steps)
            return trib_fail(
                &r->err, TRIB_ERR_UNSUPPORTED,
                "kind \"%s\": with shares, make a step by trib_replica_train, not by "
                "trib_trainer_end",
                r->of->kind.text);
    }
    return TRIB_OK;
}

static trib_status_t step(struct trib_replica *r)
{
    trib_status_t st = trib_progress(r->world);

    if (st < 0 && !may_lose(r, st))
        return trib_fault_comm(r, r->world, st);
    st = trib_pipeline_fetch(r);
    if (st != TRIB_OK)
        return st;
    r->in_step = true;
    const int code = r->of->opts.step(r, r->samples);
    r->in_step = false;
    if (code != 0)
        return trib_fault_callback(r, "step", code);
    return r->err.status == TRIB_OK ? check_steps(r) : r->err.status;
}

static trib_status_t finish_trainers(struct trib_replica *r)
{
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < r->n_trainers && st == TRIB_OK; i++) {
        st = trib_trainer_settle(r->trainers[i].trainer, NULL);
        if (st != TRIB_OK)
            trib_fail(&r->err, st, "%s", trib_trainer_error(r->trainers[i].trainer));
    }
    return st;
}

static trib_status_t run_steps(struct trib_replica *r)
{
    trib_status_t st = open_replica(r);

    if (st == TRIB_OK)
        st = call(r, "start", r->of->opts.start);
    while (st == TRIB_OK && r->step < r->of->shape.steps) {
        st = step(r);
        r->step += st == TRIB_OK;
    }
    if (st == TRIB_OK)
        st = finish_trainers(r);
    return st == TRIB_OK ? call(r, "finish", r->of->opts.finish) : st;
}

/* Abort the communicators, so that other ranks learn of the failure wherever they wait.
 * After the loss of a rank only its own group ends. */
static void end_all(struct trib_replica *r)
{
    enum { WHY = 119 };
    char why[WHY + 1];
    const char *cause = strstr(r->err.text, "replica ");
    trib_comm_t *const comms[] = {r->pipeline, r->sync, r->model, r->all, r->world};
    const size_t n = sizeof(comms) / sizeof(comms[0]);

    snprintf(why, sizeof(why), "%.*s", WHY, cause && !r->own ? cause : r->err.text);
    for (size_t i = 0; i < (may_lose(r, r->err.status) ? n - 2 : n); i++)
        if (comms[i])
            trib_comm_abort(comms[i], why);
}

/* Prefix an error of the program's function with its replica and step. */
static void name_place(struct trib_replica *r)
{
    char text[sizeof(r->err.text)], device[24] = "";

    if (!r->own)
        return;
    snprintf(text, sizeof(text), "%s", r->err.text);
    if (r->of->kind.devices > 1)
        snprintf(device, sizeof(device), " (device %d)", r->device);
    trib_error_clear(&r->err);
    trib_fail(&r->err, TRIB_ERR_ABORTED,
              "replica %d%s has failed in step %" PRIu64 ": %s", r->id, device, r->step,
              text);
}

/* A rank blocked in a trainer's communicator only sees that a peer disconnected. The
 * peer's abort notice arrives on the world communicator, up to 200 ms later. */
static void find_cause(struct trib_replica *r)
{
    enum { LOOKS = 200, NAP_NS = 1000000 };

    for (int i = 0; i < LOOKS && !r->own; i++) {
        const trib_status_t st = trib_progress(r->world);
        const char *text = st < 0 ? trib_last_error(r->world) : "";

        if (strstr(text, " has failed in step ")) {
            trib_error_clear(&r->err);
            trib_fail(&r->err, st, "%s", text);
        }
        if (st < 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

static trib_status_t run_rank(struct trib_replica *r)
{
    const trib_status_t st = run_steps(r);

    if (st != TRIB_OK) {
        find_cause(r);
        if (r->err.status == TRIB_OK)
            trib_fail(&r->err, st, "%s", trib_status_str(st));
        name_place(r);
        end_all(r);
    }
    close_replica(r);
    return r->err.status;
}

/* ---- the ranks of a process ------------------------------------------------------ */

struct crew {
    const char *root;
    atomic_int stop; /* a thread could not be created: the others stop waiting for it */
};

struct thread {
    pthread_t id;
    struct crew *crew;
    struct trib_replica replica;
};

static int stopped(void *arg)
{
    struct crew *crew = arg;

    return atomic_load(&crew->stop);
}

static void *run_thread(void *arg)
{
    struct thread *thread = arg;
    struct trib_replica *r = &thread->replica;
    trib_opts_t opts = TRIB_OPTS_INIT;

    opts.rank_plus_1 = r->rank + 1;
    opts.ranks = r->of->shape.ranks;
    opts.root = thread->crew->root;
    opts.idle = stopped;
    opts.idle_arg = thread->crew;
    const trib_status_t st = trib_init(&opts, &r->world);
    if (st != TRIB_OK) {
        trib_fail(&r->err, st, "%s", trib_last_error(NULL));
        return NULL;
    }
    run_rank(r);
    trib_free_comm(r->world);
    return NULL;
}

/* Rank causes: 3 for a failed function of the program, 2 for another failure, 1 for a
 * rank that was aborted by a peer. */
static int nearness(const struct trib_replica *r)
{
    if (r->err.status == TRIB_OK)
        return 0;
    if (r->own)
        return 3;
    return r->err.status == TRIB_ERR_ABORTED ? 1 : 2;
}

static trib_status_t reason(const struct thread *threads, int n, struct trib_error *err)
{
    const struct trib_replica *nearest = &threads[0].replica;

    for (int i = 1; i < n; i++)
        if (nearness(&threads[i].replica) > nearness(nearest))
            nearest = &threads[i].replica;
    return nearness(nearest) == 0
               ? TRIB_OK
               : trib_fail(err, nearest->err.status, "%s", nearest->err.text);
}

static trib_status_t run_threads(const struct trib_replicator *of, const char *root,
                                 struct trib_error *err)
{
    const int n = of->kind.threads;
    struct crew crew = {.root = root};
    struct thread *threads = calloc((size_t)n, sizeof(*threads));
    int begun = 0;

    if (!threads)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for %d replicas", n);
    for (; begun < n; begun++) {
        struct thread *t = &threads[begun];

        t->crew = &crew;
        t->replica.of = of;
        t->replica.rank = of->process * n + begun;
        if (pthread_create(&t->id, NULL, run_thread, t) != 0)
            break;
    }
    if (begun < n) {
        atomic_store(&crew.stop, 1);
        trib_fail(err, TRIB_ERR_SYSTEM, "cannot create thread %d of %d", begun + 1, n);
    }
    for (int i = 0; i < begun; i++)
        pthread_join(threads[i].id, NULL);
    const trib_status_t st = reason(threads, begun, err);
    free(threads);
    return err->status != TRIB_OK ? err->status : st;
}

/* Threads of several processes rendezvous at the address of the first process. */
static trib_status_t run_many(const struct trib_replicator *of, trib_comm_t *comm,
                              struct trib_error *err)
{
    char text[TRIB_ROOT_TEXT_MAX] = "";
    trib_root_t *root = NULL;
    trib_status_t st = of->process == 0 ? trib_root_create(&root) : TRIB_OK;

    if (st != TRIB_OK)
        trib_fail(err, st, "%s", trib_last_error(NULL));
    if (root)
        snprintf(text, sizeof(text), "%s", trib_root_text(root));
    st = trib_broadcast(comm, text, sizeof(text), TRIB_U8, 0);
    if (st != TRIB_OK)
        trib_fail(err, st, "%s", trib_last_error(comm));
    else if (text[0] == '\0')
        trib_fail(err, TRIB_ERR_BOOT, "process 0 has no rendezvous for replicas");
    else
        st = run_threads(of, text, err);
    trib_root_destroy(root);
    return err->status != TRIB_OK ? err->status : st;
}

static trib_status_t run_local(const struct trib_replicator *of, struct trib_error *err)
{
    trib_local_t *local;
    trib_status_t st = trib_local_create(of->kind.threads, &local);

    if (st != TRIB_OK)
        return trib_fail(err, st, "%s", trib_last_error(NULL));
    st = run_threads(of, trib_local_root(local), err);
    trib_local_destroy(local);
    return st;
}

static trib_status_t run_alone(const struct trib_replicator *of, trib_comm_t *comm,
                               struct trib_error *err)
{
    struct trib_replica r = {.of = of, .rank = of->process, .world = comm};

    *err = (struct trib_error){.status = TRIB_OK};
    run_rank(&r);
    *err = r.err;
    return err->status;
}

/* ---- agreement of processes ------------------------------------------------------ */

/* Hash the options that all processes must share. */
static uint64_t hash_of(const struct trib_replicator *of)
{
    const trib_replicator_opts_t *o = &of->opts;
    const uint64_t numbers[] = {o->batch, o->sample_bytes, o->steps};

    return trib_hash(numbers, sizeof(numbers),
                     trib_hash(of->kind.text, strlen(of->kind.text), 0));
}

static trib_status_t agree(const struct trib_replicator *of, trib_comm_t *comm,
                           struct trib_error *err)
{
    uint64_t mine[2] = {hash_of(of), err->status != TRIB_OK};
    const int n = trib_size(comm);
    uint64_t *all = calloc((size_t)n, sizeof(mine));
    trib_status_t st =
        all ? trib_allgather(comm, mine, all, 2, TRIB_U64) : TRIB_ERR_NO_MEMORY;

    if (st != TRIB_OK)
        trib_fail(err, st, "%s",
                  all ? trib_last_error(comm) : "no memory for an agreement");
    for (int p = 0; st == TRIB_OK && p < n && err->status == TRIB_OK; p++)
        if (all[2 * p + 1])
            trib_fail(err, TRIB_ERR_INVALID,
                      "process %d cannot start this run; see its error message", p);
        else if (all[2 * p] != all[0])
            trib_fail(err, TRIB_ERR_MISMATCH,
                      "process %d differs from process 0 in kind, batch, sample_bytes "
                      "or steps: \"%s\", %zu, %zu and %" PRIu64 " here",
                      p, of->kind.text, of->opts.batch, of->opts.sample_bytes,
                      of->opts.steps);
    free(all);
    return err->status;
}

static trib_status_t take_opts(const trib_replicator_opts_t *opts,
                               struct trib_replicator *of, struct trib_error *err)
{
    of->opts = (trib_replicator_opts_t)TRIB_REPLICATOR_OPTS_INIT;
    if (!opts)
        return trib_fail(err, TRIB_ERR_INVALID, "a run has no options");
    const trib_status_t st = trib_sized_take(&opts_kind, opts, &of->opts, err);
    if (st != TRIB_OK)
        return st;
    if (!of->opts.input || !of->opts.step || of->opts.sample_bytes == 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "a run needs the functions input and step, and sample_bytes");
    return trib_kind_parse(of->opts.kind, err, &of->kind);
}

static trib_status_t run(struct trib_replicator *of, trib_comm_t *comm,
                         struct trib_error *err)
{
    of->process = trib_rank(comm);
    if (err->status == TRIB_OK)
        trib_kind_fit(&of->kind, trib_size(comm), of->opts.batch, of->opts.steps, err,
                      &of->shape);
    if (agree(of, comm, err) != TRIB_OK)
        return err->status;
    if (of->kind.threads == 1)
        return run_alone(of, comm, err);
    return of->shape.processes == 1 ? run_local(of, err) : run_many(of, comm, err);
}

trib_status_t trib_replicator_run(const trib_replicator_opts_t *opts)
{
    struct trib_replicator of = {.process = 0};
    struct trib_error err = {.status = TRIB_OK};
    trib_comm_t *comm = NULL;

    take_opts(opts, &of, &err);
    trib_status_t st = of.opts.comm ? TRIB_OK : trib_init(NULL, &comm);
    if (st != TRIB_OK)
        trib_fail(&err, st, "%s", trib_last_error(NULL));
    else
        run(&of, of.opts.comm ? of.opts.comm : comm, &err);
    if (comm && err.status != TRIB_OK && of.shape.groups == 1)
        trib_comm_abort(comm, "the run has failed"); /* no rank waits for this one */
    st = comm ? trib_free_comm(comm) : TRIB_OK;
    if (st != TRIB_OK && !(st == TRIB_ERR_PEER_LOST && of.shape.groups > 1))
        trib_fail(&err, st, "%s", trib_last_error(NULL));
    snprintf(run_error, sizeof(run_error), "%s",
             err.status == TRIB_OK ? "" : trib_error_text(&err));
    return err.status;
}
