/* SPDX-License-Identifier: BSD-3-Clause */
#include "tribd/store_job.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agg/store/store_peer.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"
#include "tribd/credentials.h"
#include "tribd/store_keeper.h"

enum {
    MESSAGES_MOST = 32, /* taken from one rank in a pass */
    TICK_MS = 1000,
};

enum presence {
    NEVER, /* the rank has not joined yet */
    HERE,
    LEFT, /* it has said goodbye */
    LOST,
};

/* A rank that has joined. */
struct member {
    struct member *next; /* of those that come, or that are gone */
    struct trib_session *session;
    struct credentials *credentials;
    struct trib_store_peer *peer;
    struct trib_error err;
    uint32_t rank;
    bool told; /* of the drain */
    bool more; /* it may have said more than was taken in the last pass */
};

struct store_job {
    uint32_t ranks;
    struct trib_quota *quota;
    struct trib_metrics *metrics;
    uint64_t id;
    int server_fd;
    struct trib_metrics_writer *writer; /* or NULL: nothing is counted */
    pthread_t thread;
    int wake_fd;
    _Atomic bool over;
    _Atomic bool draining;
    _Atomic uint32_t present; /* ranks that are here, or are coming */
    struct archive *archive; /* or NULL */
    struct trib_snapshot_about about; /* of its snapshots */

    /* of its thread */
    struct trib_store_table *table;
    struct trib_store_tick tick;
    struct store_keeper *keeper;
    bool ordered; /* a rank waits for a snapshot */
    struct member **members; /* [ranks]; NULL: not here */
    uint8_t *presence; /* [ranks] enum presence */
    struct pollfd *fds; /* [1 + ranks] */
    uint32_t *who; /* [ranks] rank of fds[1 + i] */
    uint32_t n_here;
    bool moved; /* a pull that waits may have what it waits for */
    uint32_t n_lost;
    uint64_t empty_ns; /* since then nobody is here; 0: somebody is, or will be */
    char why[300];

    /* under mutex */
    pthread_mutex_t mutex;
    struct member *coming;
    struct member *gone;
    bool ending;
    char say[300];
};

