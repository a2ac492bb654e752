/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines of one process that exchange messages, driven by hand. Each has `floats`
 * of trib_alloc memory at x and at y.
 */
#ifndef TESTS_PIPELINE_P2P_TALK_H
#define TESTS_PIPELINE_P2P_TALK_H

#include "tests/pipeline/engine/engines.h"

#include "pipeline/p2p/mailbox.h"
#include "pipeline/p2p/p2p.h"

enum { MOST = 100 }; /* messages of a test */

struct talk {
    struct engines *t;
    struct trib_run runs[2 * MOST];
    struct trib_p2p_request requests[2 * MOST];
};

static inline struct talk *open_talk_of(size_t floats, const char *transport,
                                        const char *config)
{
    struct talk *k = calloc(1, sizeof(*k));

    assert_non_null(k);
    k->t = engines_open(2, floats, transport, config);
    for (int i = 0; i < 2; i++) {
        struct trib_engine *e = &k->t->side[i].engine;
        assert_status(trib_engine_reach(e, 1 - i, "a test"), TRIB_OK);
        for (int peer = 0; peer < 2; peer++)
            assert_status(trib_p2p_open(e, peer), TRIB_OK);
        assert_status(trib_p2p_open(e, 1 - i), TRIB_OK);
        assert_true(trib_p2p_bytes(e) > 64);
    }
    return k;
}

static inline struct talk *open_talk(const char *transport, const char *config)
{
    return open_talk_of(1, transport, config);
}

static inline void drive(struct talk *k, int passes)
{
    for (int i = 0; i < passes; i++)
        for (int side = 0; side < 2; side++)
            (void)trib_engine_progress(&k->t->side[side].engine);
}

static inline void begin(struct talk *k, int at, int side, bool sends, int peer,
                         int tag, void *buffer, size_t bytes)
{
    k->requests[at] = (struct trib_p2p_request){.sends = sends,
                                                .peer = peer,
                                                .tag = tag,
                                                .dtype = TRIB_U8,
                                                .count = bytes,
                                                .bytes = bytes,
                                                .run = &k->runs[at],
                                                .buffer = buffer};
    trib_p2p_start(&k->t->side[side].engine, &k->requests[at]);
}

static inline bool is_done(const struct talk *k, int at)
{
    return k->runs[at].now.state == TRIB_RUN_DONE;
}

static inline void close_talk(struct talk *k)
{
    engines_close(k->t);
    free(k);
}

/* Open a mailbox with which side 1, which has sent nothing so far, writes entries that
 * a correct rank never writes. */
static inline void open_box(struct talk *k, struct trib_mailbox *box)
{
    struct trib_engine *o = &k->t->side[1].engine;

    *box = (struct trib_mailbox){.link = NULL};
    assert_status(trib_mailbox_open(box, &o->links[0], &o->arena), TRIB_OK);
    box->advert_unsent = false; /* side 0 keeps writing to the first one */
    assert_status(trib_mailbox_join(box), TRIB_OK);
}

static inline void write_entry(struct trib_mailbox *box, const struct trib_message *m,
                               const void *payload)
{
    uint8_t *to;
    struct trib_message *entry = trib_mailbox_next(box, m->bytes, &to);

    memcpy(entry, m, offsetof(struct trib_message, payload));
    if (payload)
        memcpy(to, payload, m->bytes);
    assert_status(trib_mailbox_post(box), TRIB_OK);
}

#endif
