/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the ranks of a job come to nodes of services, at first and again. Rank 0 asks
 * each tribd, over a control connection (control_link.h); then ranks and nodes meet as
 * ranks do, what nodes have to say coming through rank 0; then all ranks tell each
 * other whether it went well. What goes wrong before that end, goes wrong on all ranks,
 * which then have no channel.
 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "offload/fallback.h"
#include "offload/control_link.h"

enum {
    LOOK_NS = 500000000, /* between two looks at the control connections */
    WHY_MAX = 400,
    PAUSE_MOST_MS = 60000,
    LASTING_MS = 60000, /* a channel that has served for so long was no mistake */
    AT_ONCE_MS = 10,
};

/* A rank's way to services: struct trib_agg_provider_ops. Rank 0 has all of it, others
 * the tree. */
struct way {
    struct trib_comm *home;
    int retry_ms; /* 0: once */
    struct trib_secret secret; /* of ranks and nodes; not that of the ranks */
    struct trib_control_link_job job;
    struct trib_control_link *control_link; /* of the channel */
    struct trib_discovery *discovery; /* there is no channel, or one of some
                                   * services alone */
    int pause_ms;                 /* of the next search */
    bool more; /* the channel is left for one of more services */
    bool stays; /* services could be had, but for a plan that cannot come along */
    uint64_t opened_ns;
};

/* What rank 0 tells the others of a step. */
struct verdict {
    int32_t status;
    int32_t services;
    int32_t retry_ms;
    uint32_t tree_bytes;
    uint8_t salt[TRIB_SECRET_BYTES];
    char why[WHY_MAX];
};

/* The ranks' and the nodes' exchanges. */
struct meeting {
    struct trib_comm *home;
    struct trib_comm *by; /* carries what ranks say */
    struct way *way;
    struct trib_control_link *control_link; /* rank 0 */
    int services;
    int exchanges;
    char why[WHY_MAX];
};

/* Rank 0 asks ---------------------------------------------------------------------- */

static void name_job(const struct trib_comm *home, struct trib_control_link_job *job)
{
    const struct passwd *user = getpwuid(geteuid());

    snprintf(job->user, sizeof(job->user), "%.64s", user ? user->pw_name : "?");
    if (home->cfg.service_job[0])
        snprintf(job->name, sizeof(job->name), "%.64s", home->cfg.service_job);
    else
        snprintf(job->name, sizeof(job->name), "%.20s@%.30s:%d",
                 user ? user->pw_name : "job", home->engine.peers[0].host,
                 (int)getpid());
}

/* Slots are for all with whom a node exchanges anything. */
static trib_status_t count_peers(const struct trib_tree_layout *layout,
                                 struct trib_control_link_job *job)
{
    for (int i = 0; i < layout->n; i++) {
        bool *peer = calloc((size_t)(job->ranks + layout->n), sizeof(*peer));
        const int peers =
            peer ? trib_agg_tree_peers(layout->tree, job->ranks, layout->n, i, peer)
                 : -1;
        free(peer);
        if (peers < 0)
            return TRIB_ERR_NO_MEMORY;
        job->peers[i] = (uint32_t)peers;
    }
    return TRIB_OK;
}

static trib_status_t take_layout(const struct trib_tree_layout *layout,
                                 struct trib_control_link_job *job,
                                 struct trib_error *err)
{
    size_t bytes = 0;

    job->n = layout->n;
    memcpy(job->addresses, layout->addresses, sizeof(job->addresses));
    trib_status_t st = trib_agg_tree_pack(layout->tree, job->ranks, job->tree,
                                          sizeof(job->tree), &bytes);
    job->tree_bytes = (uint32_t)bytes;
    if (st == TRIB_ERR_OVERFLOW)
        return trib_fail(err, st,
                         "racks change too often from rank to rank for a tree of "
                         "services: number the ranks rack by rack");
    return st == TRIB_OK ? count_peers(layout, job) : st;
}

/* Who is to sum, and as bytes how they stand above the ranks. */
static trib_status_t lay(const struct trib_comm *home,
                         struct trib_control_link_job *job, struct trib_error *err)
{
    const char **hosts = calloc((size_t)job->ranks, sizeof(*hosts));
    struct trib_tree_layout layout = {0};

