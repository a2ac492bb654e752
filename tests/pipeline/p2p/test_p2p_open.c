/* SPDX-License-Identifier: BSD-3-Clause */
/* The pairs of an engine: their pending requests, how they end, and watchers. */
#include "tests/pipeline/p2p/talk.h"

/* The text that describes pending requests, and the end of all requests in flight. */
TEST(test_failure)
{
    struct talk *k = open_talk("shm", NULL);
    struct trib_engine *e = &k->t->side[0].engine;
    char text[200];
    uint8_t x[10];

    e->p2p->ops->describe(e, text, sizeof(text));
    assert_string_equal(text, "no message");
    begin(k, 0, 0, false, 1, 5, x, 10);
    begin(k, 1, 0, true, 0, 6, x, 10);
    trib_engine_describe(e, text, sizeof(text));
    assert_string_equal(text, "receive of 10 u8 with tag 5 from rank 1");
    trib_engine_fail(e, TRIB_ERR_PEER_LOST, "rank 1 is lost");
    assert_status(k->runs[0].now.status, TRIB_ERR_PEER_LOST);
    assert_true(is_done(k, 0));
    assert_false(trib_engine_is_busy(e));
    close_talk(k);
}

struct seen {
    int n, peer, tag;
};

static void look(void *arg, int peer, const struct trib_p2p_early *early)
{
    struct seen *s = arg;

    s->n++;
    s->peer = peer;
    s->tag = early->tag;
}

/* Watchers see messages with tags below 0: those already received and later ones. */
TEST(test_watch)
{
    struct talk *k = open_talk("shm", NULL);
    struct trib_engine *e = &k->t->side[1].engine;
    struct seen seen = {.n = 0};
    uint8_t x[10] = {0};

    begin(k, 0, 0, true, 1, -3, x, 10);
    begin(k, 1, 0, true, 1, 3, x, 10);
    drive(k, 10);
    trib_p2p_watch(e, look, &seen);
    assert_int_equal(seen.n, 1);
    begin(k, 2, 0, true, 1, -4, x, 10);
    drive(k, 10);
    assert_true(seen.n == 2 && seen.peer == 0 && seen.tag == -4);
    trib_p2p_watch(e, NULL, NULL);
    begin(k, 3, 0, true, 1, -5, x, 10);
    drive(k, 10);
    assert_int_equal(seen.n, 2);
    close_talk(k);
}
