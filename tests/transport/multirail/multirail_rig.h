/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks in one thread over rails, each inner transport a loop in a wrapper that can
 * stall, freeze, refuse, and go dead at a certain write.
 */
#ifndef TESTS_TRANSPORT_MULTIRAIL_MULTIRAIL_RIG_H
#define TESTS_TRANSPORT_MULTIRAIL_MULTIRAIL_RIG_H

#include "tests/transport/pair.h"

#include "tests/harness/rng_draw.h"
#include "transport/backends.h"
#include "transport/multirail/multirail.h"
#include "transport/decorators/decorator.h"

#define MESSAGES 24u
#define SLOT 64u
#define NONE UINT32_MAX
#define HELD 64

/* How one rail behaves; both of its ends look here. */
struct line {
    uint32_t cut_at; /* the first write, counted from 0, that is dropped */
    uint32_t writes;
    bool down;
    bool notices[2]; /* the end with this number does */
    bool last_look[2]; /* that end first handles the events that have arrived */
    bool gives_up; /* the end of the line comes with the peer's word that it counts this
                    * side as lost */
    uint32_t stall; /* of 100 polls that find nothing, though it may be there */
};

struct rig {
    struct pair pair;
    struct line line[MULTIRAIL_MAX];
    struct decorator *wrap[2][MULTIRAIL_MAX];
    bool reported[2][MULTIRAIL_MAX];
    struct trib_event held[2][MULTIRAIL_MAX][HELD]; /* in the device */
    int n_held[2][MULTIRAIL_MAX];
    bool refuses[MULTIRAIL_MAX]; /* to connect */
    int together; /* refusals that wait for each other; 0: none does */
    _Atomic int asked[2]; /* connection requests of each side */
    _Atomic bool alone; /* one has waited in vain */
    unsigned frozen; /* these lines bring nothing, for freeze_ms from freeze_at on */
    int freeze_ms;
    uint32_t freeze_at; /* the write, of all */
    uint32_t writes;
    uint64_t thaw_at;
    int stop_ms; /* 0: the one of pair_opts */
    bool one_way[MULTIRAIL_MAX]; /* side 0 cannot connect; side 1 can, and writes */
    void (*leaves)(void); /* while side 0 leaves such a line */
    int rails[2];
    uint64_t net[2][MULTIRAIL_MAX];
    uint32_t speed[2][MULTIRAIL_MAX];
    bool busy; /* the devices serve other peers all the time */
    int wired[MULTIRAIL_MAX]; /* side 1's inner of side 0's, where they cross */
    uint32_t seed, drawn;
};

static struct rig rig; /* the wrappers' ops have no argument of ours */

static uint32_t draw(uint32_t below)
{
    return draw_u32((struct trib_rng){.seed = rig.seed}, rig.drawn++) % below;
}

static void find(struct trib_transport *t, int *side, int *rail)
{
    for (*side = 0; *side < 2; (*side)++) {
        for (*rail = 0; *rail < MULTIRAIL_MAX; (*rail)++) {
            if (rig.wrap[*side][*rail] == decorator_of(t))
                return;
        }
    }
    fail_msg("a wrapper of this test");
}

static struct line *line_of(int side, int rail)
{
    return &rig.line[side == 0 ? rig.wired[rail] : rail];
}

/* Accept a write: it is acknowledged, though not delivered yet. */
static void hold(struct trib_transport *t, int side, int rail)
{
    int *n = &rig.n_held[side][rail];

    *n += inner_of(t)->ops->poll(inner_of(t), rig.held[side][rail] + *n, HELD - *n);
}

static int give(int side, int rail, struct trib_event *events, int max)
{
    struct trib_event *held = rig.held[side][rail];
    int few = 1 + (int)draw(3);

    max = max < few ? max : few;
    int n = rig.n_held[side][rail] < max ? rig.n_held[side][rail] : max;

    memcpy(events, held, (size_t)n * sizeof(*events));
    rig.n_held[side][rail] -= n;
    memmove(held, held + n, (size_t)rig.n_held[side][rail] * sizeof(*held));
    return n;
}

static bool is_frozen(int side, int rail)
{
    int line = (int)(line_of(side, rail) - rig.line);

    return (rig.frozen >> line & 1) && rig.thaw_at &&
           !trib_deadline_passed(rig.thaw_at);
}

static int line_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    int side, rail;

    find(t, &side, &rail);
    struct line *line = line_of(side, rail);
    if (rig.reported[side][rail] || is_frozen(side, rail))
        return 0;
    /* A write under way may land late, at an end that knows of nothing. */
    if (!line->down || (line->notices[side] ? line->last_look[side] : draw(100) < 5))
        hold(t, side, rail);
    if (!line->down && draw(100) < line->stall)
        return 0;
    int n = give(side, rail, events, max);
    if (n || !line->down || !line->notices[side] || rig.n_held[side][rail])
        return n;
    rig.reported[side][rail] = true;
    events[0] = (struct trib_event){
        .kind = TRIB_EVENT_PEER_LOST, .peer = !side, .given_up = line->gives_up};
    snprintf(events[0].why, sizeof(events[0].why), "the line is cut at line%d", rail);
    return 1;
}

