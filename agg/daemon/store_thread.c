/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of one thread of a store. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agg/daemon/store_job_parts.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    MESSAGES_MOST = 32, /* messages from one rank per pass */
    TICK_MS = 1000,
};

static void wake(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

void store_thread_wake(struct store_thread *t)
{
    wake(t->wake_fd);
}

/* Let a thread check its waiting pulls again. */
static void move(struct store_thread *t)
{
    atomic_store(&t->moved, true);
    store_thread_wake(t);
}

/* Let all threads check waiting pulls after a change. Threads without a waiting pull
 * are skipped: a new waiter sets `waits` first and then checks again. */
static void move_all(struct store_thread *self)
{
    const struct store_job *job = self->job;

    atomic_store(&self->moved, true);
    for (uint32_t i = 0; i < job->n_threads; i++)
        if (i != self->index && atomic_load(&job->threads[i].waits))
            move(&job->threads[i]);
}

/* The ranks ------------------------------------------------------------------------ */

/* Move the member to the list that the server thread frees. */
static void retire(struct store_job *job, struct store_member *m)
{
    pthread_mutex_lock(&job->mutex);
    m->next = job->gone;
    job->gone = m;
    pthread_mutex_unlock(&job->mutex);
    (void)atomic_fetch_sub(&job->present, 1);
    wake(job->opts.wake_fd);
}

static void remove_member(struct store_thread *t, uint32_t rank,
                          enum store_presence now)
{
    struct store_job *job = t->job;
    struct store_member *m = job->members[rank];

    assert(m && t->n_here > 0);
    if (m->order.number && job->keeper)
        store_keeper_withdraw(job->keeper, rank);
    trib_store_peer_free(m->peer);
    m->peer = NULL;
    job->members[rank] = NULL;
    job->presence[rank] = (uint8_t)now;
    t->n_here--;
    trib_store_set_presence(job->table, rank,
                            now == STORE_RANK_LEFT ? TRIB_STORE_LEFT : TRIB_STORE_LOST);
    pthread_mutex_lock(&job->mutex);
    job->n_lost += now == STORE_RANK_LOST;
    if (--job->n_here == 0)
        job->empty_ns = trib_now_ns();
    pthread_mutex_unlock(&job->mutex);
    retire(job, m);
    move_all(t);
    store_thread_wake(&job->threads[0]); /* the store may have ended */
}

static void note_made(void *arg, uint32_t vector)
{
    const struct store_thread *t = arg;

    store_keeper_found(t->job->keeper, vector);
}

static void add_member(struct store_thread *t, struct store_member *m)
{
    static const struct trib_control joined = {.kind = TRIB_CONTROL_STORE_JOINED};
    struct store_job *job = t->job;
    const struct trib_store_peer_opts opts = {
        job->table, m->rank, job->opts.quota, &t->tick, job->opts.archive,
        note_made,  t};

    assert(m->rank < job->opts.ranks && m->rank % job->n_threads == t->index);
    if (job->members[m->rank])
        remove_member(t, m->rank, STORE_RANK_LOST);
    const bool fits = trib_store_peer_create(&opts, &m->peer) == TRIB_OK;
    pthread_mutex_lock(&job->mutex);
    job->n_lost -= job->presence[m->rank] == STORE_RANK_LOST;
    job->n_here++;
    job->empty_ns = 0;
    pthread_mutex_unlock(&job->mutex);
    job->presence[m->rank] = STORE_RANK_HERE;
    trib_store_set_presence(job->table, m->rank, TRIB_STORE_PRESENT);
    job->members[m->rank] = m;
    t->n_here++;
    m->more = true; /* input after STORE_JOIN is buffered: poll would miss it */
    if (fits) {
        (void)trib_session_send(m->session, &joined);
        return;
    }
    (void)trib_session_end(m->session, TRIB_ERR_NO_MEMORY,
                           "out of memory for another rank of the store");
    remove_member(t, m->rank, STORE_RANK_LOST); /* it may join again */
}

void store_thread_take_joiners(struct store_thread *t)
{
    struct store_member *in_order = NULL;

    pthread_mutex_lock(&t->job->mutex);
    struct store_member *coming = t->coming;
    t->coming = NULL;
    pthread_mutex_unlock(&t->job->mutex);
    while (coming) { /* the newest is first: of two joins of a rank, the later counts */
        struct store_member *m = coming;
        coming = m->next;
        m->next = in_order;
        in_order = m;
    }
    while (in_order) {
        struct store_member *m = in_order;
        in_order = m->next;
        add_member(t, m);
    }
}

/* Send pending messages to the rank, as far as there is room. */
static trib_status_t give(struct store_member *m)
{
    struct trib_control out;
    trib_status_t st = TRIB_OK;

    while (st == TRIB_OK && trib_session_has_room(m->session) &&
           trib_store_peer_next(m->peer, &out)) {
        st = trib_session_send(m->session, &out);
        if (st == TRIB_OK)
            trib_store_peer_sent(m->peer);
    }
    return st == TRIB_ERR_NO_RESOURCE ? TRIB_OK : st;
}

/* Process one message; TRIB_INPROGRESS: none. */
static trib_status_t take(struct store_member *m, bool *left_out)
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

static void count(struct trib_metrics_writer *w, const struct trib_store_counts *before,
                  const struct trib_store_counts *now)
{
    if (!w)
        return;
    trib_metrics_count(w, TRIB_JOB_COUNTS_VECTORS, now->vectors - before->vectors);
    trib_metrics_count(w, TRIB_JOB_COUNTS_PUSHES, now->pushes - before->pushes);
    trib_metrics_count(w, TRIB_JOB_COUNTS_PULLS, now->pulls - before->pulls);
    trib_metrics_count(w, TRIB_JOB_COUNTS_RECEIVED, now->received - before->received);
    trib_metrics_count(w, TRIB_JOB_COUNTS_SENT, now->sent - before->sent);
}

static void step_member(struct store_thread *t, uint32_t rank)
{
    static const struct trib_control drain = {.kind = TRIB_CONTROL_DRAIN};
    struct store_member *m = t->job->members[rank];
    const struct trib_store_counts before = trib_store_peer_counts(m->peer);
    trib_status_t st = TRIB_OK;
    bool left = false;
    int taken = 0;

    assert(m->rank == rank && m->peer);
    if (atomic_load(&t->job->draining) && !m->notified)
        m->notified = trib_session_send(m->session, &drain) == TRIB_OK;
    for (; st == TRIB_OK && !left && taken < MESSAGES_MOST; taken++) {
        store_turn_give_way(t->job->opts.turns, &t->turn, &t->alive);
        st = give(m);
        if (st == TRIB_OK)
            st = take(m, &left);
    }
    m->more = st == TRIB_OK;
    if (st == TRIB_INPROGRESS)
        st = give(m);
    const struct trib_store_counts now = trib_store_peer_counts(m->peer);
    count(t->writer, &before, &now);
    struct trib_control_store_snapshot what;
    if (now.changes != before.changes)
        move_all(t);
    if (!m->order.number && trib_store_peer_wants(m->peer, &what))
        m->order = store_keeper_give(t->job->keeper, rank, &what);
    if (left || st < TRIB_OK)
        remove_member(t, rank, left ? STORE_RANK_LEFT : STORE_RANK_LOST);
}

/* Snapshots ------------------------------------------------------------------------ */

/* Publish a snapshot's result to all threads; may_publish was true. */
static void publish(struct store_thread *self, const struct store_kept *kept)
{
    struct store_job *job = self->job;

    pthread_mutex_lock(&job->mutex);
    job->kept[job->n_kept++ % STORE_KEPT_MAX] = *kept;
    pthread_mutex_unlock(&job->mutex);
    for (uint32_t i = 0; i < job->n_threads; i++)
        move(&job->threads[i]); /* a restore may have changed the vector */
}

/* Return true if every thread has room for one more result. */
static bool may_publish(struct store_job *job)
{
    uint64_t least = UINT64_MAX;

    pthread_mutex_lock(&job->mutex);
    for (uint32_t i = 0; i < job->n_threads; i++)
        if (job->threads[i].kept_seen < least)
            least = job->threads[i].kept_seen;
    const bool room = job->n_kept - least + 1 < STORE_KEPT_MAX;
    pthread_mutex_unlock(&job->mutex);
    return room;
}

/* Pass a result to the thread's ranks that wait for it. */
static void report_kept(struct store_thread *t, const struct store_kept *kept)
{
    struct store_job *job = t->job;

    for (uint32_t r = t->index; r < job->opts.ranks; r += job->n_threads) {
        struct store_member *m = job->members[r];
        if (!m || !store_keeper_answers(kept, &m->order))
            continue;
        trib_store_peer_kept(m->peer, &kept->what, kept->changes, &kept->err);
        m->order.number = 0;
        (void)give(m); /* the next step returns the error, too */
    }
}

/* Process new snapshot results. */
static void hear_kept(struct store_thread *t)
{
    struct store_job *job = t->job;
    struct store_kept kept;
    bool news = true;

    while (news) {
        pthread_mutex_lock(&job->mutex);
        assert(job->n_kept - t->kept_seen <= STORE_KEPT_MAX);
        news = t->kept_seen < job->n_kept;
        if (news)
            kept = job->kept[t->kept_seen++ % STORE_KEPT_MAX];
        pthread_mutex_unlock(&job->mutex);
        if (news)
            report_kept(t, &kept);
    }
}

static void keep(struct store_thread *t)
{
    struct store_job *job = t->job;
    struct store_kept kept;

    if (t->index == 0 && may_publish(job) &&
        store_keeper_step(job->keeper, &t->tick, &kept))
        publish(t, &kept);
    hear_kept(t);
}

/* A pass --------------------------------------------------------------------------- */

/* Keep the connections of the thread's ranks alive. */
static void send_alive(void *arg, uint64_t walk_ns)
{
    const struct store_thread *t = arg;
    const struct store_job *job = t->job;

    (void)walk_ns;
    for (uint32_t r = t->index; r < job->opts.ranks; r += job->n_threads)
        if (job->members[r])
            trib_session_keep_alive(job->members[r]->session);
}

/* Called during a long push: keep connections alive and let other stores have their
 * turns. */
static void tick(void *arg, uint64_t walk_ns)
{
    struct store_thread *t = arg;

    send_alive(t, walk_ns);
    t->turn.walk_ns = walk_ns;
    store_turn_pause(t->job->opts.turns, &t->turn, &t->alive);
}

/* Fill in the descriptors to poll; return their number, and the next due time. */
static uint32_t prepare_wait(struct store_thread *t, uint64_t *due_out)
{
    const struct store_job *job = t->job;
    uint32_t n = 0;

    *due_out = trib_deadline_ms(TICK_MS);
    t->fds[0] = (struct pollfd){.fd = t->wake_fd, .events = POLLIN};
    for (uint32_t r = t->index; r < job->opts.ranks && n < t->n_here;
         r += job->n_threads) {
        const struct store_member *m = job->members[r];
        if (!m)
            continue;
        const uint64_t pull = trib_store_peer_due(m->peer);
        const uint64_t session = trib_session_due(m->session);
        const uint64_t due = m->more ? 0 : pull < session ? pull : session;
        t->who[n] = r;
        t->fds[1 + n++] = (struct pollfd){.fd = trib_session_fd(m->session),
                                          .events = trib_session_events(m->session)};
        *due_out = due < *due_out ? due : *due_out;
    }
    return n;
}

static bool has_waiting(const struct store_thread *t)
{
    const struct store_job *job = t->job;

    for (uint32_t r = t->index; r < job->opts.ranks; r += job->n_threads)
        if (job->members[r] && trib_store_peer_due(job->members[r]->peer) != UINT64_MAX)
            return true;
    return false;
}

/* Complete pulls that waited for a change, or refuse those that timed out. */
static void wake_pulls(struct store_thread *t)
{
    const struct store_job *job = t->job;
    const bool waits = has_waiting(t);
    const bool did = atomic_exchange(&t->waits, waits);
    const bool moved = atomic_exchange(&t->moved, false) || (waits && !did);

    if (!waits)
        return;
    const uint64_t now_ns = trib_now_ns();
    for (uint32_t r = t->index; r < job->opts.ranks; r += job->n_threads) {
        struct store_member *m = job->members[r];
        if (!m || (!moved && trib_store_peer_due(m->peer) > now_ns))
            continue;
        store_turn_give_way(t->job->opts.turns, &t->turn, &t->alive);
        trib_store_peer_wake(m->peer, now_ns);
        (void)give(m); /* the next step returns the error, too */
    }
}

/* Return true if one of the first n polled ranks may have buffered input. */
static bool has_more(const struct store_thread *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct store_member *m = t->job->members[t->who[i]];
        if (m && m->more)
            return true;
    }
    return false;
}

