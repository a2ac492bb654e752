/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sub-communicators. Members exchange their wireup messages over the parent.
 */
#include "comm/members/split.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "comm/core/identity.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/members/leave.h"
#include "comm/members/wireup.h"
#include "comm/plan/exchange.h"

/* Exchanges between the members of a child, by all-gathers of the parent. */
struct members {
    struct trib_comm *parent;
    const struct trib_config *cfg; /* of the child */
    const int *ranks; /* [size] rank of each member in the parent */
    int size;
    int exchanges; /* exchanges so far */
    bool within; /* the parent outlives the child */
};

static trib_status_t member_allgather(void *arg, const char *phase, const void *in,
                                      size_t bytes, void *out)
{
    struct members *m = arg;
    char *all = malloc((size_t)m->parent->engine.size * bytes);

    (void)phase;
    if (!all)
        return TRIB_ERR_NO_MEMORY;
    assert(m->size <= m->parent->engine.size);
    m->exchanges++;
    trib_status_t st = trib_comm_exchange(m->parent, TRIB_ALLGATHER, in, bytes, all);
    for (int i = 0; st == TRIB_OK && i < m->size; i++)
        memcpy((char *)out + (size_t)i * bytes, all + (size_t)m->ranks[i] * bytes,
               bytes);
    free(all);
    return st;
}

struct split_key {
    int32_t color;
    int32_t key;
};

/* List the members with this rank's color, ordered by key, then by rank. Return this
 * rank's position, or -1. */
static int find_members(const struct split_key *all, int size, int rank, int *ranks,
                        int *n_out)
{
    int n = 0, mine = -1;

    for (int r = 0; r < size && all[rank].color >= 0; r++) {
        if (all[r].color != all[rank].color)
            continue;
        int at = n++;
        while (at > 0 && all[ranks[at - 1]].key > all[r].key) {
            ranks[at] = ranks[at - 1];
            at--;
        }
        ranks[at] = r;
    }
    for (int i = 0; i < n; i++)
        if (ranks[i] == rank)
            mine = i;
    assert((mine >= 0) == (all[rank].color >= 0));
    *n_out = n;
    return mine;
}

/* Take part in the other ranks' exchanges, from number `first` on; for a rank without a
 * color, or after a local failure. */
static trib_status_t stand_by(struct trib_comm *parent, int first)
{
    trib_status_t st = TRIB_OK;
    size_t bytes;

    for (int i = first; st == TRIB_OK && (bytes = trib_wireup_bytes(i)) > 0; i++) {
        char *none = calloc(1, bytes),
             *all = malloc(bytes * (size_t)parent->engine.size);
        st = none && all ? trib_comm_exchange(parent, TRIB_ALLGATHER, none, bytes, all)
                         : TRIB_ERR_NO_MEMORY;
        free(none);
        free(all);
    }
    return st;
}

trib_status_t trib_comm_make_child(struct trib_comm *parent, const struct trib_child *c,
                                   const struct trib_exchange *x,
                                   struct trib_error *err, struct trib_comm **out)
{
    struct trib_comm *child = calloc(1, sizeof(*child));

    if (!child)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for a communicator");
    assert(c->rank >= 0 && c->rank < c->size);
    trib_comm_claim(child);
    child->cfg = *c->cfg;
    child->met = parent->met;
    child->rank_clock = parent->rank_clock;
    child->secret = parent->secret;
    child->rewinds = parent->rewinds;
    child->chunk_asked = c->cfg == &parent->cfg ? parent->chunk_asked : c->cfg->chunk;
    child->window_asked =
        c->cfg == &parent->cfg ? parent->window_asked : c->cfg->window;
    child->log = parent->log;
    trib_comm_set_idle(child, parent->own_idle.call, parent->own_idle.arg);
    if (c->within)
        child->idle = parent->idle;
    trib_log_pace_init(&child->log_pace); /* the parent may be freed first */
    child->log.pace = &child->log_pace;
    snprintf(child->label, sizeof(child->label), "%.12s-%s%d", parent->label, c->made,
             ++parent->n_children);
    trib_status_t st = trib_comm_wireup(child, c->rank, c->size, x);
    if (st == TRIB_OK && parent->gate && !c->within)
        st = trib_gate_make(child);
    if (st != TRIB_OK) {
        (void)trib_fail(err, st, "%s", trib_last_error(child));
        trib_comm_dispose(child);
        return st;
    }
    *out = child;
    return TRIB_OK;
}

