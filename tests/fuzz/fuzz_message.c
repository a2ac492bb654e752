/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks of one process that exchange messages, driven by hand. Between two passes,
 * a few fields of their mailboxes are edited: heads of entries, payloads (one of which
 * is the address of a long message), credits. Each message succeeds, or fails with a
 * status and a message, and no memory outside its receive buffer changes.
 *
 * The first byte selects the transport, and whether entries have checksums. Then come
 * edits (edits.h); the upper bits of the place of an edit are the number of passes
 * before it.
 */
#include <unistd.h>

#include "base/config.h"
#include "pipeline/engine/engine.h"
#include "pipeline/p2p/p2p.h"
#include "pipeline/p2p/p2p_state.h"
#include "tests/fuzz/edits.h"
#include "transport/open.h"

unsigned fuzz_reached; /* messages received correctly */

enum {
    MESSAGES = 4,
    LONGEST = 9000,
    BESIDE = 64, /* guard bytes before and after each buffer */
    STRIDE = LONGEST + 2 * BESIDE,
    PASSES = 60,
    EDITS_MOST = 24,
};

enum place {
    AT_HEAD, /* of the entry that is read next */
    AT_PAYLOAD, /* of the same */
    AT_SLOTS,
    AT_CREDITS,
    AT_LINK, /* credits of the link, and the flag that memory is withdrawn */
    AT_PLACES,
};

static const char *const transports[] = {"shm", "shm+nomap", "loop"};
enum { TRANSPORTS = 3 };

/* The first is short; the others are long: read from their address, or in parts. */
static const size_t lengths[MESSAGES] = {100, LONGEST, 5000, LONGEST};

struct side {
    struct trib_error err;
    struct trib_engine engine;
    uint8_t *shared; /* memory from trib_alloc: messages 1 and 2 */
    uint8_t *plain; /* 0 and 3 */
    struct trib_run sent[MESSAGES], received[MESSAGES];
    struct trib_p2p_request requests[2 * MESSAGES];
};

struct two {
    struct side side[2];
    bool spoilt; /* entries were edited and have no checksums */
};

static struct trib_config cfg[2]; /* without and with checksums */

/* Return the buffer that a message is sent from, or received into. */
static uint8_t *at(struct side *s, int message, bool received)
{
    uint8_t *memory = message == 1 || message == 2 ? s->shared : s->plain;

    return memory + (size_t)(2 * message + received) * STRIDE + BESIDE;
}

static void open_side(struct two *t, int rank, const char *transport, bool checks)
{
    struct side *s = &t->side[rank];
    struct trib_engine *e = &s->engine;
    const struct trib_transport_opts opts = {
        .self = rank, .size = 2, .params = "", .cfg = &cfg[checks], .err = &s->err};
    const size_t bytes = (size_t)2 * MESSAGES * STRIDE;
    void *x;

    e->cfg = &cfg[checks];
    e->err = &s->err;
    e->kernels = trib_kernels_get(NULL);
    e->rank = rank;
    e->size = e->ranks = 2;
    need(trib_transport_open(transport, &opts, &e->transport) == TRIB_OK);
    need(trib_engine_open(e) == TRIB_OK);
    need(trib_memory_alloc(&e->memories, bytes, &x) == TRIB_OK);
    s->shared = x;
    s->plain = malloc(bytes);
    need(s->plain);
    memset(s->shared, 7, bytes);
    memset(s->plain, 7, bytes);
}

static void introduce(struct trib_engine *to, const struct trib_engine *e)
{
    struct trib_peer *p = &to->peers[e->rank];

    snprintf(p->host, sizeof(p->host), "here");
    p->pid = getpid();
    need(e->transport->ops->address(e->transport, &p->address) == TRIB_OK);
    need(trib_arena_export(&e->arena, &p->arena) == TRIB_OK);
}

static void begin(struct two *t, int rank, int message, bool sends)
{
    struct side *s = &t->side[rank];
    struct trib_p2p_request *r = &s->requests[2 * message + sends];

    *r = (struct trib_p2p_request){
        .sends = sends,
        .peer = 1 - rank,
        .tag = message,
        .dtype = TRIB_U8,
        .count = lengths[message],
        .bytes = lengths[message],
        .run = sends ? &s->sent[message] : &s->received[message],
        .buffer = at(s, message, !sends),
    };
    if (sends)
        memset(r->buffer, 10 + message, lengths[message]);
    trib_p2p_start(&s->engine, r);
}

static void open_two(struct two *t, uint8_t how)
{
    memset(t, 0, sizeof(*t));
    for (int i = 0; i < 2; i++)
        open_side(t, i, transports[how % TRANSPORTS], how / TRANSPORTS % 2);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            introduce(&t->side[i].engine, &t->side[k].engine);
    for (int i = 0; i < 2; i++) {
        need(trib_engine_reach(&t->side[i].engine, 1 - i, "the fuzzer") == TRIB_OK);
        need(trib_p2p_open(&t->side[i].engine, 1 - i) == TRIB_OK);
    }
}

