/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members' side of growing a communicator: count the newcomers and wire up with
 * them.
 *
 * All exchanges are operations of the old communicator, so a lost member fails them on
 * all ranks. A newcomer's error reaches all members in the next exchange, in the header
 * of the newcomers' contributions. All members then give up the round, and the old
 * communicator continues.
 */
#include "comm/members/grow.h"

#include "comm/core/identity.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "comm/core/communicator.h"
#include "comm/members/leave.h"
#include "comm/members/split.h"
#include "comm/members/wireup.h"
#include "comm/plan/exchange.h"

enum {
    SLACK_MS = 1000, /* for a newcomer, beyond stop_timeout_ms */
};

struct head {
    int32_t status; /* TRIB_OK: all newcomers have contributed */
    char text[256];
};

/* First exchange of a round: each member's number of newcomers. */
struct offer {
    int32_t newcomers; /* waiting at its listener */
};

static size_t head_bytes(const struct trib_grow *g, size_t bytes)
{
    return sizeof(struct head) + (size_t)g->n * bytes;
}

/* On the listening rank: collect the newcomers' contributions. */
static void collect(struct trib_grow *g, size_t bytes)
{
    struct head *h = (struct head *)g->theirs;
    const int ms = trib_limit_sum(g->comm->cfg.stop_timeout_ms, SLACK_MS);
    struct trib_error err = {0};

    memset(g->theirs, 0, head_bytes(g, bytes));
    h->status = trib_listen_collect(g->listen, bytes, g->theirs + sizeof(*h), ms,
                                    g->comm->idle, &err);
    snprintf(h->text, sizeof(h->text), "%.255s",
             h->status == TRIB_OK ? "" : trib_error_text(&err));
}

/* The allgather of a struct trib_exchange, for members and newcomers. */
static trib_status_t exchange(void *arg, const char *phase, const void *in,
                              size_t bytes, void *out)
{
    struct trib_grow *g = arg;
    struct head *h = (struct head *)g->theirs;
    const size_t total = (size_t)(g->members + g->n) * bytes;

    (void)phase;
    g->exchanges++;
    assert(g->n > 0 && g->theirs);
    trib_status_t st = trib_comm_exchange(g->comm, TRIB_ALLGATHER, in, bytes, out);
    if (st == TRIB_OK && g->listen)
        collect(g, bytes);
    if (st == TRIB_OK)
        st = trib_comm_broadcast(g->comm, g->host, head_bytes(g, bytes), g->theirs);
    if (st != TRIB_OK)
        return st;
    h->text[sizeof(h->text) - 1] = '\0';
    if (h->status != TRIB_OK) {
        g->newcomer_failed = true;
        return trib_fail(&g->why, trib_status_of_peer(h->status), "%s", h->text);
    }
    memcpy((char *)out + (size_t)g->members * bytes, g->theirs + sizeof(*h),
           (size_t)g->n * bytes);
    for (int i = 0; g->listen && !g->withholds && i < g->n; i++)
        trib_listen_answer(g->listen, i, out, total);
    return TRIB_OK;
}

/* Beginning ------------------------------------------------------------------------ */

/* Choose the newcomers of the round: all at the lowest rank that has any. */
static trib_status_t find_newcomers(struct trib_grow *g, struct trib_listen *listen,
                                    int most)
{
    const int size = g->comm->engine.size;
    struct offer mine = {listen ? trib_listen_begin(listen, most) : 0};
    struct offer *all = calloc((size_t)size, sizeof(*all));
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    if (all)
        st = trib_comm_exchange(g->comm, TRIB_ALLGATHER, &mine, sizeof(mine), all);
    for (int r = size - 1; st == TRIB_OK && r >= 0; r--) {
        if (all[r].newcomers <= 0)
            continue;
        g->host = r;
        g->n = all[r].newcomers;
    }
    free(all);
    if (st == TRIB_OK && g->n && g->host == g->comm->engine.rank)
        g->listen = listen;
    else if (listen)
        trib_listen_put_back(listen);
    return st;
}

static size_t largest_exchange(void)
{
    size_t most = 0, bytes;

    for (int i = 0; (bytes = trib_wireup_bytes(i)) > 0; i++)
        most = bytes > most ? bytes : most;
    return most;
}

static void admit(struct trib_grow *g, uint64_t identity)
{
    const struct trib_comm *comm = g->comm;

    for (int i = 0; g->listen && i < g->n; i++) {
        const struct trib_admission a = {
            .magic = TRIB_ADMISSION_MAGIC,
            .version = TRIB_GROW_VERSION,
            .members = (uint32_t)g->members,
            .size = (uint32_t)(g->members + g->n),
            .rank = (uint32_t)(g->members + i),
            .window = (uint32_t)comm->cfg.window,
            .window_asked = (uint32_t)comm->window_asked,
            .has_secret = comm->secret.is_set,
            .chunk = comm->cfg.chunk,
            .chunk_asked = comm->chunk_asked,
            .identity = identity,
        };
        trib_listen_answer(g->listen, i, &a, sizeof(a));
    }
}

/* Wireup --------------------------------------------------------------------------- */