void store_thread_serve(struct store_thread *t)
{
    struct store_job *job = t->job;
    uint64_t due, count;
    const uint32_t n = prepare_wait(t, &due);
    const int ready = trib_poll(t->fds, n + 1, trib_deadline_left_ms(due));

    store_turn_begin(job->opts.turns, &t->turn, &job->flow, &t->alive);
    const uint64_t began_ns = trib_now_ns();
    if (t->fds[0].revents)
        (void)!read(t->wake_fd, &count, sizeof(count));
    for (uint32_t i = 0; i < n; i++) {
        struct store_member *m = job->members[t->who[i]];
        if (ready < 0 || t->fds[1 + i].revents || m->more ||
            (atomic_load(&job->draining) && !m->notified) ||
            began_ns >= trib_session_due(m->session))
            step_member(t, t->who[i]);
    }
    if (job->opts.archive)
        keep(t);
    wake_pulls(t);
    store_thread_take_joiners(t);
    if (t->writer)
        trib_metrics_count(t->writer, TRIB_JOB_COUNTS_BUSY, trib_now_ns() - began_ns);
    store_turn_end(job->opts.turns, &t->turn, has_more(t, n));
}

void store_thread_rest(struct store_thread *t)
{
    store_turn_end(t->job->opts.turns, &t->turn, false);
}