static trib_status_t make_child(struct trib_comm *parent, struct members *m, int rank,
                                trib_comm_t **comm_out)
{
    const struct trib_child c = {.cfg = m->cfg,
                                 .rank = rank,
                                 .size = m->size,
                                 .within = m->within,
                                 .made = "split"};
    struct trib_exchange x = {member_allgather, m};
    struct trib_error err = {0};
    const trib_status_t st = trib_comm_make_child(parent, &c, &x, &err, comm_out);

    return st == TRIB_OK ? st : trib_comm_fail(parent, st, "%s", trib_error_text(&err));
}

/* Dispose of the communicator if another member could not join. */
static trib_status_t agree(struct members *m, trib_status_t mine,
                           trib_comm_t **comm_out)
{
    struct trib_comm *parent = m->parent;
    int32_t status = mine, *all = calloc((size_t)parent->engine.size, sizeof(*all));
    trib_status_t st =
        all ? trib_comm_exchange(parent, TRIB_ALLGATHER, &status, sizeof(status), all)
            : TRIB_ERR_NO_MEMORY;

    for (int i = 0; st == TRIB_OK && mine == TRIB_OK && i < m->size; i++) {
        trib_status_t theirs = trib_status_of_peer(all[m->ranks[i]]);
        if (theirs != TRIB_OK)
            st = trib_comm_fail(parent, theirs,
                                "trib_split: rank %d could not join: %s; its own "
                                "trib_last_error gives the reason",
                                m->ranks[i], trib_status_str(theirs));
    }
    free(all);
    if (st != TRIB_OK && *comm_out) {
        trib_comm_dispose(*comm_out);
        *comm_out = NULL;
    }
    return mine == TRIB_OK ? st : mine;
}

static trib_status_t split(struct trib_comm *comm, const struct trib_config *cfg,
                           struct split_key mine, bool within,
                           struct trib_comm **comm_out)
{
    int size = comm->engine.size, n;
    struct split_key *all = calloc((size_t)size, sizeof(*all));
    int *ranks = calloc((size_t)size, sizeof(*ranks));
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    *comm_out = NULL;
    if (all && ranks)
        st = trib_comm_exchange(comm, TRIB_ALLGATHER, &mine, sizeof(mine), all);
    if (st == TRIB_OK) {
        int rank = find_members(all, size, comm->engine.rank, ranks, &n);
        struct members m = {comm, cfg, ranks, n, 0, within};
        if (rank >= 0)
            st = make_child(comm, &m, rank, comm_out);
        /* If this exchange failed, so has the parent, and nothing is left to
         * exchange. */
        trib_status_t rest = rank < 0 || st != TRIB_OK ? stand_by(comm, m.exchanges)
                                                       : TRIB_OK;
        st = agree(&m, st == TRIB_OK ? rest : st, comm_out);
    }
    free(all);
    free(ranks);
    return st;
}

/* Split, and derive the identity for random numbers from the parent's. */
static trib_status_t split_known(struct trib_comm *comm, struct split_key mine,
                                 bool within, struct trib_comm **comm_out)
{
    const uint64_t starts = comm->starts;
    const trib_status_t st = split(comm, &comm->cfg, mine, within, comm_out);

    if (*comm_out)
        (*comm_out)->identity = trib_identity_split(comm, starts, mine.color);
    return st;
}

trib_status_t trib_split(trib_comm_t *comm, int color, int key, trib_comm_t **comm_out)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!comm_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "trib_split: comm_out is NULL");
    trib_gate_enter(comm);
    const trib_status_t st =
        split_known(comm, (struct split_key){color, key}, false, comm_out);
    trib_gate_leave(comm);
    return st;
}

trib_status_t trib_comm_split_within(struct trib_comm *comm, struct trib_comm **out)
{
    return split_known(comm, (struct split_key){0, 0}, true, out);
}

trib_status_t trib_comm_dup(struct trib_comm *comm, const struct trib_config *cfg,
                            struct trib_comm **out)
{
    return split(comm, cfg, (struct split_key){0, 0}, true, out);
}