static void wake(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

/* The ranks ------------------------------------------------------------------------ */

/* Takes all of a list that two threads share. */
static struct member *take_list(struct store_job *job, struct member **list)
{
    pthread_mutex_lock(&job->mutex);
    struct member *all = *list;
    *list = NULL;
    pthread_mutex_unlock(&job->mutex);
    return all;
}

/* Puts the member where the server's thread frees it. */
static void bury(struct store_job *job, struct member *m)
{
    (void)atomic_fetch_sub(&job->present, 1);
    pthread_mutex_lock(&job->mutex);
    m->next = job->gone;
    job->gone = m;
    pthread_mutex_unlock(&job->mutex);
    wake(job->server_fd);
}

static void remove_member(struct store_job *job, uint32_t rank, enum presence now)
{
    struct member *m = job->members[rank];

    assert(m && job->n_here > 0);
    trib_store_peer_free(m->peer);
    m->peer = NULL;
    job->members[rank] = NULL;
    job->presence[rank] = (uint8_t)now;
    job->n_lost += now == LOST;
    trib_store_leave(job->table, rank, now == LEFT);
    job->moved = true;
    if (--job->n_here == 0)
        job->empty_ns = trib_now_ns();
    bury(job, m);
}

static void add_member(struct store_job *job, struct member *m)
{
    static const struct trib_control joined = {.kind = TRIB_CONTROL_STORE_JOINED};
    const struct trib_store_peer_opts opts = {job->table, m->rank, job->quota,
                                              &job->tick, job->archive};

    if (job->members[m->rank])
        remove_member(job, m->rank, LOST);
    if (trib_store_peer_create(&opts, &m->peer) != TRIB_OK) {
        (void)trib_session_end(m->session, TRIB_ERR_NO_MEMORY,
                               "no memory for one more rank of the store");
        bury(job, m);
        return;
    }
    job->n_lost -= job->presence[m->rank] == LOST;
    job->presence[m->rank] = HERE;
    trib_store_leave(job->table, m->rank, false);
    job->members[m->rank] = m;
    job->n_here++;
    job->empty_ns = 0;
    (void)trib_session_send(m->session, &joined);
}

static void take_comers(struct store_job *job)
{
    struct member *coming = take_list(job, &job->coming);

    while (coming) {
        struct member *m = coming;
        coming = m->next;
        add_member(job, m);
    }
}

/* Sends what the rank is to have, as far as there is room. */
static trib_status_t give(struct member *m)
{
    struct trib_control out;
    trib_status_t st = TRIB_OK;

    while (st == TRIB_OK && trib_store_peer_next(m->peer, &out)) {
        st = trib_session_send(m->session, &out);
        if (st == TRIB_OK)
            trib_store_peer_sent(m->peer);
    }
    return st == TRIB_ERR_NO_RESOURCE ? TRIB_OK : st;
}

/* Takes one message; TRIB_INPROGRESS: none has come. */
static trib_status_t take(struct member *m, bool *left_out)
{
    struct trib_control in;
    struct trib_error err = {0};
    trib_status_t st = trib_session_step(m->session, &in);

    if (st != TRIB_OK)
        return st;
    *left_out = in.kind == TRIB_CONTROL_GOODBYE;
    if (*left_out)
        return TRIB_OK;
    st = trib_store_peer_take(m->peer, &in, &err);
    if (st != TRIB_OK)
        (void)trib_session_end(m->session, st, "%s", trib_error_text(&err));
    return st;
}

static void count(struct store_job *job, const struct trib_store_counts *before,
                  const struct trib_store_counts *now)
{
    struct trib_metrics_writer *w = job->writer;

    if (!w)
        return;
    trib_metrics_count(w, TRIB_JOB_COUNTS_VECTORS, now->vectors - before->vectors);
    trib_metrics_count(w, TRIB_JOB_COUNTS_PUSHES, now->pushes - before->pushes);
    trib_metrics_count(w, TRIB_JOB_COUNTS_PULLS, now->pulls - before->pulls);
    trib_metrics_count(w, TRIB_JOB_COUNTS_RECEIVED, now->received - before->received);
    trib_metrics_count(w, TRIB_JOB_COUNTS_SENT, now->sent - before->sent);
}

static void step_member(struct store_job *job, uint32_t rank)
{
    static const struct trib_control drain = {.kind = TRIB_CONTROL_DRAIN};
    struct member *m = job->members[rank];
    const struct trib_store_counts before = trib_store_peer_counts(m->peer);
    trib_status_t st = TRIB_OK;
    bool left = false;
    int taken = 0;

    if (atomic_load(&job->draining) && !m->told)
        m->told = trib_session_send(m->session, &drain) == TRIB_OK;
    for (; st == TRIB_OK && !left && taken < MESSAGES_MOST; taken++) {
        st = give(m);
        if (st == TRIB_OK)
            st = take(m, &left);
    }
    m->more = st == TRIB_OK;
    if (st == TRIB_INPROGRESS)
        st = give(m);
    const struct trib_store_counts now = trib_store_peer_counts(m->peer);
    count(job, &before, &now);
    struct trib_control_store_snapshot what;
    job->moved |= now.pushes != before.pushes;
    job->ordered |= trib_store_peer_wants(m->peer, &what);
    for (uint64_t i = now.vectors - before.vectors; i > 0; i--)
        store_keeper_found(job->keeper,
                           trib_store_table_size(job->table) - (uint32_t)i);
    if (left || st < TRIB_OK)
        remove_member(job, rank, left ? LEFT : LOST);
}

/* Snapshots ------------------------------------------------------------------------ */

/* The ranks that wait for this hear what became of it. */
static void tell_kept(struct store_job *job, const struct store_kept *kept)
{
    job->moved = true; /* a vector may be another one */
    for (uint32_t r = 0; r < job->ranks; r++) {
        if (!job->members[r])
            continue;
        trib_store_peer_kept(job->members[r]->peer, &kept->what, kept->changes,
                             &kept->err);
        (void)give(job->members[r]); /* an error comes again with the next step */
    }
}

/* Gives the next order of a rank to the keeper. */
static void take_orders(struct store_job *job)
{
    struct trib_control_store_snapshot what;
    struct store_kept kept;

    job->ordered = false;
    for (uint32_t r = 0; r < job->ranks; r++) {
        if (!job->members[r] || !trib_store_peer_wants(job->members[r]->peer, &what))
            continue;
        job->ordered = true;
        if (!store_keeper_idle(job->keeper))
            return;
        if (store_keeper_give(job->keeper, &what, &kept))
            tell_kept(job, &kept);
    }
}

static void keep(struct store_job *job)
{
    struct store_kept kept;

    if (store_keeper_step(job->keeper, trib_now_ns(), &kept))
        tell_kept(job, &kept);
    if (job->ordered && store_keeper_idle(job->keeper))
        take_orders(job);
}

/* During a long push the other ranks hear that this host is not stopped. */
static void tick(void *arg)
{
    struct store_job *job = arg;

    for (uint32_t r = 0; r < job->ranks; r++)
        if (job->members[r])
            trib_session_keep_alive(job->members[r]->session);
}

/* The thread ----------------------------------------------------------------------- */

/* Fills in what to wait for; returns the number of descriptors, and the time by which
 * something is due. */
static uint32_t prepare_wait(struct store_job *job, uint64_t *due_out)
{
    uint32_t n = 0;

    *due_out = trib_deadline_ms(TICK_MS);
    job->fds[0] = (struct pollfd){.fd = job->wake_fd, .events = POLLIN};
    for (uint32_t r = 0; r < job->ranks && n < job->n_here; r++) {
        const struct member *m = job->members[r];
        if (!m)
            continue;
        const uint64_t pull = trib_store_peer_due(m->peer);
        const uint64_t session = trib_session_due(m->session);
        const uint64_t due = m->more ? 0 : pull < session ? pull : session;
        job->who[n] = r;
        job->fds[1 + n++] = (struct pollfd){.fd = trib_session_fd(m->session),
                                            .events = trib_session_events(m->session)};
        *due_out = due < *due_out ? due : *due_out;
    }
    return n;
}

/* Lets pulls go on that have waited for a push of this pass, or for their time. */
static void wake_pulls(struct store_job *job, uint32_t n)
{
    const uint64_t now_ns = trib_now_ns();
    const bool moved = job->moved;

    job->moved = false;
    for (uint32_t i = 0; i < n; i++) {
        struct member *m = job->members[job->who[i]];
        if (!m || (!moved && trib_store_peer_due(m->peer) > now_ns))
            continue;
        trib_store_peer_wake(m->peer, now_ns);
        (void)give(m); /* an error comes again with the next step */
    }
}

static void run_pass(struct store_job *job)
{
    uint64_t due, count;
    const uint32_t n = prepare_wait(job, &due);
    const int ready = trib_poll(job->fds, n + 1, trib_deadline_left_ms(due));
    const uint64_t began_ns = trib_now_ns();

    if (job->fds[0].revents)
        (void)!read(job->wake_fd, &count, sizeof(count));
    for (uint32_t i = 0; i < n; i++) {
        struct member *m = job->members[job->who[i]];
        if (ready < 0 || job->fds[1 + i].revents || m->more ||
            (atomic_load(&job->draining) && !m->told) ||
            began_ns >= trib_session_due(m->session))
            step_member(job, job->who[i]);
    }
    if (job->archive && job->n_here)
        keep(job);
    wake_pulls(job, n);
    take_comers(job);
    if (job->writer)
        trib_metrics_count(job->writer, TRIB_JOB_COUNTS_BUSY, trib_now_ns() - began_ns);
}

static bool is_over(struct store_job *job)
{
    bool over;

    pthread_mutex_lock(&job->mutex);
    over = job->ending;
    snprintf(job->why, sizeof(job->why), "%s",
             over          ? job->say
             : job->n_lost ? "its ranks are lost"
                           : "its ranks have left");
    over |= job->empty_ns && !job->coming &&
            (!job->n_lost ||
             trib_now_ns() - job->empty_ns >= (uint64_t)STORE_JOB_KEEP_MS * 1000000);
    pthread_mutex_unlock(&job->mutex);
    return over;
}

/* Snapshots of a run that has ended well are of no use to any other. */
static void drop_snapshots(struct store_job *job)
{
    const struct archive_key key = {job->about.owner, job->about.user, NULL};

    if (job->archive && !job->about.lasting && !job->n_lost && !job->n_here)
        archive_drop(job->archive, &key);
}

static void *serve(void *arg)
{
    struct store_job *job = arg;
    const int fd = job->server_fd;

    take_comers(job);
    while (!is_over(job))
        run_pass(job);
    store_keeper_free(job->keeper);
    job->keeper = NULL;
    drop_snapshots(job);
    for (uint32_t r = 0; r < job->ranks; r++) {
        if (!job->members[r])
            continue;
        (void)trib_session_end(job->members[r]->session, TRIB_ERR_ABORTED, "%s",
                               job->why);
        remove_member(job, r, LEFT);
    }
    atomic_store(&job->over, true);
    wake(fd);
    return NULL;
}

/* Life ----------------------------------------------------------------------------- */

static void free_members(struct member *gone)
{
    while (gone) {
        struct member *m = gone;
        gone = m->next;
        trib_session_free(m->session);
        credentials_release(m->credentials);
        free(m);
    }
}

static void free_all(struct store_job *job)
{
    store_keeper_free(job->keeper);
    trib_store_table_destroy(job->table);
    if (job->wake_fd >= 0)
        close(job->wake_fd);
    pthread_mutex_destroy(&job->mutex);
    free(job->members);
    free(job->presence);
    free(job->fds);
    free(job->who);
    free(job);
}

static trib_status_t allocate(struct store_job *job, struct trib_error *err)
{
    const size_t ranks = job->ranks;

    job->members = calloc(ranks, sizeof(struct member *));
    job->presence = calloc(ranks, sizeof(*job->presence));
    job->fds = calloc(ranks + 1, sizeof(*job->fds));
    job->who = calloc(ranks, sizeof(*job->who));
    job->wake_fd = trib_fd_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (job->wake_fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot wait for ranks: %m");
    if (job->members && job->presence && job->fds && job->who &&
        trib_store_table_create(job->ranks, job->quota, &job->table) == TRIB_OK)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a store");
}

static trib_status_t open_keeper(struct store_job *job,
                                 const struct store_job_opts *opts,
                                 struct trib_error *err)
{
    const struct store_keeper_opts keeper = {.archive = opts->archive,
                                             .log = opts->log,
                                             .table = job->table,
                                             .quota = opts->quota,
                                             .writer = job->writer,
                                             .tick = &job->tick,
                                             .wake_fd = job->wake_fd,
                                             .every_pushes = opts->every_pushes,
                                             .every_ns = opts->every_ms * 1000000,
                                             .about = opts->about};

    job->archive = opts->archive;
    job->about = opts->about;
    return store_keeper_create(&keeper, &job->keeper) == TRIB_OK
               ? TRIB_OK
               : trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a store");
}

trib_status_t store_job_open(const struct store_job_opts *opts, struct trib_error *err,
                             struct store_job **out)
{
    struct store_job *job = calloc(1, sizeof(*job));

    *out = NULL;
    if (!job)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a store");
    job->ranks = opts->ranks;
    job->quota = opts->quota;
    job->metrics = opts->metrics;
    job->id = opts->id;
    job->server_fd = opts->wake_fd;
    job->tick = (struct trib_store_tick){tick, job};
    pthread_mutex_init(&job->mutex, NULL);
    trib_status_t st = allocate(job, err);
    if (st == TRIB_OK)
        (void)trib_metrics_open_mt(opts->metrics, opts->id, 0, &job->writer);
    if (st == TRIB_OK)
        st = open_keeper(job, opts, err);
    if (st == TRIB_OK) {
        errno = trib_thread_start(&job->thread, serve, job);
        if (errno)
            st = trib_fail(err, TRIB_ERR_SYSTEM, "cannot start a thread: %m");
    }
    if (st != TRIB_OK) {
        trib_metrics_close_mt(opts->metrics, opts->id);
        free_all(job);
        return st;
    }
    *out = job;
    return TRIB_OK;
}

bool store_job_add(struct store_job *job, struct trib_session *session, uint32_t rank,
                   struct credentials *credentials)
{
    struct member *m = calloc(1, sizeof(*m));

    assert(rank < job->ranks);
    if (!m)
        return false;
    m->session = session;
    m->credentials = credentials;
    m->rank = rank;
    trib_session_set_error(session, &m->err);
    (void)atomic_fetch_add(&job->present, 1);
    pthread_mutex_lock(&job->mutex);
    m->next = job->coming;
    job->coming = m;
    pthread_mutex_unlock(&job->mutex);
    wake(job->wake_fd);
    return true;
}

void store_job_end(struct store_job *job, const char *say)
{
    pthread_mutex_lock(&job->mutex);
    if (!job->ending)
        snprintf(job->say, sizeof(job->say), "%s", say);
    job->ending = true;
    pthread_mutex_unlock(&job->mutex);
    wake(job->wake_fd);
}

void store_job_drain(struct store_job *job)
{
    atomic_store(&job->draining, true);
    wake(job->wake_fd);
}

bool store_job_reap(struct store_job *job)
{
    const bool over = atomic_load(&job->over);

    free_members(take_list(job, &job->gone));
    return over;
}

bool store_job_is_deserted(const struct store_job *job)
{
    return atomic_load(&job->present) == 0;
}

const char *store_job_why(const struct store_job *job)
{
    return job->why;
}

void store_job_free(struct store_job *job)
{
    store_job_end(job, "this service was told to end");
    pthread_join(job->thread, NULL);
    assert(job->n_here == 0);
    free_members(take_list(job, &job->gone));
    free_members(take_list(job, &job->coming));
    trib_metrics_close_mt(job->metrics, job->id);
    free_all(job);
}
