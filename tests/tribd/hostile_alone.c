/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections to a tribd by one who has the key, and does not keep to the protocol: what is sent
 * after the proof is nonsense, or not due; or he leaves at each point of a JOIN.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agg/session.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "boot/tcp_net.h"
#include "pipeline/schedule.h"
#include "tests/tribd/hostile.h"

enum { PATIENCE_MS = 10000, RANKS = 2, BLOB_BYTES = 512, FLOOD = 20000 };

struct stranger {
    struct trib_config cfg;
    struct trib_log log;
    struct trib_auth *auth;
    struct trib_error err;
    struct trib_session *session;
    struct trib_control m;
};

static bool prepare(struct stranger *s)
{
    const struct trib_auth_opts auth = {.method = "key", .key_file = s->cfg.service_key};

    if (trib_config_load(&s->cfg, NULL, &s->log, &s->err) == TRIB_OK &&
        trib_auth_open(&auth, &s->err, &s->auth) == TRIB_OK)
        return true;
    fprintf(stderr, "%s\n", trib_error_text(&s->err));
    return false;
}

/* NULL session: nobody is there, or has time; that is another test's matter. */
static bool come(struct stranger *s, bool prove)
{
    struct trib_session_opts opts = {.role = TRIB_CONTROL_JOB,
                                     .auth = s->auth,
                                     .job = "alone",
                                     .peer = "tribd",
                                     .handshake_ms = PATIENCE_MS,
                                     .err = &s->err};
    struct trib_tcp_root at;
    char why[160];

    s->session = NULL;
    trib_error_clear(&s->err);
    if (!trib_tcp_root_parse(s->cfg.service, &at))
        return false;
    opts.fd = trib_tcp_connect(&at, trib_deadline_ms(PATIENCE_MS), why, sizeof(why));
    if (opts.fd < 0 || trib_session_open(&opts, &s->session) != TRIB_OK)
        return false;
    return !prove ||
           trib_session_meet_wait(s->session, trib_deadline_ms(PATIENCE_MS)) == TRIB_OK;
}

static bool say(struct stranger *s, const struct trib_control *m)
{
    return trib_session_send_wait(s->session, trib_deadline_ms(PATIENCE_MS), m) == TRIB_OK;
}

static bool hear(struct stranger *s, enum trib_control_kind kind)
{
    return trib_session_take_wait(s->session, trib_deadline_ms(PATIENCE_MS), &s->m) == TRIB_OK &&
           s->m.kind == kind;
}

static struct trib_control join(const struct stranger *s)
{
    struct trib_control m = {.kind = TRIB_CONTROL_JOIN};
    struct trib_control_join *j = &m.join;

    snprintf(j->job, sizeof(j->job), "alone");
    j->ranks = RANKS;
    j->nodes = 1;
    j->weight = 1;
    j->slots = RANKS * (uint32_t)s->cfg.window * TRIB_LANES;
    j->bytes = (uint64_t)j->slots * s->cfg.chunk;
    const int at = snprintf(j->settings, sizeof(j->settings), "transport=tcp ");
    trib_config_same_text(&s->cfg, j->settings + at, sizeof(j->settings) - (size_t)at);
    return m;
}

static bool ask(struct stranger *s)
{
    const struct trib_control m = join(s);

    return say(s, &m);
}

static bool is_admitted(struct stranger *s)
{
    return ask(s) && hear(s, TRIB_CONTROL_ADMITTED);
}

/* Blobs of all, as rank 0 would send them; of none but noise. */
static bool give(struct stranger *s, uint32_t exchange, uint32_t first, uint32_t count)
{
    static uint8_t noise[(RANKS + 1) * TRIB_CONTROL_BLOB_MAX];
    struct trib_control m = {.kind = TRIB_CONTROL_BLOBS,
                             .blobs = {.exchange = exchange,
                                       .total = RANKS + 1,
                                       .first = first,
                                       .count = count,
                                       .each = s->m.kind == TRIB_CONTROL_BLOBS ? s->m.blobs.each
                                                                               : BLOB_BYTES}};

    hostile_noise(noise, sizeof(noise));
    m.blobs.data = (struct trib_control_bytes){noise, count * m.blobs.each};
    return say(s, &m);
}

static bool announce(struct stranger *s, const char *text)
{
    struct trib_control m = {.kind = TRIB_CONTROL_PLAN};

    snprintf(m.plan.text, sizeof(m.plan.text), "%s", text);
    return say(s, &m);
}

/* Steps of a JOIN, behind each of which he may leave ------------------------------------------ */

static void leave_at_once(struct stranger *s)
{
    (void)come(s, false);
}

static void leave_proven(struct stranger *s)
{
    (void)come(s, true);
}

static void leave_asking(struct stranger *s)
{
    (void)(come(s, true) && ask(s));
}

static void leave_admitted(struct stranger *s)
{
    (void)(come(s, true) && is_admitted(s));
}

