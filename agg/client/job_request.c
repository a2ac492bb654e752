/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 describes its job to the aggregators and asks them to admit it. */
#include <assert.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agg/client/agg_provider.h"

static void name_job(const struct trib_comm *parent, struct trib_control_link_job *job)
{
    enum { ROOM = 4096 };
    char room[ROOM];
    struct passwd entry, *user = NULL;

    if (getpwuid_r(geteuid(), &entry, room, sizeof(room), &user) != 0)
        user = NULL;
    snprintf(job->user, sizeof(job->user), "%.64s", user ? user->pw_name : "?");
    if (parent->cfg.service_job[0])
        snprintf(job->name, sizeof(job->name), "%.64s", parent->cfg.service_job);
    else
        snprintf(job->name, sizeof(job->name), "%.20s@%.30s:%d",
                 user ? user->pw_name : "job", parent->engine.peers[0].host,
                 (int)getpid());
}

/* Count the peers of each aggregator, which needs slots for all of them. */
static trib_status_t count_peers(const struct trib_tree_layout *layout,
                                 struct trib_control_link_job *job)
{
    assert(layout->n > 0 && layout->n <= TRIB_AGGREGATORS_MAX);
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

    if (layout->tree && job->cfg.deterministic)
        return trib_fail(
            err, TRIB_ERR_UNSUPPORTED,
            "TRIB_DETERMINISTIC forbids a tree of aggregators, because the bits of "
            "partial sums depend on the tree: list one level of aggregators in "
            "TRIB_SERVICE");
    job->n = layout->n;
    memcpy(job->addresses, layout->addresses, sizeof(job->addresses));
    trib_status_t st = trib_agg_tree_pack(layout->tree, job->ranks, job->tree,
                                          sizeof(job->tree), &bytes);
    job->tree_bytes = (uint32_t)bytes;
    if (st == TRIB_ERR_OVERFLOW)
        return trib_fail(err, st,
                         "the ranks alternate between racks too often for a tree of "
                         "aggregators: number the ranks rack by rack");
    return st == TRIB_OK ? count_peers(layout, job) : st;
}

/* Lay out the aggregators above the ranks. */
static trib_status_t make_layout(const struct trib_comm *parent,
                                 struct trib_control_link_job *job,
                                 struct trib_error *err)
{
    const char **hosts = calloc((size_t)job->ranks, sizeof(*hosts));
    struct trib_tree_layout layout = {0};

    for (int r = 0; hosts && r < job->ranks; r++)
        hosts[r] = parent->engine.peers[r].host;
    trib_status_t st = hosts ? trib_tree_layout_make(&parent->cfg, hosts, job->ranks,
                                                     &parent->log, err, &layout)
                             : TRIB_ERR_NO_MEMORY;
    free(hosts);
    if (st == TRIB_OK)
        st = take_layout(&layout, job, err);
    trib_tree_layout_free(&layout);
    return st;
}

void trib_agg_provider_make_secret(struct trib_agg_provider *w,
                                   const uint8_t salt[TRIB_SECRET_BYTES])
{
    char why[160];

    if (w->parent->secret.is_set) {
        trib_secret_derive(&w->parent->secret, "service", salt, TRIB_SECRET_BYTES,
                           &w->secret);
        return;
    }
    w->secret = (struct trib_secret){.is_set = true};
    memcpy(w->secret.bytes, salt, TRIB_SECRET_BYTES);
    (void)trib_secret_arm(&w->secret, why, sizeof(why));
}

trib_status_t trib_control_link_describe(const struct trib_comm *parent,
                                         struct trib_control_link_job *job,
                                         struct trib_error *err)
{
    job->cfg = parent->cfg;
    job->ranks = parent->engine.ranks;
    name_job(parent, job);
    return make_layout(parent, job, err);
}

trib_status_t trib_agg_provider_request(struct trib_agg_provider *w,
                                        struct trib_error *err)
{
    struct trib_control_link *s;

    assert(w->parent->engine.rank == 0 && !w->control_link);
    w->job.secret = w->secret;
    trib_status_t st = trib_control_link_describe(w->parent, &w->job, err);
    if (st == TRIB_OK)
        st = trib_control_link_create(&w->job, &w->parent->log, err, &w->control_link);
    if (st != TRIB_OK)
        return st;
    s = w->control_link;
    trib_control_link_set_idle(s, w->parent->idle);
    for (int i = 0; i < w->job.n && st == TRIB_OK; i++)
        st = trib_control_link_connect(s, i, false);
    for (int i = 0; i < s->n && st == TRIB_OK; i++)
        st = trib_control_link_request(s, i);
    if (st != TRIB_OK)
        (void)trib_fail(err, st, "%s", trib_error_text(&s->err));
    return st;
}
