/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/members/survivors.h"

#include <assert.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/time.h"
#include "pipeline/run/events.h"
#include "pipeline/run/failure.h"

enum {
    YIELDS = 100, /* polls before a sleep: replies come within microseconds, or late */
    SLEEP_US = 200,
    PART_MS = 20, /* for the last notice to lost ranks */
    REPEAT_NS = 50000000, /* a failure notice may have overwritten a report */
    REPORT_BYTES = offsetof(struct trib_survivor_report, data) + TRIB_SURVIVOR_DATA,
};

_Static_assert(offsetof(struct trib_survivor_report, data) == sizeof(struct trib_frame),
               "a report header replaces the frame");
_Static_assert((int)TRIB_SURVIVOR_DATA < (int)TRIB_OOB_NOTICE_TEXT,
               "a notice text ends with NUL");

static void set_bit(uint8_t *set, int rank)
{
    set[rank / 8] |= (uint8_t)(1u << rank % 8);
}

static bool has_bit(const uint8_t *set, int rank)
{
    return set[rank / 8] >> rank % 8 & 1;
}

static bool is_other(const struct trib_survivors *s, int rank)
{
    return rank != s->comm->engine.rank && !trib_survivors_is_lost(s, rank);
}

void trib_survivors_stop(struct trib_survivors *s, trib_status_t why, const char *fmt,
                         ...)
{
    char text[sizeof(s->err->text)];
    va_list args;

    assert(why < TRIB_OK);
    if (s->why != TRIB_OK)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    s->why = trib_fail(s->err, why, "%s: %s", s->call, text);
    s->origin = (uint32_t)s->comm->engine.rank + 1;
}

/* Incoming reports ----------------------------------------------------------------- */

static void take_set(struct trib_survivors *s, const struct trib_survivor_report *w)
{
    const struct trib_engine *e = &s->comm->engine;

    if (has_bit(w->data, e->rank)) {
        s->is_evicted = true;
        memcpy(s->evicted, w->data, sizeof(s->evicted));
        return;
    }
    for (int r = 0; r < e->size; r++)
        if (has_bit(w->data, r))
            set_bit(s->next_lost, r);
}

static void take_fragment(struct trib_survivors *s, struct trib_survivor *of)
{
    const struct trib_survivor_report *w = &of->said;

    if (w->phase < TRIB_SURVIVOR_EXCHANGES || w->phase > TRIB_SURVIVOR_COMMITTED ||
        w->set != s->set || w->position != of->taken + 1 || w->position > s->fragments)
        return;
    memcpy(of->stream + (size_t)of->taken * TRIB_SURVIVOR_DATA, w->data,
           TRIB_SURVIVOR_DATA);
    of->taken++;
    of->due = true;
}

static void take_refusal(struct trib_survivors *s, int peer,
                         const struct trib_survivor_report *w)
{
    const struct trib_engine *e = &s->comm->engine;
    const bool named = w->origin > 0 && w->origin <= (uint32_t)e->size;
    const int first = named ? (int)w->origin - 1 : peer;
    const trib_status_t why = trib_status_of_peer(w->why);
    char who[128];

    if (s->why != TRIB_OK)
        return;
    trib_engine_name_rank(e, first, who, sizeof(who));
    trib_survivors_stop(s, why == TRIB_OK ? TRIB_ERR_PROTOCOL : why,
                        "%s cannot continue: %s; its own trib_last_error(NULL) gives "
                        "the reason",
                        who, trib_status_str(why));
    s->origin = (uint32_t)first + 1;
}

static void take_end(struct trib_survivors *s, int peer,
                     const struct trib_survivor_report *w)
{
    char who[128];

    if (w->phase == TRIB_SURVIVOR_COMMITTED && w->set == s->ready_set)
        s->is_committed = true;
    if (w->attempt > s->attempt) {
        trib_engine_name_rank(&s->comm->engine, peer, who, sizeof(who));
        trib_survivors_stop(s, TRIB_ERR_ABORTED, "%s has called %s", who,
                            s->attempt == TRIB_SURVIVORS_GROW ? "trib_comm_shrink"
                                                              : "it again");
    } else if (w->phase == TRIB_SURVIVOR_GAVE_UP) {
        take_refusal(s, peer, w);
    }
}

