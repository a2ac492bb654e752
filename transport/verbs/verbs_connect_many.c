/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: connecting to several peers at once.
 *
 * A connection takes several round trips, and each end spends milliseconds in firmware.
 * So WORKERS threads connect, each to one peer at a time. They touch only the links of
 * their peers; the owner takes new outlets into use as they come. Connections by GIDs
 * are proved together at the end. A failure waits for connect, which reports it.
 *
 * Once a peer has not answered, no further attempts begin: with N such peers they would
 * take N / WORKERS times the limit of one. Attempts that lacked a descriptor, memory or
 * a queue pair at this rank do not count, because the other attempts may have had it.
 * In both cases connect tries these peers one by one.
 */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/time.h"
#include "base/wait.h"
#include "transport/verbs/verbs.h"

enum {
    WORKERS = 16,
    CHECK_NS = 100000, /* between the owner's checks of the workers */
};

struct job {
    int peer;
    struct trib_target *dial;
    bool taken, probed;
    uint64_t took_ns;
    _Atomic bool finished;
    struct verbs_choice choice;
    struct verbs_outcome outcome;
};

struct crew {
    struct verbs *v;
    struct job *jobs;
    int n;
    _Atomic int next;
    _Atomic bool silent; /* a peer has not answered */
    _Atomic int ended; /* workers */
    pthread_t threads[WORKERS];
    int n_threads;
};

static void *work(void *arg)
{
    struct crew *crew = arg;

    while (!atomic_load(&crew->silent)) {
        const int i = atomic_fetch_add(&crew->next, 1);
        if (i >= crew->n)
            break;
        struct job *job = &crew->jobs[i];
        const uint64_t begin = trib_now_ns();
        trib_verbs_try_devices(crew->v, job->peer, &job->choice, &job->outcome);
        job->took_ns = trib_now_ns() - begin;
        if (job->outcome.status != TRIB_OK && job->took_ns >= TRIB_SILENT_NS)
            atomic_store(&crew->silent, true);
        atomic_store_explicit(&job->finished, true, memory_order_release);
    }
    atomic_fetch_add(&crew->ended, 1);
    return NULL;
}

/* List the peers that are to be connected; connect reports other errors. */
static int list_jobs(struct verbs *v, struct trib_target *dials, int n, struct job *out)
{
    int used = 0;

    for (int i = 0; i < n; i++) {
        const int peer = dials[i].peer;
        struct job *job = &out[used];
        if (peer < 0 || peer >= v->size || peer == v->self ||
            v->peers[peer].base.state != TRIB_PEER_UNKNOWN)
            continue;
        trib_verbs_forget_failure(v, peer);
        if (trib_verbs_check_address(v, peer, dials[i].address, &job->choice) !=
                TRIB_OK ||
            !trib_verbs_make_asked(v, peer)) {
            trib_error_clear(v->err);
            continue;
        }
        job->peer = peer;
        job->dial = &dials[i];
        used++;
    }
    return used;
}

/* Return true for the lack of something that other attempts of this rank may have. */
static bool is_short(trib_status_t status)
{
    return status == TRIB_ERR_SYSTEM || status == TRIB_ERR_NO_RESOURCE ||
           status == TRIB_ERR_NO_MEMORY;
}

/* Keep the failure for connect. Without memory, connect tries again. */
static void keep_failure(struct verbs *v, struct job *job)
{
    struct verbs_peer *p = &v->peers[job->peer];

    assert(job->outcome.status != TRIB_OK && !p->outcome);
    p->outcome = is_short(job->outcome.status) ? NULL : malloc(sizeof(*p->outcome));
    job->dial->tried = p->outcome;
    if (!p->outcome)
        return;
    job->dial->failed_ns = job->took_ns;
    *p->outcome = job->outcome;
    p->outcome->until = trib_deadline_ms(v->reach_ms);
}