/* Keep taking part in the other members' exchanges after a local failure. */
static trib_status_t stand_by(struct trib_grow *g)
{
    const size_t size = (size_t)(g->members + g->n);
    trib_status_t st = TRIB_OK;
    size_t bytes;

    while (st == TRIB_OK && (bytes = trib_wireup_bytes(g->exchanges)) > 0) {
        char *none = calloc(1, bytes), *all = malloc(bytes * size);
        st = none && all ? exchange(g, "", none, bytes, all) : TRIB_ERR_NO_MEMORY;
        free(none);
        free(all);
    }
    return st;
}

static trib_status_t make(struct trib_grow *g, uint64_t identity)
{
    struct trib_comm *comm = g->comm;
    const struct trib_child c = {.cfg = &comm->cfg,
                                 .rank = comm->engine.rank,
                                 .size = g->members + g->n,
                                 .made = "grow"};
    struct trib_exchange x = {exchange, g};
    struct trib_error err = {0};
    const trib_status_t st = trib_comm_make_child(comm, &c, &x, &err, &g->bigger);

    if (st == TRIB_OK) {
        g->bigger->identity = identity;
        g->bigger->members = g->members;
    } else if (!comm->engine.failed && !g->newcomer_failed) {
        (void)trib_fail(&g->why, st, "%s", trib_error_text(&err));
    }
    return st;
}

/* Exchange the readiness of all members and newcomers. Return TRIB_OK if all are ready,
 * or if the old communicator failed after this rank reported ready. */
static trib_status_t agree(struct trib_grow *g, trib_status_t mine)
{
    const int size = g->members + g->n;
    int32_t status = mine, *all = calloc((size_t)size, sizeof(*all));
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    g->withholds = true;
    if (all)
        st = exchange(g, "ready", &status, sizeof(status), all);
    for (int r = 0; st == TRIB_OK && r < size; r++) {
        const trib_status_t theirs = trib_status_of_peer(all[r]);
        if (theirs != TRIB_OK)
            st = mine != TRIB_OK
                     ? mine
                     : trib_fail(&g->why, theirs, "rank %d could not continue: %s", r,
                                 trib_status_str(theirs));
    }
    free(all);
    /* A member that is already in the commit ends this exchange on the others. */
    return mine == TRIB_OK && g->comm->engine.failed ? TRIB_OK : st;
}

void trib_grow_end(struct trib_grow *g, trib_status_t st, const char *text)
{
    const int32_t ready = TRIB_OK;

    assert(g->host < g->members && (st == TRIB_OK || text));

    if (!g->listen)
        return;
    if (st == TRIB_OK) {
        for (int i = 0; i < g->n; i++)
            trib_listen_answer(g->listen, i, &ready, sizeof(ready));
        trib_listen_finish(g->listen);
    } else {
        trib_listen_dismiss(g->listen, st, text);
    }
    g->listen = NULL;
}

/* Continue without these newcomers. Those that did not fail may retry. */
static void give_up(struct trib_grow *g)
{
    if (g->bigger)
        trib_comm_dispose(g->bigger);
    g->bigger = NULL;
    if (g->comm->engine.failed) {
        trib_grow_end(g, TRIB_ERR_PEER_LOST,
                      "the job lost a rank while growing: join again");
        return;
    }
    if (g->listen)
        trib_log(&g->comm->log, TRIB_LOG_WARN, "core",
                 "trib_comm_grow: the ranks continue without %d newcomer%s: %s", g->n,
                 g->n == 1 ? "" : "s", trib_error_text(&g->why));
    trib_grow_end(g, g->newcomer_failed ? TRIB_ERR_ABORTED : TRIB_ERR_PEER_LOST,
                  trib_error_text(&g->why));
}

static trib_status_t wire(struct trib_grow *g)
{
    const uint64_t identity = trib_identity_split(g->comm, g->comm->starts, -2 - g->n);

    admit(g, identity);
    trib_status_t st = make(g, identity);
    if (st != TRIB_OK && !g->newcomer_failed && !g->comm->engine.failed)
        (void)stand_by(g);
    if (!g->newcomer_failed && (st == TRIB_OK || !g->comm->engine.failed))
        st = agree(g, st);
    if (st == TRIB_OK)
        return st;
    give_up(g);
    return g->comm->engine.failed ? g->comm->engine.failed : TRIB_OK;
}

trib_status_t trib_comm_wire_bigger(struct trib_grow *g, struct trib_listener *listener,
                                    int most, struct trib_error *err)
{
    struct trib_comm *comm = g->comm;

    g->members = comm->engine.size;
    trib_status_t st = find_newcomers(g, listener ? listener->listen : NULL, most);
    if (st == TRIB_OK && g->n) {
        assert(g->host < g->members);
        /* If this allocation fails, the other members have not been notified yet. */
        g->theirs = calloc(1, head_bytes(g, largest_exchange()));
        st = g->theirs ? wire(g) : TRIB_ERR_NO_MEMORY;
    }
    free(g->theirs);
    g->theirs = NULL;
    if (st == TRIB_OK)
        return st;
    if (!comm->engine.failed) /* the other ranks are waiting for this one */
        trib_comm_fail_all(comm, st, trib_status_str(st));
    return trib_fail(err, st, "trib_comm_grow: %s", trib_comm_cause(comm, st));
}