static trib_status_t line_write(struct trib_transport *t, int peer,
                                const struct trib_write *write)
{
    int side, rail;

    find(t, &side, &rail);
    struct line *line = line_of(side, rail);
    if (rig.reported[side][rail])
        return TRIB_ERR_PEER_LOST;
    if (rig.frozen && ++rig.writes == rig.freeze_at)
        rig.thaw_at = trib_deadline_ms(rig.freeze_ms);
    if (line->writes == line->cut_at)
        line->down = true;
    if (line->down) /* until its end is noticed a line takes as much as its queue holds
                     */
        return line->writes++ - line->cut_at < 6 ? TRIB_OK : TRIB_ERR_NO_RESOURCE;
    trib_status_t status = inner_of(t)->ops->write(inner_of(t), peer, write);
    line->writes += status == TRIB_OK;
    return status;
}

/* All that refuse are asked at the same time, or the last one comes too late. */
static void wait_for_others(int side)
{
    uint64_t until = trib_deadline_ms(5000 * tribtest_slowness());

    rig.asked[side]++;
    while (rig.asked[side] < rig.together && !rig.alone) {
        if (trib_deadline_passed(until))
            rig.alone = true;
        usleep(200);
    }
}

static trib_status_t line_connect(struct trib_transport *t, int peer,
                                  const struct trib_address *address)
{
    int side, rail;

    find(t, &side, &rail);
    if (rig.refuses[rail]) {
        wait_for_others(side);
        rig.line[rail].down = rig.reported[side][rail] = true;
        return trib_fail(decorator_of(t)->err, TRIB_ERR_UNSUPPORTED,
                         "no way over line %d", rail);
    }
    if (rig.one_way[rail] && side == 0)
        return trib_fail(decorator_of(t)->err, TRIB_ERR_UNSUPPORTED,
                         "no way over line %d", rail);
    return inner_of(t)->ops->connect(inner_of(t), peer, address);
}

/* A disconnected line delivers nothing; a cut one carries no abort notice. */
static void line_disconnect(struct trib_transport *t, int peer)
{
    int side, rail;

    find(t, &side, &rail);
    if (rig.one_way[rail] && side == 0 && rig.leaves)
        rig.leaves();
    if (line_of(side, rail)->down)
        rig.reported[side][rail] = true;
    else
        inner_of(t)->ops->disconnect(inner_of(t), peer);
}

static void line_leave(struct trib_transport *t, const bool *which)
{
    for (int peer = 0; peer < 2; peer++)
        if (!which || which[peer])
            line_disconnect(t, peer);
}

static trib_status_t install_line(const struct trib_transport_opts *opts,
                                  struct decorator *w)
{
    (void)opts;
    w->ops.poll = line_poll;
    w->ops.write = line_write;
    w->ops.connect = line_connect;
    w->ops.disconnect = line_disconnect;
    w->ops.leave = line_leave;
    return TRIB_OK;
}

static trib_status_t open_line(void *arg, int rail,
                               const struct trib_transport_opts *opts,
                               struct trib_transport **out)
{
    static const struct trib_decorator line = {.install = install_line};
    struct trib_transport_opts part = *opts;
    struct trib_transport *inner;

    (void)arg;
    part.params = "depth=8";
    trib_status_t status = trib_loop_ops.open(&part, &inner);
    if (status != TRIB_OK)
        return status;
    assert_ok(trib_decorate(&line, opts, inner, out));
    rig.wrap[opts->self][rail] = decorator_of(*out);
    return TRIB_OK;
}

/* Lines that never fail; a test changes this before rig_open. */
static void rig_reset(int rails0, int rails1)
{
    memset(&rig, 0, sizeof(rig));
    rig.rails[0] = rails0;
    rig.rails[1] = rails1;
    for (int k = 0; k < MULTIRAIL_MAX; k++) {
        rig.wired[k] = k;
        rig.line[k] = (struct line){
            .cut_at = NONE, .notices = {true, true}, .last_look = {true, true}};
    }
}

static void rig_open_side(int side)
{
    struct trib_transport_opts opts = pair_opts(&rig.pair, side);
    if (rig.stop_ms)
        rig.pair.cfg.stop_timeout_ms = rig.stop_ms;
    struct multirail_plan plan = {
        .name = "loop", .n = rig.rails[side], .confirms = true, .open = open_line};

    for (int k = 0; k < plan.n; k++) {
        snprintf(plan.label[k], sizeof(plan.label[k]), "line%d", k);
        plan.net[k] = rig.net[side][k];
        plan.speed[k] = rig.speed[side][k];
    }
    assert_ok(trib_multirail_make(&opts, &plan, &rig.pair.t[side]));
}