/* The engine's survivor_said callback. */
static void hear(void *arg, int peer, const struct trib_oob_notice *n)
{
    struct trib_survivors *s = arg;
    struct trib_survivor *of = &s->of[peer];
    struct trib_survivor_report w;

    memcpy(&w, &n->frame, sizeof(n->frame));
    memcpy(w.data, n->text, sizeof(w.data));
    s->is_evicted |= n->lost == (uint32_t)s->comm->engine.rank + 1;
    s->comm->engine.links[peer].gone_out |=
        w.phase == TRIB_SURVIVOR_AGREES && has_bit(w.data, peer);
    if (has_bit(s->next_lost, peer) || w.attempt < s->attempt)
        return;
    /* The peer has more to send, or waits for an acknowledgement of its fragment. */
    of->due |= !of->heard || w.taken != of->said.taken || w.phase != of->said.phase;
    if (!of->heard || memcmp(&w, &of->said, REPORT_BYTES) != 0)
        s->moved = trib_now_ns();
    of->said = w;
    of->heard = true;
    take_end(s, peer, &w);
    if (w.phase == TRIB_SURVIVOR_AGREES)
        take_set(s, &w);
    take_fragment(s, of);
}

/* Outgoing reports ----------------------------------------------------------------- */

/* A rank in the set receives only the set, and finds itself in it. A rank that is lost
 * itself forwards the set it received: other members of that set may learn of it only
 * from this rank. */
static void fill_report(const struct trib_survivors *s, const struct trib_survivor *of,
                        struct trib_survivor_report *w)
{
    const int to = (int)(of - s->of);
    const bool is_out = s->is_evicted || trib_survivors_is_lost(s, to);
    const uint32_t acked = of->heard && of->said.set == s->set ? of->said.taken : 0;

    assert(of->taken <= s->fragments && s->given <= s->fragments);
    *w =
        (struct trib_survivor_report){.attempt = s->attempt,
                                      .phase = is_out ? TRIB_SURVIVOR_AGREES : s->phase,
                                      .set = s->set,
                                      .taken = of->taken,
                                      .why = (int16_t)s->why,
                                      .sure = s->sure,
                                      .origin = s->origin};
    if (w->phase == TRIB_SURVIVOR_AGREES) {
        memcpy(w->data, s->is_evicted ? s->evicted : s->lost, sizeof(w->data));
    } else if (acked < s->given) {
        w->position = acked + 1;
        memcpy(w->data, s->stream + (size_t)acked * TRIB_SURVIVOR_DATA,
               sizeof(w->data));
    }
}

/* A report overwrites the failure notice, which the peer may not have read yet. So the
 * error message is appended to the set. */
static void add_sentence(const struct trib_engine *e, struct trib_oob_notice *n)
{
    const size_t at = ((size_t)e->size + 7) / 8;

    assert(at <= TRIB_SURVIVOR_DATA);
    if (at + TRIB_OOB_NOTICE_SENTENCE > TRIB_SURVIVOR_DATA)
        return;
    snprintf(n->text + at, TRIB_SURVIVOR_DATA - at, "%s", trib_error_text(&e->failure));
    n->text[TRIB_OOB_NOTICE_SENTENCE_AT] = (char)at;
}

static void tell(struct trib_survivors *s, int peer, uint64_t now)
{
    struct trib_survivor *of = &s->of[peer];
    struct trib_engine *e = &s->comm->engine;
    const bool is_out = has_bit(s->is_evicted ? s->evicted : s->lost, peer);
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_SURVIVOR,
                                .status = e->failed,
                                .lost = is_out ? (uint32_t)peer + 1 : e->cause_lost};
    struct trib_survivor_report w;

    fill_report(s, of, &w);
    memcpy(&n.frame, &w, sizeof(n.frame));
    memcpy(n.text, w.data, sizeof(w.data));
    if (e->failed && w.phase == TRIB_SURVIVOR_AGREES)
        add_sentence(e, &n);
    of->due = trib_link_report(&e->links[peer], &e->arena, &n) == TRIB_ERR_NO_RESOURCE;
    of->reported_ns = now;
}

/* Report to all ranks, including those in the set that can still receive. */
static void notify_all(struct trib_survivors *s)
{
    const uint64_t now = trib_now_ns();

    for (int r = 0; r < s->comm->engine.size; r++)
        if (r != s->comm->engine.rank &&
            (s->of[r].due || now - s->of[r].reported_ns > REPEAT_NS))
            tell(s, r, now);
}

void trib_survivors_say(struct trib_survivors *s, enum trib_survivor_phase phase)
{
    assert(phase != TRIB_SURVIVOR_READY || s->phase == TRIB_SURVIVOR_EXCHANGES);
    s->phase = phase;
    if (phase == TRIB_SURVIVOR_READY)
        s->ready_set = s->set;
    for (int r = 0; r < s->comm->engine.size; r++)
        s->of[r].due = true;
}