    for (int r = 0; hosts && r < job->ranks; r++)
        hosts[r] = home->engine.peers[r].host;
    trib_status_t st = hosts ? trib_tree_layout_make(&home->cfg, hosts, job->ranks,
                                                     &home->log, err, &layout)
                             : TRIB_ERR_NO_MEMORY;
    free(hosts);
    if (st == TRIB_OK)
        st = take_layout(&layout, job, err);
    trib_tree_layout_free(&layout);
    return st;
}

/*
 * A secret for ranks and nodes, of which a service learns nothing about the ranks' own.
 * Where they have none it is what rank 0 has told them.
 */
static void make_secret(struct way *w, const uint8_t salt[TRIB_SECRET_BYTES])
{
    char why[160];

    if (w->home->secret.is_set) {
        trib_secret_derive(&w->home->secret, "service", salt, TRIB_SECRET_BYTES,
                           &w->secret);
        return;
    }
    w->secret = (struct trib_secret){.is_set = true};
    memcpy(w->secret.bytes, salt, TRIB_SECRET_BYTES);
    (void)trib_secret_arm(&w->secret, why, sizeof(why));
}

static trib_status_t describe_job(const struct trib_comm *home,
                                  struct trib_control_link_job *job,
                                  struct trib_error *err)
{
    job->cfg = home->cfg;
    job->ranks = home->engine.ranks;
    name_job(home, job);
    return lay(home, job, err);
}

/* As many sessions as services have a part, all admitted. */
static trib_status_t open_control_link(struct way *w, struct trib_error *err)
{
    struct trib_control_link *s;

    w->job.secret = w->secret;
    trib_status_t st = describe_job(w->home, &w->job, err);
    if (st == TRIB_OK)
        st = trib_control_link_create(&w->job, &w->home->log, err, &w->control_link);
    if (st != TRIB_OK)
        return st;
    s = w->control_link;
    for (int i = 0; i < w->job.n && st == TRIB_OK; i++)
        st = trib_control_link_connect(s, i, false);
    for (int i = 0; i < s->n && st == TRIB_OK; i++)
        st = trib_control_link_request(s, i);
    if (st != TRIB_OK)
        (void)trib_fail(err, st, "%s", trib_error_text(&s->err));
    return st;
}

/* Rank 0 looks for services, or for those that the channel lacks. */
static void search(struct way *w, uint64_t taken, int pause_ms)
{
    const struct trib_discovery_opts opts = {
        .job = &w->job, .taken = taken, .look_only = taken != 0, .pause_ms = pause_ms};

    trib_discovery_close(w->discovery);
    w->discovery = NULL;
    if (!w->retry_ms || w->home->engine.rank != 0)
        return;
    const trib_status_t st = trib_discovery_open(&opts, &w->discovery);
    if (st != TRIB_OK)
        trib_log(
            &w->home->log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
            "no search for services: %s; the job does not come to them before it "
            "starts anew",
            trib_status_str(st));
}

static void search_later(struct way *w)
{
    const int pause_ms = w->pause_ms;

    w->pause_ms = pause_ms > PAUSE_MOST_MS / 2 ? PAUSE_MOST_MS : 2 * pause_ms;
    search(w, 0, pause_ms);
}

/* Meeting -------------------------------------------------------------------------- */

static trib_status_t send_blobs(struct trib_session *session, uint64_t until,
                                struct trib_control_blobs b, const uint8_t *all)
{
    const uint32_t most = TRIB_CONTROL_BLOBS_BYTES / b.each;
    trib_status_t st = TRIB_OK;

    for (b.first = 0; b.first < b.total && st == TRIB_OK; b.first += b.count) {
        struct trib_control m = {.kind = TRIB_CONTROL_BLOBS};
        b.count = b.total - b.first < most ? b.total - b.first : most;
        b.data = (struct trib_control_bytes){all + (size_t)b.first * b.each,
                                             b.count * b.each};
        m.blobs = b;
        st = trib_session_send_wait(session, until, &m);
    }
    return st;
}

static const char *address_of(const struct trib_control_link *s, int i)
{
    return s->job->addresses[s->which[i]];
}

