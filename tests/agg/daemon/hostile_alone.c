/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections to a tribd by a peer that has the key and violates the protocol: it sends
 * random bytes or unexpected messages after the proof, or disconnects at each point of
 * a JOIN.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "tests/agg/daemon/caller.h"
#include "tests/agg/daemon/hostile.h"

enum { RANKS = 2, BLOB_BYTES = 512, FLOOD = 20000 };

static bool come(struct caller *s, bool prove)
{
    return caller_come(s, "alone", prove);
}

static struct trib_control join(const struct caller *s)
{
    return caller_join(s, "alone", RANKS, "tcp");
}

static bool ask(struct caller *s)
{
    const struct trib_control m = join(s);

    return caller_say(s, &m);
}

static bool is_admitted(struct caller *s)
{
    return ask(s) && caller_hear(s, TRIB_CONTROL_ADMITTED);
}

/* Send all blobs as rank 0 would, or only random bytes. */
static bool give(struct caller *s, uint32_t exchange, uint32_t first, uint32_t count)
{
    static uint8_t noise[(RANKS + 1) * TRIB_CONTROL_BLOB_MAX];
    struct trib_control m = {.kind = TRIB_CONTROL_BLOBS,
                             .blobs = {.exchange = exchange,
                                       .total = RANKS + 1,
                                       .first = first,
                                       .count = count,
                                       .each = s->m.kind == TRIB_CONTROL_BLOBS
                                                   ? s->m.blobs.each
                                                   : BLOB_BYTES}};

    hostile_noise(noise, sizeof(noise));
    m.blobs.data = (struct trib_control_bytes){noise, count * m.blobs.each};
    return caller_say(s, &m);
}

/* Steps of a JOIN; the peer may disconnect after each ------------------------------ */

static void leave_at_once(struct caller *s)
{
    (void)come(s, false);
}

static void leave_proven(struct caller *s)
{
    (void)come(s, true);
}

static void leave_asking(struct caller *s)
{
    (void)(come(s, true) && ask(s));
}

static void leave_admitted(struct caller *s)
{
    (void)(come(s, true) && is_admitted(s));
}

static void leave_meeting(struct caller *s)
{
    (void)(come(s, true) && is_admitted(s) && caller_hear(s, TRIB_CONTROL_BLOBS));
}

static void leave_half_met(struct caller *s)
{
    (void)(come(s, true) && is_admitted(s) && caller_hear(s, TRIB_CONTROL_BLOBS) &&
           give(s, 0, 0, 1));
}

/* Invalid or unexpected messages; tribd must close the connection after each ------- */

static void raw_noise(struct caller *s)
{
    uint8_t bytes[4096];

    hostile_noise(bytes, sizeof(bytes));
    if (come(s, true))
        (void)!send(trib_session_fd(s->session), bytes, sizeof(bytes), MSG_NOSIGNAL);
}

/* A valid head with an invalid seal. */
static void unsealed(struct caller *s)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_PLAN, .plan.text = "a plan"};
    uint8_t bytes[TRIB_CONTROL_FRAME_BYTES];
    size_t n;

    if (!come(s, true) || trib_control_put(&m, bytes, sizeof(bytes), &n) != TRIB_OK)
        return;
    trib_control_seal_head(bytes);
    hostile_noise(bytes + n, TRIB_CONTROL_SEAL_BYTES);
    (void)!send(trib_session_fd(s->session), bytes, n + TRIB_CONTROL_SEAL_BYTES,
                MSG_NOSIGNAL);
}

static void plan_too_early(struct caller *s)
{
    (void)(come(s, true) && caller_plan(s, "a plan"));
}

static void blobs_too_early(struct caller *s)
{
    (void)(come(s, true) && give(s, 0, 0, 1));
}

static void joins_twice(struct caller *s)
{
    (void)(come(s, true) && is_admitted(s) && ask(s));
}

static void wants_everything(struct caller *s)
{
    struct trib_control m = join(s);

    m.join.ranks = TRIB_CONTROL_RANKS_MAX;
    m.join.aggregators = TRIB_CONTROL_AGGREGATORS_MAX;
    m.join.weight = 1000000;
    m.join.slots = UINT32_MAX;
    m.join.bytes = INT64_MAX;
    (void)(come(s, true) && caller_say(s, &m));
}