void store_thread_end(struct store_thread *t)
{
    struct store_job *job = t->job;

    for (uint32_t r = t->index; r < job->opts.ranks; r += job->n_threads) {
        if (!job->members[r])
            continue;
        if (!atomic_load(&job->draining)) /* else ranks reconnect after the restart */
            (void)trib_session_end(job->members[r]->session, TRIB_ERR_ABORTED, "%s",
                                   job->why);
        remove_member(t, r, STORE_RANK_LEFT);
    }
}

/* Life ----------------------------------------------------------------------------- */

trib_status_t store_thread_open(struct store_job *job, uint32_t index,
                                struct trib_error *err)
{
    struct store_thread *t = &job->threads[index];
    const size_t ranks = (job->opts.ranks - index - 1) / job->n_threads + 1;

    assert(index < job->opts.ranks);
    t->job = job;
    t->index = index;
    t->tick = (struct trib_store_tick){tick, t};
    t->alive = (struct trib_store_tick){send_alive, t};
    t->fds = calloc(ranks + 1, sizeof(*t->fds));
    t->who = calloc(ranks, sizeof(*t->who));
    t->wake_fd = trib_fd_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (t->wake_fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot wait for ranks: %m");
    if (!t->fds || !t->who)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory for a store");
    (void)trib_metrics_open_mt(job->opts.metrics, job->opts.id, 0, &t->writer);
    return TRIB_OK;
}

void store_thread_free(struct store_thread *t)
{
    if (t->job && t->wake_fd >= 0)
        close(t->wake_fd);
    free(t->fds);
    free(t->who);
}