/* Rank 0: each node's blob to behind the ranks', and all of them to each node. */
static trib_status_t exchange_with_nodes(struct meeting *m, uint8_t *all, size_t bytes)
{
    struct trib_control_link *s = m->control_link;
    const uint32_t ranks = (uint32_t)m->home->engine.ranks;
    const uint64_t until = trib_deadline_ms(m->home->cfg.boot_timeout_ms);
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < s->n && st == TRIB_OK; i++) {
        struct trib_control c;
        st = trib_session_take_wait(s->sessions[i], until, &c);
        if (st == TRIB_INPROGRESS)
            st = trib_fail(&s->err, TRIB_ERR_TIMEOUT, "%s does not answer",
                           address_of(s, i));
        if (st != TRIB_OK)
            break;
        if (c.kind != TRIB_CONTROL_BLOBS || c.blobs.each != bytes ||
            c.blobs.count != 1 || c.blobs.first != ranks + (uint32_t)i)
            return trib_fail(&s->err, TRIB_ERR_PROTOCOL,
                             "%s gives something else than what "
                             "it is to be reached by",
                             address_of(s, i));
        memcpy(all + (ranks + (size_t)i) * bytes, c.blobs.data.at, bytes);
    }
    const struct trib_control_blobs b = {.exchange = (uint32_t)m->exchanges,
                                         .total = ranks + (uint32_t)s->n,
                                         .each = (uint32_t)bytes};
    for (int i = 0; i < s->n && st == TRIB_OK; i++)
        st = send_blobs(s->sessions[i], until, b, all);
    return st;
}

static trib_status_t wireup_with_aggregators(void *arg, const char *phase,
                                             const void *in, size_t bytes, void *out)
{
    struct meeting *m = arg;
    const size_t ranks = (size_t)m->home->engine.ranks, nodes = (size_t)m->services;
    uint8_t *all = out, *told = calloc(1, sizeof(struct verdict) + nodes * bytes);
    struct verdict v = {0};

    (void)phase;
    if (!told)
        return TRIB_ERR_NO_MEMORY;
    trib_status_t st = trib_comm_exchange(m->by, TRIB_ALLGATHER, in, bytes, all);
    if (st == TRIB_OK && m->control_link) {
        v.status = exchange_with_nodes(m, all, bytes);
        if (v.status != TRIB_OK)
            snprintf(v.why, sizeof(v.why), "%s",
                     trib_error_text(&m->control_link->err));
        memcpy(told, &v, sizeof(v));
        memcpy(told + sizeof(v), all + ranks * bytes, nodes * bytes);
    }
    m->exchanges++;
    if (st == TRIB_OK)
        st = trib_comm_exchange(m->by, TRIB_BROADCAST, NULL, sizeof(v) + nodes * bytes,
                                told);
    memcpy(&v, told, sizeof(v));
    memcpy(all + ranks * bytes, told + sizeof(v), nodes * bytes);
    free(told);
    if (st == TRIB_OK && v.status != TRIB_OK) {
        snprintf(m->why, sizeof(m->why), "%.*s", (int)sizeof(v.why) - 1, v.why);
        st = trib_status_of_peer(v.status);
    }
    return st;
}

/* A rank that could not go on takes part in what is left, so that others need not
 * wait. */
static void stand_by(struct meeting *m)
{
    size_t bytes;

    while ((bytes = trib_wireup_bytes(m->exchanges)) > 0) {
        const size_t n = (size_t)(m->home->engine.ranks + m->services);
        uint8_t *none = calloc(1, bytes), *all = calloc(n, bytes);
        const int before = m->exchanges;
        if (none && all)
            (void)wireup_with_aggregators(m, "stand by", none, bytes, all);
        free(none);
        free(all);
        if (m->exchanges == before || m->by->engine.failed)
            return;
    }
}

