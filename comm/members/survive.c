/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Survivors of a loss agree on the surviving ranks and create a communicator of them.
 * survivors.h describes the protocol and why all survivors reach the same result.
 */
#include "comm/members/survive.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "comm/core/identity.h"
#include "comm/core/communicator.h"
#include "comm/members/leave.h"
#include "comm/members/split.h"
#include "comm/members/survivors.h"
#include "comm/members/wireup.h"
#include "pipeline/engine/engine.h"

enum {
    LOSS_MS = 1000, /* for a loss that failed a wireup to be detected */
    FLUSH_MS = 100, /* for the last reports */
    SURE_MS = 1000, /* for the end of a process on this host to be detected */
};

struct shrink {
    struct trib_survivors s;
    bool grows; /* child was wired up before, and no other is created */
    struct trib_comm *child; /* may still be committed; or NULL */
    enum trib_survivors_end end; /* of an aborted exchange */
};

static bool agrees(const struct trib_survivors *s, int rank, uint64_t unused)
{
    const struct trib_survivor *of = &s->of[rank];

    (void)unused;
    return of->heard && of->said.set == s->set;
}

static bool has_given(const struct trib_survivors *s, int rank, uint64_t fragments)
{
    return s->of[rank].taken >= fragments;
}

static bool is_ready(const struct trib_survivors *s, int rank, uint64_t unused)
{
    const struct trib_survivor *of = &s->of[rank];

    return agrees(s, rank, unused) && of->said.phase >= TRIB_SURVIVOR_READY;
}

/* Fail the old communicator, so nothing runs in it once another replaces it, whether it
 * had failed or not. */
void trib_comm_end_all(struct trib_comm *comm, const char *call)
{
    char who[128], text[200];

    trib_engine_name_rank(&comm->engine, comm->engine.rank, who, sizeof(who));
    snprintf(text, sizeof(text), "%s has called %s", who, call);
    trib_comm_fail_all(comm, TRIB_ERR_ABORTED, text);
    if (comm->hooks)
        comm->hooks->fail(comm, TRIB_ERR_ABORTED, text);
}

/* The allgather of a struct trib_exchange. */
static trib_status_t exchange(void *arg, const char *phase, const void *in,
                              size_t bytes, void *out)
{
    struct shrink *k = arg;
    struct trib_survivors *s = &k->s;
    const struct trib_engine *e = &s->comm->engine;
    const size_t before = s->given;
    const uint32_t fragments = trib_survivors_give(s, in, bytes);
    char *to = out;

    (void)phase;
    trib_survivors_say(s, TRIB_SURVIVOR_EXCHANGES);
    k->end = trib_survivors_wait(s, has_given, fragments);
    if (k->end != TRIB_SURVIVORS_DONE)
        return TRIB_ERR_PEER_LOST;
    for (int r = 0; r < e->size; r++) {
        if (trib_survivors_is_lost(s, r))
            continue;
        memcpy(to, s->of[r].stream + before * TRIB_SURVIVOR_DATA, bytes);
        to += bytes;
    }
    return TRIB_OK;
}

static void drop_child(struct shrink *k)
{
    k->s.ready_set = 0;
    if (k->child)
        trib_comm_dispose(k->child);
    k->child = NULL;
}

/* A wireup also fails if a rank is lost during it; wait until that is detected. */
static enum trib_survivors_end wireup_failed(struct shrink *k, trib_status_t st,
                                             const struct trib_error *err)
{
    struct trib_survivors *s = &k->s;

    if (k->end != TRIB_SURVIVORS_DONE)
        return k->end;
    trib_survivors_await_loss(s, LOSS_MS);
    if (memcmp(s->lost, s->next_lost, sizeof(s->lost)) != 0)
        return TRIB_SURVIVORS_AGAIN;
    trib_survivors_stop(s, st, "%s", trib_error_text(err));
    return TRIB_SURVIVORS_STOP;
}

/* Return true for a newcomer that ended before it was notified of its admission. */
static bool never_came(const struct trib_comm *comm, int rank)
{
    return comm->members && rank >= comm->members &&
           comm->engine.stats.operations == 0;
}