static void take(struct verbs *v, struct job *job)
{
    struct verbs_peer *p = &v->peers[job->peer];

    job->taken = true;
    if (job->outcome.status != TRIB_OK) {
        keep_failure(v, job);
        return;
    }
    job->dial->tried = true;
    p->device = job->choice.device[job->outcome.at];
    p->address = job->choice.address[job->outcome.at];
    trib_verbs_set_connected(v, job->peer, &p->address);
    pthread_mutex_lock(&v->links);
    if (p->gone || *p->fault) /* it has ended since */
        trib_verbs_wake_owner(v);
    pthread_mutex_unlock(&v->links);
    job->probed = p->out.by_oob;
    if (job->probed)
        (void)trib_verbs_post_probe(v, job->peer);
}

/* Take the results that have come. Return false if there are none. */
static bool take_some(struct crew *crew)
{
    bool any = false;

    for (int i = 0; i < crew->n; i++) {
        struct job *job = &crew->jobs[i];
        if (job->taken || !atomic_load_explicit(&job->finished, memory_order_acquire))
            continue;
        take(crew->v, job);
        any = true;
    }
    return any;
}

static void take_all(struct crew *crew)
{
    for (;;) {
        const bool last = atomic_load(&crew->ended) == crew->n_threads;
        const bool any = take_some(crew);
        if (last)
            return;
        if (!any && !trib_idle_sleep(crew->v->idle, CHECK_NS))
            sched_yield(); /* the workers end soon */
    }
}

/* A peer that packets do not reach is disconnected. If it has other devices, connect
 * tries them. */
static void prove(struct verbs *v, struct job *job)
{
    char why[240];

    job->outcome.status = trib_verbs_judge_probe(v, job->peer, why, sizeof(why));
    job->dial->tried = job->outcome.status == TRIB_OK;
    if (job->dial->tried || job->outcome.at + 1 < job->choice.n)
        return;
    snprintf(job->outcome.why, sizeof(job->outcome.why),
             "rank %d (process %d) cannot reach rank %d (process %d) over verbs: %s",
             v->self, v->local.me.pid, job->peer,
             job->choice.address[job->outcome.at].pid, why);
    keep_failure(v, job);
}

static void prove_all(const struct crew *crew, int *peers)
{
    const uint64_t begin = trib_now_ns();
    int n = 0;

    for (int i = 0; i < crew->n; i++) {
        if (crew->jobs[i].probed)
            peers[n++] = crew->jobs[i].peer;
    }
    if (n)
        trib_verbs_await_probes(crew->v, peers, n);
    for (int i = 0; i < crew->n; i++) {
        crew->jobs[i].took_ns += trib_now_ns() - begin;
        if (crew->jobs[i].probed)
            prove(crew->v, &crew->jobs[i]);
    }
}

/* Without any thread, connect does the work. */
static void run(struct crew *crew, int *peers)
{
    const int most = crew->n < WORKERS ? crew->n : WORKERS;

    assert(crew->n > 1);
    while (crew->n_threads < most &&
           trib_thread_start(&crew->threads[crew->n_threads], work, crew) == 0)
        crew->n_threads++;
    if (!crew->n_threads)
        return;
    take_all(crew);
    for (int i = 0; i < crew->n_threads; i++)
        (void)pthread_join(crew->threads[i], NULL);
    prove_all(crew, peers);
}

void trib_verbs_connect_many(struct trib_transport *t, struct trib_target *dials, int n)
{
    struct verbs *v = verbs_of(t);
    struct crew crew = {.v = v};

    for (int i = 0; i < n; i++)
        trib_target_reset(&dials[i]);
    if (n < 2 || !verbs_is_ours(v))
        return;
    crew.jobs = calloc((size_t)n, sizeof(*crew.jobs));
    int *peers = malloc((size_t)n * sizeof(*peers));
    if (crew.jobs && peers)
        crew.n = list_jobs(v, dials, n, crew.jobs);
    trib_idle_gate_enter(&v->gate);
    if (crew.n > 1)
        run(&crew, peers);
    trib_idle_gate_leave(&v->gate);
    free(peers);
    free(crew.jobs);
}