/* Edit the memory of this side that the other side may write. */
static void edit_side(struct two *t, const struct edits *all, const struct edit *e,
                      bool checks)
{
    struct trib_engine *engine = &t->side[e->offset >> 14 & 1].engine;
    const int peer = 1 - engine->rank;
    struct trib_mailbox *m = &trib_p2p_of(engine)->of[peer]->box;
    const size_t stride = sizeof(struct trib_message) + m->slot_bytes;
    uint8_t *slots = m->base + sizeof(struct trib_mailbox_credits);
    uint8_t *entry = slots + (m->taken & (m->slots - 1)) * stride;
    const enum place place = (enum place)(e->place % AT_PLACES);

    t->spoilt |= !checks && place != AT_CREDITS && place != AT_LINK;
    if (place == AT_HEAD)
        (void)edit_apply(all, e, entry, sizeof(struct trib_message));
    else if (place == AT_PAYLOAD)
        (void)edit_apply(all, e, entry + sizeof(struct trib_message), 160);
    else if (place == AT_SLOTS)
        (void)edit_apply(all, e, slots, stride * m->slots);
    else if (place == AT_CREDITS)
        (void)edit_apply(all, e, m->base, sizeof(struct trib_mailbox_credits));
    else
        (void)edit_apply(all, e, engine->arena.base, sizeof(struct trib_credits));
}

static void drive(struct two *t, struct edits *all, bool checks)
{
    struct edit e = {0};
    bool has = edits_next(all, &e);
    int due = e.place >> 4, n = 0;

    for (int i = 0; i < PASSES; i++) {
        struct trib_engine *engine = &t->side[i % 2].engine;
        for (; has && i >= due && n < EDITS_MOST; n++) {
            edit_side(t, all, &e, checks);
            has = edits_next(all, &e);
            due = i + (e.place >> 4);
        }
        if (i == 8) /* some receives start before their message, some after it */
            for (int k = 0; k < 4; k++)
                begin(t, k % 2, 2 + k / 2, false);
        (void)trib_engine_progress(engine);
        (void)trib_engine_events(engine);
        trib_engine_notices(engine);
    }
}

static bool is_all(const uint8_t *x, size_t n, int value)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != value)
            return false;
    return true;
}

static void check(const struct two *t, struct side *s)
{
    const struct trib_engine *e = &s->engine;

    need(!e->failed ||
         (trib_status_of_peer((int)e->failed) == (int)e->failed && e->failure.text[0]));
    for (int i = 0; i < MESSAGES; i++) {
        const uint8_t *x = at(s, i, true);
        const bool ok = s->received[i].now.state == TRIB_RUN_DONE &&
                        s->received[i].now.status == TRIB_OK;
        const bool right = ok && is_all(x, lengths[i], 10 + i);
        need(right || !ok || t->spoilt);
        need(is_all(x - BESIDE, BESIDE, 7) &&
             is_all(x + lengths[i], STRIDE - BESIDE - lengths[i], 7));
        need(is_all(at(s, i, false), lengths[i], 10 + i));
        fuzz_reached += right;
    }
}

static void close_two(struct two *t)
{
    for (int i = 0; i < 2; i++)
        if (trib_engine_is_busy(&t->side[i].engine))
            trib_engine_fail(&t->side[i].engine, TRIB_ERR_TIMEOUT,
                             "the fuzzer ends it");
    for (int i = 0; i < 2; i++) {
        struct side *s = &t->side[i];
        trib_engine_close(&s->engine);
        s->engine.transport->ops->close(s->engine.transport);
        free(s->plain);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t special[] = {
        1,           2,         3,          4, 5,   LONGEST,
        LONGEST + 1, INT64_MAX, UINT64_MAX, 0, 100, sizeof(struct trib_ref)};
    static struct two t;

    if (size < 1)
        return 0;
    for (int i = 0; i < 2 && !cfg[1].chunk; i++)
        need(trib_config_load(&cfg[i],
                              i ? "chunk=4K;window=4;timeout_ms=2000;check=sum"
                                : "chunk=4K;window=4;timeout_ms=2000",
                              NULL, NULL) == TRIB_OK);
    struct edits all = {.at = data + 1,
                        .left = size - 1,
                        .special = special,
                        .n_special = sizeof(special) / sizeof(*special)};
    const bool checks = data[0] / TRANSPORTS % 2;
    open_two(&t, data[0]);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < MESSAGES; k++) {
            begin(&t, i, k, true);
            if (k < 2)
                begin(&t, i, k, false);
        }
    drive(&t, &all, checks);
    for (int i = 0; i < 2; i++)
        check(&t, &t.side[i]);
    close_two(&t);
    return 0;
}