/* Return true for a rank that disconnected and may have continued without this one. */
static bool has_left(const struct trib_comm *comm, int rank)
{
    const struct trib_link *l = &comm->engine.links[rank];

    return l->left && !l->gone_out && !never_came(comm, rank);
}

static enum trib_survivors_end wire(struct shrink *k)
{
    struct trib_survivors *s = &k->s;
    struct trib_comm *comm = s->comm;
    struct trib_child c = {.cfg = &comm->cfg, .made = "shrink"};
    struct trib_exchange x = {exchange, k};
    struct trib_error err = {0};
    bool someone_left = false;

    for (int r = 0; r < comm->engine.size; r++) {
        someone_left |= has_left(comm, r);
        if (trib_survivors_is_lost(s, r))
            continue;
        c.rank += r < comm->engine.rank;
        c.size++;
    }
    if (c.size == 1 && someone_left) {
        trib_survivors_stop(s, TRIB_ERR_PEER_LOST,
                            "rank %d is alone: other ranks have disconnected with "
                            "trib_free_comm, and may have continued without it",
                            comm->engine.rank);
        return TRIB_SURVIVORS_STOP;
    }
    assert(c.rank < c.size && !k->child);
    k->end = TRIB_SURVIVORS_DONE;
    const trib_status_t st = trib_comm_make_child(comm, &c, &x, &err, &k->child);
    if (st != TRIB_OK)
        return wireup_failed(k, st, &err);
    k->child->identity = trib_identity_split(comm, s->set, -1);
    return TRIB_SURVIVORS_DONE;
}

/* Stop if the already wired-up communicator contains a lost rank. */
static bool refuse_loss(struct trib_survivors *s)
{
    struct trib_engine *e = &s->comm->engine;
    char who[128];

    for (int r = 0; r < e->size; r++) {
        if (!trib_survivors_is_lost(s, r))
            continue;
        trib_engine_name_rank(e, r, who, sizeof(who));
        trib_survivors_stop(s, TRIB_ERR_PEER_LOST,
                            "%s was lost in the meantime: call trib_comm_shrink", who);
        return true;
    }
    return false;
}

/* Combine the TRIB_SURVIVOR_ flags of all survivors that agree on the set. */
static unsigned sureness_of_all(const struct trib_survivors *s)
{
    unsigned sure = s->sure;

    for (int r = 0; r < s->comm->engine.size; r++) {
        const struct trib_survivor_report *said = &s->of[r].said;
        if (!trib_survivors_is_lost(s, r) && said->set == s->set)
            sure |= said->sure;
    }
    return sure;
}

/* Return the number of survivors if a larger part, cut off from them, may continue;
 * else 0. */
static int smaller_part(const struct trib_survivors *s, unsigned sure)
{
    const int size = s->comm->engine.size;
    int n = 0;

    if (!(sure & TRIB_SURVIVOR_CUT) || (sure & TRIB_SURVIVOR_ENDED))
        return 0;
    for (int r = 0; r < size; r++)
        n += !trib_survivors_is_lost(s, r);
    const bool with_first = !trib_survivors_is_lost(s, 0);
    return 2 * n > size || (2 * n == size && with_first) ? 0 : n;
}

static void give_up(struct trib_survivors *s, int n)
{
    const struct trib_engine *e = &s->comm->engine;

    if (n) {
        trib_survivors_stop(s, TRIB_ERR_PEER_LOST,
                            "connections between running ranks were cut: rank %d "
                            "reaches %d of %d ranks, and only the larger part "
                            "continues, or the half with rank 0",
                            e->rank, n, e->size);
        return;
    }
    s->is_evicted = true;
    s->evicted[e->rank / 8] |= (uint8_t)(1u << e->rank % 8);
    trib_survivors_stop(s, TRIB_ERR_PEER_LOST,
                        "rank %d was stopped or unreachable for about as long as "
                        "others wait, and these may continue without it "
                        "(TRIB_STOP_TIMEOUT_MS)",
                        e->rank);
}

enum trib_survivors_end trib_survivors_make_sure(struct trib_survivors *s)
{
    const uint64_t until = trib_deadline_ms(SURE_MS);

