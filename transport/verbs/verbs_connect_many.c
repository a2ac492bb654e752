/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: connecting to several peers at once.
 *
 * A connection takes several round trips, and each end spends milliseconds in firmware.
 * So WORKERS threads connect, each to one peer at a time. They touch only the links of
 * their peers; the owner takes new outlets into use as they come. Connections by GIDs
 * are proved together at the end. A failure waits for connect, which reports it.
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
    bool taken, probed;
    _Atomic bool finished;
    struct verbs_choice choice;
    struct verbs_outcome outcome;
};

struct crew {
    struct verbs *v;
    struct job *jobs;
    int n;
    _Atomic int next;
    pthread_t threads[WORKERS];
    int n_threads;
};

static void *work(void *arg)
{
    struct crew *crew = arg;

    for (;;) {
        const int i = atomic_fetch_add(&crew->next, 1);
        if (i >= crew->n)
            return NULL;
        struct job *job = &crew->jobs[i];
        trib_verbs_try_devices(crew->v, job->peer, &job->choice, &job->outcome);
        atomic_store_explicit(&job->finished, true, memory_order_release);
    }
}

/* List the peers that are to be connected; connect reports other errors. */
static int list_jobs(struct verbs *v, const struct trib_target *dials, int n,
                     struct job *out)
{
    int used = 0;

    for (int i = 0; i < n; i++) {
        const int peer = dials[i].peer;
        struct job *job = &out[used];
        if (peer < 0 || peer >= v->size || peer == v->self ||
            v->peers[peer].base.state != TRIB_PEER_UNKNOWN || v->peers[peer].outcome)
            continue;
        if (trib_verbs_check_address(v, peer, dials[i].address, &job->choice) !=
                TRIB_OK ||
            !trib_verbs_make_asked(v, peer)) {
            trib_error_clear(v->err);
            continue;
        }
        job->peer = peer;
        used++;
    }
    return used;
}

/* Keep the failure for connect. Without memory, connect tries again. */
static void keep_failure(struct verbs_peer *p, const struct verbs_outcome *outcome)
{
    p->outcome = malloc(sizeof(*p->outcome));
    if (p->outcome)
        *p->outcome = *outcome;
}

static void take(struct verbs *v, struct job *job)
{
    struct verbs_peer *p = &v->peers[job->peer];

    job->taken = true;
    if (job->outcome.status != TRIB_OK) {
        keep_failure(p, &job->outcome);
        return;
    }
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

/* Take the results as they come. */
static void take_all(struct crew *crew)
{
    int left = crew->n;

    while (left) {
        bool any = false;
        for (int i = 0; i < crew->n; i++) {
            struct job *job = &crew->jobs[i];
            if (job->taken ||
                !atomic_load_explicit(&job->finished, memory_order_acquire))
                continue;
            take(crew->v, job);
            left--;
            any = true;
        }
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
    if (job->outcome.status == TRIB_OK || job->outcome.at + 1 < job->choice.n)
        return;
    snprintf(job->outcome.why, sizeof(job->outcome.why),
             "rank %d (process %d) cannot reach rank %d (process %d) over verbs: %s",
             v->self, v->local.me.pid, job->peer,
             job->choice.address[job->outcome.at].pid, why);
    keep_failure(&v->peers[job->peer], &job->outcome);
}

static void prove_all(const struct crew *crew, int *peers)
{
    int n = 0;

    for (int i = 0; i < crew->n; i++) {
        if (crew->jobs[i].probed)
            peers[n++] = crew->jobs[i].peer;
    }
    if (n)
        trib_verbs_await_probes(crew->v, peers, n);
    for (int i = 0; i < crew->n; i++) {
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

void trib_verbs_connect_many(struct trib_transport *t, const struct trib_target *dials,
                             int n)
{
    struct verbs *v = verbs_of(t);
    struct crew crew = {.v = v};

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