uint32_t trib_survivors_give(struct trib_survivors *s, const void *bytes, size_t n)
{
    const uint32_t more = (uint32_t)((n + TRIB_SURVIVOR_DATA - 1) / TRIB_SURVIVOR_DATA);

    assert(s->given + more <= s->fragments);
    memcpy(s->stream + (size_t)s->given * TRIB_SURVIVOR_DATA, bytes, n);
    s->given += more;
    return s->given;
}

/* Check whether the other ranks count this rank as lost. They may have reported so. Or
 * this rank was away longer than they wait, and finds that they have disconnected. */
static void check_eviction(struct trib_survivors *s)
{
    const struct trib_engine *e = &s->comm->engine;
    const uint64_t away_ns = e->away_ns ? e->away_ns : trib_engine_away(e);
    bool has_lost = false;

    for (int r = 0; r < e->size; r++)
        has_lost |= r != e->rank && has_bit(s->next_lost, r);
    if (has_lost && away_ns && !s->is_evicted && s->why == TRIB_OK) {
        s->is_evicted = true;
        trib_survivors_stop(s, TRIB_ERR_PEER_LOST,
                            "rank %d was stopped or unreachable for %.1f s, and the "
                            "others count it as lost (TRIB_STOP_TIMEOUT_MS)",
                            e->rank, (double)away_ns / 1e9);
    }
    if (s->is_evicted || e->links[e->rank].reported_lost) {
        s->is_evicted = true;
        set_bit(s->evicted, e->rank);
        trib_survivors_stop(s, TRIB_ERR_PEER_LOST,
                            "the other ranks count rank %d as lost and continue "
                            "without it: it was stopped or unreachable",
                            e->rank);
    }
}

/* Return the TRIB_SURVIVOR_ flags that this rank reports for the lost ranks. */
static uint16_t sureness(const struct trib_survivors *s)
{
    const struct trib_engine *e = &s->comm->engine;
    bool all_ended = true, cut = false, continues = false;

    for (int r = 0; r < e->size; r++) {
        const struct trib_link *l = &e->links[r];
        if (!trib_survivors_is_lost(s, r))
            continue;
        all_ended &= l->dead || l->gone_out;
        cut |= l->lives && !l->gone_out;
        continues |= l->continues;
    }
    unsigned sure =
        (cut ? TRIB_SURVIVOR_CUT : 0) | (continues ? TRIB_SURVIVOR_CONTINUED : 0);
    if (all_ended)
        sure |= TRIB_SURVIVOR_ENDED;
    if (all_ended || !trib_engine_maybe_away(e))
        sure |= TRIB_SURVIVOR_SURE;
    return (uint16_t)sure;
}

static void update_sureness(struct trib_survivors *s)
{
    const uint16_t sure = sureness(s);

    for (int r = 0; r < s->comm->engine.size; r++)
        s->of[r].due |= sure != s->sure;
    s->sure = sure;
}

/* Main loop ------------------------------------------------------------------------ */

/* Poll all peers once; true if there was progress. */
static bool step(struct trib_survivors *s)
{
    struct trib_engine *e = &s->comm->engine;
    const uint64_t before = s->moved;

    (void)trib_engine_events(e);
    for (int r = 0; r < e->size; r++) {
        if (r == e->rank || has_bit(s->next_lost, r))
            continue;
        trib_engine_notice(e, r);
        if (!e->links[r].lost)
            continue;
        set_bit(s->next_lost, r);
        s->moved = trib_now_ns();
    }
    check_eviction(s);
    update_sureness(s);
    notify_all(s);
    return s->moved != before;
}

static bool locked_step(struct trib_survivors *s)
{
    trib_comm_lock(s->comm);
    const bool moved = step(s);
    trib_comm_unlock(s->comm);
    return moved;
}

static void rest(struct trib_survivors *s)
{
    struct trib_transport *t = s->comm->engine.transport;

    if (++s->idle < YIELDS) {
        sched_yield();
        return;
    }
    trib_comm_lock(s->comm);
    t->ops->arm(t);
    const bool moved = step(s);
    trib_comm_unlock(s->comm);
    if (!moved)
        t->ops->wait(t, SLEEP_US);
}