/* Did all ranks do well? The first sentence of those that did not, on all ranks. */
static trib_status_t agree(struct trib_comm *by, trib_status_t mine, char why[WHY_MAX])
{
    struct verdict v = {.status = mine},
                   *all = calloc((size_t)by->engine.ranks, sizeof(v));

    if (!all)
        return TRIB_ERR_NO_MEMORY;
    snprintf(v.why, sizeof(v.why), "%s", why);
    trib_status_t st = trib_comm_exchange(by, TRIB_ALLGATHER, &v, sizeof(v), all);
    for (int r = 0; st == TRIB_OK && r < by->engine.ranks; r++) {
        if (all[r].status == TRIB_OK)
            continue;
        st = trib_status_of_peer(all[r].status);
        snprintf(why, WHY_MAX, "%.*s", WHY_MAX - 1, all[r].why);
    }
    free(all);
    return st;
}

/* Control connections, once there is a channel ------------------------------------- */

/*
 * They are kept alive; who ends one, or is silent, does not sum any more. The home's
 * lock may be held, and other threads may hold the channel's.
 */
static void look(void *arg)
{
    struct way *w = arg;
    struct trib_control_link *s = w->control_link;
    struct trib_comm *channel = w->home->offload->channel;
    const uint64_t now = trib_now_ns();

    if (!s || now - s->looked < LOOK_NS)
        return;
    const trib_status_t st = trib_control_link_step(s);
    if (st != TRIB_OK) {
        if (!trib_comm_try_lock(channel))
            return; /* soon again */
        trib_engine_fail(&channel->engine, st, trib_error_text(&s->err));
        trib_comm_unlock(channel);
    }
    s->looked = now;
}

static trib_status_t announce(void *arg, uint32_t number, const char *text,
                              struct trib_error *err)
{
    struct way *w = arg;
    struct trib_control_link *s = w->control_link;
    struct trib_control m = {.kind = TRIB_CONTROL_PLAN, .plan.number = number};
    trib_status_t st = TRIB_OK;

    snprintf(m.plan.text, sizeof(m.plan.text), "%s", text);
    for (int i = 0; i < s->n && st == TRIB_OK; i++)
        st = trib_session_send_wait(s->sessions[i],
                                    trib_deadline_ms(w->home->cfg.stop_timeout_ms), &m);
    if (st == TRIB_OK)
        return st;
    (void)trib_fail(err, st, "%s", trib_error_text(&s->err));
    struct trib_comm *channel = w->home->offload->channel;
    if (channel) {
        trib_comm_lock(channel);
        trib_engine_fail(&channel->engine, st, trib_error_text(&s->err));
        trib_comm_unlock(channel);
    }
    return st;
}

/* All of it ------------------------------------------------------------------------ */

static trib_status_t open_channel(struct meeting *m, struct trib_comm **out)
{
    const struct trib_guard guard = {.ranks = m->home->engine.ranks};
    struct trib_agg_comm_opts opts = {.rank = m->home->engine.rank,
                                      .ranks = m->home->engine.ranks,
                                      .services = m->services,
                                      .met = m->home->met,
                                      .guard = &guard,
                                      .secret = &m->way->secret};
    const struct trib_control_link_job *job = &m->way->job;
    struct trib_agg_tree *tree;
    struct trib_exchange x = {wireup_with_aggregators, m};
    struct trib_error err = {0};

    if (m->control_link)
        opts.announcer = (struct trib_announcer){announce, m->way};
    trib_status_t st = trib_agg_tree_unpack(job->tree, job->tree_bytes, opts.ranks,
                                            opts.services, &err, &tree);
    opts.tree = tree;
    if (st == TRIB_OK)
        st = trib_agg_comm_open(&m->home->cfg, &m->home->log, &opts, &x, &err, out);
    free(tree);
    if (st == TRIB_OK)
        return st;
    if (!m->why[0])
        snprintf(m->why, sizeof(m->why), "%s", trib_error_text(&err));
    stand_by(m);
    return st;
}

/* With the control_link that rank 0 has; the same on all ranks. */
static trib_status_t meet(struct way *w, struct trib_comm *by, int services,
                          char why[WHY_MAX], struct trib_comm **out)
{
    struct meeting m = {.home = w->home, .by = by, .way = w, .services = services};

    *out = NULL;
    if (w->home->engine.rank == 0)
        m.control_link = w->control_link;
    trib_status_t st = open_channel(&m, out);
    st = agree(by, st, m.why);
    if (st != TRIB_OK && *out)
        trib_agg_comm_dispose(*out);
    snprintf(why, WHY_MAX, "%s", m.why);
    return st;
}