/* Far more peers and slots than the JOIN requests. */
static void wants_more_than_it_says(struct caller *s)
{
    struct trib_control m = join(s);

    m.join.ranks = TRIB_CONTROL_RANKS_MAX;
    (void)(come(s, true) && caller_say(s, &m));
}

static void wrong_settings(struct caller *s)
{
    struct trib_control m = join(s);

    snprintf(m.join.settings, sizeof(m.join.settings),
             "transport=tcp+kill:after=1 log=debug");
    (void)(come(s, true) && caller_say(s, &m));
}

static void wrong_tree(struct caller *s)
{
    struct trib_control m = join(s);
    uint8_t tree[TRIB_CONTROL_TREE_MAX];

    hostile_noise(tree, sizeof(tree));
    m.join.tree = (struct trib_control_bytes){tree, sizeof(tree)};
    (void)(come(s, true) && caller_say(s, &m));
}

static void wrong_exchange(struct caller *s)
{
    (void)(come(s, true) && is_admitted(s) && caller_hear(s, TRIB_CONTROL_BLOBS) &&
           give(s, 1000000, 0, 1));
}

/* Ranks that do not exist, at invalid addresses. */
static void wrong_ranks(struct caller *s)
{
    (void)(come(s, true) && is_admitted(s) && caller_hear(s, TRIB_CONTROL_BLOBS) &&
           give(s, 0, 0, RANKS + 1));
}

/* Before any aggregator accepts them. */
static void plans_without_end(struct caller *s)
{
    if (come(s, true) && is_admitted(s))
        for (int n = 0; n < FLOOD && caller_plan(s, "freed=0 "); n++)
            continue;
}

static const struct act {
    const char *name;
    void (*fn)(struct caller *s);
} leaving[] = {
    {"leave at once", leave_at_once},   {"leave proven", leave_proven},
    {"leave asking", leave_asking},     {"leave admitted", leave_admitted},
    {"leave meeting", leave_meeting},   {"leave half met", leave_half_met},
}, wrong[] = {
    {"noise", raw_noise},
    {"a seal that is none", unsealed},
    {"a plan too early", plan_too_early},
    {"blobs too early", blobs_too_early},
    {"a second JOIN", joins_twice},
    {"all there is", wants_everything},
    {"more than it says", wants_more_than_it_says},
    {"settings that are its own", wrong_settings},
    {"a tree that is none", wrong_tree},
    {"blobs of another exchange", wrong_exchange},
    {"ranks that are none", wrong_ranks},
    {"plans without end", plans_without_end},
};

/* Return true if tribd closed the connection. */
static bool was_ended(struct caller *s)
{
    const uint64_t until = trib_deadline_ms(CALLER_PATIENCE_MS);
    trib_status_t st;

    while ((st = trib_session_take_wait(s->session, until, &s->m)) == TRIB_OK)
        if (s->m.kind == TRIB_CONTROL_REFUSED)
            return true;
    return st != TRIB_INPROGRESS;
}

static bool do_it(struct caller *s, const struct act *act, bool ends)
{
    bool good = true;

    s->m.kind = TRIB_CONTROL_ALIVE;
    act->fn(s);
    if (s->session && ends && !was_ended(s)) {
        fprintf(stderr, "hostile: %s: tribd has not ended it\n", act->name);
        good = false;
    }
    trib_session_free(s->session);
    return good;
}

int hostile_alone(const char *way, const char *file)
{
    struct caller *s = calloc(1, sizeof(*s));
    const bool ends = strcmp(way, "messages") == 0;
    const struct act *acts = ends ? wrong : leaving;
    const size_t n_acts =
        ends ? sizeof(wrong) / sizeof(*wrong) : sizeof(leaving) / sizeof(*leaving);
    bool good = true;
    size_t n = 0;

    if (!s || !caller_prepare(s))
        return 1;
    while (good && (n < n_acts || hostile_goes_on(file)))
        good = do_it(s, &acts[n++ % n_acts], ends);
    printf("hostile by %s: %zu\n", way, n);
    trib_auth_free(s->auth);
    free(s);
    return !good;
}