/* Poll once, and rest if there was no progress. */
static void poll_once(struct trib_survivors *s)
{
    if (locked_step(s))
        s->idle = 0;
    else
        rest(s);
    if (trib_idle_is_set(s->comm->idle) && trib_idle_call(s->comm->idle))
        trib_survivors_stop(s, TRIB_ERR_ABORTED,
                            "the idle callback of rank %d has given up",
                            s->comm->engine.rank);
}

static int first_not_done(const struct trib_survivors *s,
                          bool (*is_done)(const struct trib_survivors *s, int rank,
                                          uint64_t arg),
                          uint64_t arg)
{
    for (int r = 0; r < s->comm->engine.size; r++)
        if (is_other(s, r) && !is_done(s, r, arg))
            return r;
    return -1;
}

static void check_time(struct trib_survivors *s, int rank)
{
    const int ms = s->comm->cfg.timeout_ms;
    char who[128];

    if (trib_now_ns() - s->moved < trib_limit_ns(ms))
        return;
    trib_engine_name_rank(&s->comm->engine, rank, who, sizeof(who));
    trib_survivors_stop(
        s, TRIB_ERR_TIMEOUT,
        "%s %s for %d ms: all surviving ranks must call it (raise "
        "TRIB_TIMEOUT_MS if they come later)",
        who, s->of[rank].heard ? "has not responded" : "has not called it", ms);
}

enum trib_survivors_end trib_survivors_wait(
    struct trib_survivors *s,
    bool (*is_done)(const struct trib_survivors *s, int rank, uint64_t arg),
    uint64_t arg)
{
    s->moved = trib_now_ns();
    for (;;) {
        if (s->is_committed)
            return TRIB_SURVIVORS_COMMIT;
        if (s->is_evicted)
            return TRIB_SURVIVORS_STOP;
        const int missing = first_not_done(s, is_done, arg);
        if (missing < 0)
            return TRIB_SURVIVORS_DONE;
        if (s->why != TRIB_OK)
            return TRIB_SURVIVORS_STOP;
        if (memcmp(s->lost, s->next_lost, sizeof(s->lost)) != 0)
            return TRIB_SURVIVORS_AGAIN;
        poll_once(s);
        check_time(s, missing);
    }
}

void trib_survivors_await_loss(struct trib_survivors *s, int ms)
{
    const uint64_t until = trib_deadline_ms(ms);

    assert(ms >= 0);
    while (s->why == TRIB_OK && !trib_deadline_passed(until) &&
           memcmp(s->lost, s->next_lost, sizeof(s->lost)) == 0)
        poll_once(s);
}

/* Return true if the peer needs nothing more from this rank. */
static bool is_quit(const struct trib_survivors *s, int rank)
{
    const struct trib_survivor *of = &s->of[rank];
    const struct trib_link *l = &s->comm->engine.links[rank];

    if (l->lost || has_bit(s->next_lost, rank))
        return true;
    return !of->due && !l->report_busy &&
           (s->phase == TRIB_SURVIVOR_GAVE_UP || of->said.phase >= (uint32_t)s->phase);
}

void trib_survivors_flush(struct trib_survivors *s, int ms)
{
    const uint64_t until = trib_deadline_ms(ms);
    int r;

    do {
        (void)locked_step(s);
        for (r = 0; r < s->comm->engine.size; r++)
            if (is_other(s, r) && !is_quit(s, r))
                break;
        if (r == s->comm->engine.size)
            return;
        rest(s);
    } while (!trib_deadline_passed(until));
}

/* Return true if a notice to a connected rank of the set is still pending. */
static bool is_telling_lost(const struct trib_survivors *s)
{
    for (int r = 0; r < s->comm->engine.size; r++) {
        const struct trib_link *l = &s->comm->engine.links[r];
        if (trib_survivors_is_lost(s, r) && l->connected && !l->lost &&
            (s->of[r].due || l->report_busy))
            return true;
    }
    return false;
}

void trib_survivors_part(struct trib_survivors *s)
{
    struct trib_engine *e = &s->comm->engine;
    struct trib_transport *t = e->transport;
    bool *which = calloc((size_t)e->size, sizeof(*which));
    const uint64_t until = trib_deadline_ms(PART_MS);

    while (is_telling_lost(s) && !trib_deadline_passed(until))
        rest(s);
    trib_comm_lock(s->comm);
    for (int r = 0; which && r < e->size; r++) {
        /* If the committed set differs, ranks lost since then may have committed it,
         * too: do not notify them. */
        which[r] = trib_survivors_is_lost(s, r) &&
                   (!e->links[r].lost || s->set == s->ready_set);
        e->links[r].lost |= which[r];
    }
    if (which)
        t->ops->leave(t, which);
    trib_comm_unlock(s->comm);
    if (which && s->comm->hooks && s->comm->hooks->continues)
        s->comm->hooks->continues(s->comm, which);
    free(which);
}