static void leave_meeting(struct stranger *s)
{
    (void)(come(s, true) && is_admitted(s) && hear(s, TRIB_CONTROL_BLOBS));
}

static void leave_half_met(struct stranger *s)
{
    (void)(come(s, true) && is_admitted(s) && hear(s, TRIB_CONTROL_BLOBS) && give(s, 0, 0, 1));
}

/* What is wrong, or not due; tribd is to end each ---------------------------------------------- */

static void raw_noise(struct stranger *s)
{
    uint8_t bytes[4096];

    hostile_noise(bytes, sizeof(bytes));
    if (come(s, true))
        (void)!send(trib_session_fd(s->session), bytes, sizeof(bytes), MSG_NOSIGNAL);
}

/* A head that is right, and a seal that is none. */
static void unsealed(struct stranger *s)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_PLAN, .plan.text = "a plan"};
    uint8_t bytes[TRIB_CONTROL_FRAME_BYTES];
    size_t n;

    if (!come(s, true) || trib_control_put(&m, bytes, sizeof(bytes), &n) != TRIB_OK)
        return;
    trib_control_seal_head(bytes);
    hostile_noise(bytes + n, TRIB_CONTROL_SEAL_BYTES);
    (void)!send(trib_session_fd(s->session), bytes, n + TRIB_CONTROL_SEAL_BYTES, MSG_NOSIGNAL);
}

static void plan_too_early(struct stranger *s)
{
    (void)(come(s, true) && announce(s, "a plan"));
}

static void blobs_too_early(struct stranger *s)
{
    (void)(come(s, true) && give(s, 0, 0, 1));
}

static void joins_twice(struct stranger *s)
{
    (void)(come(s, true) && is_admitted(s) && ask(s));
}

static void wants_everything(struct stranger *s)
{
    struct trib_control m = join(s);

    m.join.ranks = TRIB_CONTROL_RANKS_MAX;
    m.join.nodes = TRIB_CONTROL_NODES_MAX;
    m.join.weight = 1000000;
    m.join.slots = UINT32_MAX;
    m.join.bytes = INT64_MAX;
    (void)(come(s, true) && say(s, &m));
}

/* Many more peers and slots than it asks for. */
static void wants_more_than_it_says(struct stranger *s)
{
    struct trib_control m = join(s);

    m.join.ranks = TRIB_CONTROL_RANKS_MAX;
    (void)(come(s, true) && say(s, &m));
}

static void wrong_settings(struct stranger *s)
{
    struct trib_control m = join(s);

    snprintf(m.join.settings, sizeof(m.join.settings), "transport=tcp+kill:after=1 log=debug");
    (void)(come(s, true) && say(s, &m));
}

static void wrong_tree(struct stranger *s)
{
    struct trib_control m = join(s);
    uint8_t tree[TRIB_CONTROL_TREE_MAX];

    hostile_noise(tree, sizeof(tree));
    m.join.tree = (struct trib_control_bytes){tree, sizeof(tree)};
    (void)(come(s, true) && say(s, &m));
}

static void wrong_exchange(struct stranger *s)
{
    (void)(come(s, true) && is_admitted(s) && hear(s, TRIB_CONTROL_BLOBS) &&
           give(s, 1000000, 0, 1));
}

/* Ranks that are none, at addresses that are none. */
static void wrong_ranks(struct stranger *s)
{
    (void)(come(s, true) && is_admitted(s) && hear(s, TRIB_CONTROL_BLOBS) &&
           give(s, 0, 0, RANKS + 1));
}

/* Before there is anybody to take them. */
static void plans_without_end(struct stranger *s)
{
    if (come(s, true) && is_admitted(s))
        for (int n = 0; n < FLOOD && announce(s, "freed=0 "); n++)
            continue;
}

static const struct act {
    const char *name;
    void (*fn)(struct stranger *s);
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

/* Has tribd ended it? */
static bool was_ended(struct stranger *s)
{
    const uint64_t until = trib_deadline_ms(PATIENCE_MS);
    trib_status_t st;

    while ((st = trib_session_take_wait(s->session, until, &s->m)) == TRIB_OK)
        if (s->m.kind == TRIB_CONTROL_REFUSED)
            return true;
    return st != TRIB_INPROGRESS;
}

static bool do_it(struct stranger *s, const struct act *act, bool ends)
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
    struct stranger *s = calloc(1, sizeof(*s));
    const bool ends = strcmp(way, "messages") == 0;
    const struct act *acts = ends ? wrong : leaving;
    const size_t n_acts = ends ? sizeof(wrong) / sizeof(*wrong) : sizeof(leaving) / sizeof(*leaving);
    bool good = true;
    size_t n = 0;

    if (!s || !prepare(s))
        return 1;
    while (good && (n < n_acts || hostile_goes_on(file)))
        good = do_it(s, &acts[n++ % n_acts], ends);
    printf("hostile by %s: %zu\n", way, n);
    trib_auth_free(s->auth);
    free(s);
    return !good;
}