/* Who serves, for people; rank 0 then looks for the others. */
static void opened(struct way *w, char *text, size_t bytes)
{
    uint64_t taken = 0;
    size_t at = 0;

    w->opened_ns = trib_now_ns();
    w->more = false;
    text[0] = 0;
    for (int i = 0; i < w->control_link->n && at < bytes; i++) {
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i ? ", " : "",
                               address_of(w->control_link, i));
        taken |= UINT64_C(1) << w->control_link->which[i];
    }
    if (at < bytes)
        snprintf(text + at, bytes - at, " (%d of %d) sum%s", w->control_link->n,
                 w->job.n, w->control_link->n == 1 ? "s" : "");
    if (w->control_link->n < w->job.n)
        search(w, taken, w->retry_ms);
}

/* A tree has no quorum (quorum.c): a plan that has one, of a time without services,
 * would end the channel with its next start. So nobody goes there while there is such a
 * plan. */
static bool must_stay(struct way *w)
{
    const bool stays = w->job.tree_bytes && trib_offload_any_quorum(w->home->offload);

    if (stays && !w->stays)
        trib_log(
            &w->home->log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
            "services would have the job, as a tree, which has no quorum; a plan has "
            "one: the ranks go on by themselves while there is such a plan (name "
            "services of one unit in TRIB_SERVICE, or leave the quorum out)");
    w->stays = stays;
    return stays;
}

static bool found(void *arg)
{
    struct way *w = arg;

    if (!w->discovery || !trib_discovery_found(w->discovery) || must_stay(w))
        return false;
    w->more = w->home->offload->channel;
    return true;
}

/* Of rank 0: its numbers become sizes here, and its text may have no end. */
static trib_status_t check_verdict(struct trib_comm *by, struct verdict *v)
{
    v->why[sizeof(v->why) - 1] = 0;
    v->retry_ms = v->retry_ms > 0 ? v->retry_ms : 0;
    if (v->services >= (v->status == TRIB_OK) &&
        v->services <= TRIB_CONTROL_NODES_MAX && v->tree_bytes <= TRIB_CONTROL_TREE_MAX)
        return TRIB_OK;
    return trib_comm_fail(
        by, TRIB_ERR_PROTOCOL,
        "rank 0 says that %d services have the job, in a tree of %u bytes, "
        "which cannot be: do all ranks run one version?",
        (int)v->services, (unsigned)v->tree_bytes);
}

static trib_status_t come_again(void *arg, struct trib_comm **out, char *text,
                                size_t bytes)
{
    struct way *w = arg;
    struct trib_comm *by = w->home->offload->control_comm;
    struct verdict v = {.status = TRIB_ERR_NO_RESOURCE,
                        .why = "no service would have the job"};

    if (w->discovery) {
        w->control_link = trib_discovery_take(w->discovery);
        trib_discovery_close(w->discovery);
        w->discovery = NULL;
    }
    if (w->control_link) {
        w->control_link->job = &w->job;
        w->control_link->log = &w->home->log;
        v = (struct verdict){.services = w->control_link->n};
    }
    trib_status_t st = trib_comm_exchange(by, TRIB_BROADCAST, NULL, sizeof(v), &v);
    if (st == TRIB_OK)
        st = check_verdict(by, &v);
    if (st == TRIB_OK && v.status == TRIB_OK)
        v.status = meet(w, by, v.services, v.why, out);
    st = st == TRIB_OK ? trib_status_of_peer(v.status) : st;
    snprintf(text, bytes, "%s", v.why);
    if (w->home->engine.rank != 0)
        return st;
    if (st == TRIB_OK) {
        opened(w, text, bytes);
    } else {
        trib_control_link_free(w->control_link);
        w->control_link = NULL;
        search_later(w);
    }
    return st;
}