void trib_survivors_renew(struct trib_survivors *s)
{
    assert(!has_bit(s->next_lost, s->comm->engine.rank));
    memcpy(s->lost, s->next_lost, sizeof(s->lost));
    s->set = trib_digest(s->lost, sizeof(s->lost));
    s->sure = sureness(s);
    s->given = 0;
    for (int r = 0; r < s->comm->engine.size; r++)
        s->of[r].taken = 0;
    trib_survivors_say(s, TRIB_SURVIVOR_AGREES);
}

/* Beginning and end ---------------------------------------------------------------- */

static trib_status_t no_memory(struct trib_survivors *s)
{
    trib_survivors_stop(s, TRIB_ERR_NO_MEMORY, "no memory for %d ranks",
                        s->comm->engine.size);
    return s->why;
}

static trib_status_t allocate(struct trib_survivors *s)
{
    struct trib_engine *e = &s->comm->engine;

    for (int i = 0; trib_wireup_bytes(i) > 0; i++)
        s->fragments += (uint32_t)((trib_wireup_bytes(i) + TRIB_SURVIVOR_DATA - 1) /
                                   TRIB_SURVIVOR_DATA);
    s->of = calloc((size_t)e->size, sizeof(*s->of));
    s->stream = calloc((size_t)e->size, (size_t)s->fragments * TRIB_SURVIVOR_DATA);
    if (!s->of || !s->stream)
        return no_memory(s);
    for (int r = 0; r < e->size; r++)
        s->of[r].stream = s->stream + (size_t)r * s->fragments * TRIB_SURVIVOR_DATA;
    s->stream = s->of[e->rank].stream;
    const trib_status_t st = trib_arena_make_reports(&e->arena);
    if (st != TRIB_OK)
        trib_survivors_stop(s, st, "%s", trib_comm_cause(s->comm, st));
    return st;
}

/* Connect to all ranks; unreachable ranks are lost. */
static void connect_all(struct trib_survivors *s)
{
    struct trib_engine *e = &s->comm->engine;

    for (int r = 0; r < e->size && s->why == TRIB_OK; r++) {
        struct trib_link *l = &e->links[r];
        const struct trib_peer *p = &e->peers[r];
        if (r == e->rank || l->lost || l->reported_lost || l->connected)
            continue;
        trib_error_clear(&s->comm->cause);
        const trib_status_t st =
            trib_link_connect(l, &e->arena, r, &p->address, &p->arena);
        /* INVALID: the peer has closed its memory and reused the descriptor. */
        if (st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_INVALID)
            l->lost = true;
        else if (st != TRIB_OK)
            trib_survivors_stop(s, st, "rank %d is unreachable: %s", r,
                                trib_comm_cause(s->comm, st));
    }
}

/* Read the last notices of ranks that are already lost. */
static void read_last_words(struct trib_survivors *s)
{
    struct trib_engine *e = &s->comm->engine;

    for (int r = 0; r < e->size; r++)
        if (r != e->rank && e->links[r].lost)
            trib_engine_notice(e, r);
}

trib_status_t trib_survivors_open(struct trib_survivors *s)
{
    struct trib_engine *e = &s->comm->engine;

    assert(e->failed && e->size <= TRIB_SURVIVOR_RANKS_MAX && !e->survivor_said);
    assert(s->call && s->attempt >= TRIB_SURVIVORS_GROW);
    trib_comm_lock(s->comm);
    trib_error_clear(&s->comm->cause);
    trib_status_t st = allocate(s);
    if (st == TRIB_OK) {
        connect_all(s);
        for (int r = 0; r < e->size; r++) {
            if (r != e->rank && (e->links[r].lost || e->links[r].reported_lost))
                set_bit(s->next_lost, r);
            trib_link_reread(&e->links[r]);
        }
        e->survivor_said = hear;
        e->survivor_said_arg = s;
        read_last_words(s);
        check_eviction(s);
        trib_survivors_renew(s);
    }
    trib_comm_unlock(s->comm);
    return st;
}

void trib_survivors_close(struct trib_survivors *s)
{
    struct trib_engine *e = &s->comm->engine;

    trib_comm_lock(s->comm);
    e->survivor_said = NULL;
    trib_comm_unlock(s->comm);
    if (s->of)
        free(s->of[0].stream);
    else
        free(s->stream);
    free(s->of);
}