    for (;;) {
        const unsigned sure = sureness_of_all(s);
        const int n = smaller_part(s, sure);
        if (sure & TRIB_SURVIVOR_CONTINUED)
            trib_survivors_stop(s, TRIB_ERR_PEER_LOST,
                                "other ranks continue without rank %d: connections "
                                "between running ranks were cut, or it was "
                                "unreachable",
                                s->comm->engine.rank);
        else if ((sure & TRIB_SURVIVOR_SURE) && n == 0)
            return TRIB_SURVIVORS_DONE;
        if (s->is_committed)
            return TRIB_SURVIVORS_COMMIT;
        if (memcmp(s->lost, s->next_lost, sizeof(s->lost)) != 0 && !s->is_evicted)
            return TRIB_SURVIVORS_AGAIN;
        if (trib_deadline_passed(until) && s->why == TRIB_OK)
            give_up(s, n);
        if (s->is_evicted || s->why != TRIB_OK)
            return TRIB_SURVIVORS_STOP;
        trib_survivors_await_loss(s, 1);
    }
}

/* Run one round: from agreement on a set to its communicator, or to an interruption. */
static enum trib_survivors_end go_round(struct shrink *k)
{
    /* A rank that was never READY need not ask whether others have committed. */
    if (k->grows && !k->s.ready_set && refuse_loss(&k->s))
        return TRIB_SURVIVORS_STOP;
    enum trib_survivors_end end = trib_survivors_wait(&k->s, agrees, 0);
    if (end == TRIB_SURVIVORS_DONE)
        end = trib_survivors_make_sure(&k->s);
    if (end != TRIB_SURVIVORS_DONE)
        return end;
    if (k->grows) {
        if (refuse_loss(&k->s))
            return TRIB_SURVIVORS_STOP;
        trib_survivors_say(&k->s, TRIB_SURVIVOR_EXCHANGES);
    } else {
        drop_child(k); /* no rank has committed it, nor will */
        end = wire(k);
        if (end != TRIB_SURVIVORS_DONE)
            return end;
    }
    trib_survivors_say(&k->s, TRIB_SURVIVOR_READY);
    return trib_survivors_wait(&k->s, is_ready, 0);
}

static void finish(struct shrink *k, enum trib_survivors_end end)
{
    struct trib_survivors *s = &k->s;

    if (end != TRIB_SURVIVORS_STOP) {
        assert(k->child);
        trib_survivors_say(s, TRIB_SURVIVOR_COMMITTED);
        trib_survivors_flush(s, FLUSH_MS);
        trib_survivors_part(s);
        return;
    }
    assert(s->why != TRIB_OK);
    drop_child(k);
    if (s->is_evicted) { /* others continue; a single one must hear of it */
        trib_survivors_say(s, TRIB_SURVIVOR_AGREES);
        trib_survivors_flush(s, FLUSH_MS);
        return;
    }
    trib_survivors_say(s, TRIB_SURVIVOR_GAVE_UP);
    trib_survivors_flush(s, FLUSH_MS);
}

static void agree(struct shrink *k)
{
    enum trib_survivors_end end;

    if (trib_survivors_open(&k->s) == TRIB_OK) {
        while ((end = go_round(k)) == TRIB_SURVIVORS_AGAIN)
            trib_survivors_renew(&k->s);
        finish(k, end);
    } else {
        drop_child(k);
    }
    trib_survivors_close(&k->s);
    k->s.comm->is_shrunk = k->child != NULL;
}

trib_status_t trib_comm_survive(struct trib_comm *comm, struct trib_error *err,
                                struct trib_comm **out)
{
    struct shrink k = {.s = {.comm = comm,
                             .call = "trib_comm_shrink",
                             .err = err,
                             .attempt = TRIB_SURVIVORS_SHRINK + comm->shrinks}};

    agree(&k);
    comm->shrinks++;
    *out = k.child;
    return k.child ? TRIB_OK : k.s.why;
}

trib_status_t trib_comm_commit(struct trib_comm *comm, struct trib_comm *bigger,
                               struct trib_error *err)
{
    struct shrink k = {.s = {.comm = comm,
                             .call = "trib_comm_grow",
                             .err = err,
                             .attempt = TRIB_SURVIVORS_GROW},
                       .grows = true,
                       .child = bigger};

    assert(bigger->engine.size > comm->engine.size);
    agree(&k);
    return k.child ? TRIB_OK : k.s.why;
}