static void rig_open(void)
{
    struct trib_address address[2];
    struct trib_blob region[2];
    struct pair *pair = &rig.pair;

    for (int i = 0; i < 2; i++) {
        rig_open_side(i);
        pair_offer(pair, i, &address[i], &region[i]);
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(pair->t[i]->ops->connect(pair->t[i], !i, &address[!i]));
        assert_ok(pair->t[i]->ops->import_region(pair->t[i], !i, &region[!i],
                                                 &pair->remote[i]));
    }
}

/* One side, its messages out and in. Message m has two writes: a quiet one and an
 * event. */
struct side {
    uint32_t posted; /* writes */
    uint32_t done;
    uint32_t got; /* messages */
    int lost;
    bool left;
};

/* The lower half of the memory is the target, the upper the source. */
static uint8_t *slot_of(int side, bool source, uint32_t message)
{
    return rig.pair.mem[side] + (source ? PAIR_LEN / 2 : 0) + message * SLOT;
}

static uint8_t byte_of(int side, uint32_t message, uint32_t i)
{
    return (uint8_t)(1 + (side * 31u + message * 7u + i) % 200);
}

static void prepare(int side)
{
    for (uint32_t m = 0; m < MESSAGES; m++) {
        for (uint32_t i = 0; i < SLOT; i++)
            slot_of(side, true, m)[i] = byte_of(side, m, i);
    }
}

static trib_status_t post_next(int side, struct side *s)
{
    struct trib_transport *t = rig.pair.t[side];
    uint32_t m = s->posted / 2;
    bool quiet = s->posted % 2 == 0;
    size_t half = quiet ? 0 : SLOT / 2;
    struct trib_write w = {
        .local = rig.pair.region[side],
        .local_off = PAIR_LEN / 2 + m * SLOT + half,
        .remote = rig.pair.remote[side],
        .remote_off = m * SLOT + half,
        .len = SLOT / 2,
        .imm = m,
        .quiet = quiet,
        .signal = true,
        .token = s->posted,
    };
    trib_status_t status = t->ops->write(t, !side, &w);

    s->posted += status == TRIB_OK;
    return status;
}

static void take_event(int side, struct side *s, const struct trib_event *e)
{
    assert_int_equal(e->peer, !side);
    assert_int_equal(s->lost, 0);
    switch (e->kind) {
    case TRIB_EVENT_WRITE_DONE:
        assert_int_equal(e->token, s->done);
        memset(slot_of(side, true, s->done / 2) + (s->done % 2) * SLOT / 2, 0xdd,
               SLOT / 2);
        s->done++;
        break;
    case TRIB_EVENT_ARRIVED:
        assert_int_equal(e->imm, s->got);
        assert_int_equal(e->len, SLOT / 2);
        for (uint32_t i = 0; i < SLOT; i++)
            assert_int_equal(slot_of(side, false, s->got)[i],
                             byte_of(!side, s->got, i));
        memset(slot_of(side, false, s->got), 0xee, SLOT);
        s->got++;
        break;
    default:
        s->lost++;
        s->left = e->left;
    }
}

static void poll_side(int side, struct side *s)
{
    struct trib_event e[5];
    int n = rig.pair.t[side]->ops->poll(rig.pair.t[side], e, 1 + (int)draw(5));

    for (int i = 0; i < n; i++)
        take_event(side, s, &e[i]);
}

/* Both sides send all, in a random interleaving; or until both have lost the other. */
static void run(struct side s[2])
{
    uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    memset(s, 0, 2 * sizeof(*s));
    prepare(0);
    prepare(1);
    while ((s[0].done < 2 * MESSAGES || s[1].done < 2 * MESSAGES ||
            s[0].got < MESSAGES || s[1].got < MESSAGES) &&
           !(s[0].lost && s[1].lost)) {
        int side = (int)draw(2);
        for (int k = 0; k < rig.rails[side] && rig.busy; k++)
            multirail_of(rig.pair.t[side])->done[k]++;
        if (draw(3) && s[side].posted < 2 * MESSAGES && !s[side].lost)
            (void)post_next(side, &s[side]);
        else
            poll_side(side, &s[side]);
        if (trib_deadline_passed(until))
            fail_msg("stuck: posted %u %u, done %u %u, got %u %u, seed %u", s[0].posted,
                     s[1].posted, s[0].done, s[1].done, s[0].got, s[1].got, rig.seed);
    }
}

static void assert_all_once(const struct side s[2])
{
    struct trib_event e;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(s[i].lost, 0);
        assert_int_equal(s[i].got, MESSAGES);
        assert_int_equal(rig.pair.t[i]->ops->poll(rig.pair.t[i], &e, 1), 0);
    }
    /* No bytes came after their message. */
    for (uint32_t i = 0; i < MESSAGES * SLOT; i++) {
        assert_int_equal(rig.pair.mem[0][i], 0xee);
        assert_int_equal(rig.pair.mem[1][i], 0xee);
    }
}

#endif