static void lost(void *arg)
{
    struct way *w = arg;

    if (w->home->engine.rank != 0)
        return;
    trib_control_link_free(w->control_link);
    w->control_link = NULL;
    if (w->home->engine.failed) { /* the job holds nothing of a service any more */
        trib_discovery_close(w->discovery);
        w->discovery = NULL;
        return;
    }
    if (trib_now_ns() - w->opened_ns >= LASTING_MS * UINT64_C(1000000))
        w->pause_ms = w->retry_ms;
    if (w->more)
        search(w, 0, AT_ONCE_MS);
    else
        search_later(w);
}

static void free_way(void *arg)
{
    struct way *w = arg;

    trib_discovery_close(w->discovery);
    trib_control_link_free(w->control_link);
    trib_secret_wipe(&w->secret);
    trib_secret_wipe(&w->job.secret);
    free(w);
}

/* Of rank 0, and the others hear of it: does it begin with services, and may it come
 * later? */
static trib_status_t begin(struct way *w, struct verdict *v)
{
    struct trib_comm *comm = w->home;
    struct trib_error err = {0};

    if (comm->engine.rank == 0) {
        struct trib_secret salt;
        v->status = trib_secret_make(&salt, &err);
        memcpy(v->salt, salt.bytes, sizeof(v->salt));
        make_secret(w, v->salt);
        if (v->status == TRIB_OK)
            v->status = open_control_link(w, &err);
        v->services = w->control_link ? w->control_link->n : 0;
        v->retry_ms = v->status == TRIB_ERR_CONFIG ? 0 : comm->cfg.service_retry_ms;
        v->tree_bytes = w->job.tree_bytes;
        snprintf(v->why, sizeof(v->why), "%s", trib_error_text(&err));
    }
    trib_status_t st = trib_comm_exchange(comm, TRIB_BROADCAST, NULL, sizeof(*v), v);
    if (st == TRIB_OK)
        st = check_verdict(comm, v);
    if (st != TRIB_OK)
        return st;
    make_secret(w, v->salt);
    w->retry_ms = w->pause_ms = v->retry_ms;
    w->job.tree_bytes = v->tree_bytes;
    return v->tree_bytes ? trib_comm_exchange(comm, TRIB_BROADCAST, NULL, v->tree_bytes,
                                              w->job.tree)
                         : TRIB_OK;
}

static trib_status_t attach(struct way *w, struct verdict *v)
{
    struct trib_comm *comm = w->home;
    struct trib_comm *channel = NULL;

    const trib_status_t st = trib_offload_attach(comm);
    if (st != TRIB_OK)
        return st;
    struct trib_offload *offload = comm->offload;
    offload->way =
        (struct trib_agg_provider_ops){.lost = lost, .free = free_way, .arg = w};
    if (w->retry_ms)
        offload->way.open = come_again;
    if (comm->engine.rank == 0) {
        offload->way.look = look;
        offload->way.found = found;
    }
    if (v->status == TRIB_OK)
        v->status = meet(w, offload->control_comm, v->services, v->why, &channel);
    offload->channel = v->status == TRIB_OK ? channel : NULL;
    if (offload->channel)
        w->opened_ns = trib_now_ns();
    else if (w->retry_ms)
        offload->ask_at = 1;
    return comm->engine.failed;
}

trib_status_t trib_offload_join(struct trib_comm *comm)
{
    struct verdict v = {0};

    if (!comm->cfg.service[0])
        return TRIB_OK;
    struct way *w = calloc(1, sizeof(*w));
    if (!w)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a service");
    w->home = comm;
    trib_status_t st = begin(w, &v);
    if (st == TRIB_OK && (v.status == TRIB_OK || v.retry_ms))
        st = attach(w, &v);
    const bool serves = comm->offload && comm->offload->channel;
    if (st == TRIB_OK && !serves && comm->engine.rank == 0) {
        trib_log(&comm->log, TRIB_LOG_WARN, TRIB_OFFLOAD_LOG,
                 "%s; the ranks sum without a service",
                 v.why[0] ? v.why : "no service");
        trib_control_link_free(w->control_link);
        w->control_link = NULL;
        if (comm->offload)
            search_later(w);
    }
    if (!comm->offload)
        free_way(w);
    else if (st == TRIB_OK && !serves && !w->retry_ms)
        st = trib_offload_detach(comm);
    return st;
}
