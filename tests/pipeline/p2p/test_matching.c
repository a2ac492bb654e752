/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of requests and of unexpected messages: the oldest with a tag matches first.
 */
#include "tests/harness/tribtest.h"

#include "pipeline/p2p/matching.h"

enum { N = 60 };

TEST(test_queue)
{
    struct trib_p2p_request r[N] = {{.tag = 0}};
    struct trib_p2p_queue q = {.head = NULL};

    assert_null(trib_p2p_pop(&q));
    for (int i = 0; i < N; i++) {
        r[i].tag = i % 3;
        r[i].id = (uint32_t)i + 1;
        trib_p2p_append(&q, &r[i]);
    }
    assert_int_equal(q.n, N);
    assert_null(trib_p2p_take_tag(&q, 3));
    assert_null(trib_p2p_take_id(&q, 0));
    for (int i = 2; i < N; i += 3)
        assert_ptr_equal(trib_p2p_take_tag(&q, 2), &r[i]);
    assert_ptr_equal(q.tail, &r[N - 2]);
    assert_ptr_equal(trib_p2p_take_id(&q, N - 1), &r[N - 2]); /* the last */
    assert_ptr_equal(trib_p2p_take_id(&q, 1), &r[0]); /* the first */
    trib_p2p_append(&q, &r[2]);
    assert_ptr_equal(trib_p2p_pop(&q), &r[1]);
    assert_ptr_equal(trib_p2p_take_tag(&q, 2), &r[2]);
    while (q.head)
        (void)trib_p2p_pop(&q);
    assert_null(q.tail);
    assert_int_equal(q.n, 0);
}

TEST(test_earlies)
{
    struct trib_p2p_earlies k = {.head = NULL};
    uint8_t payload[8];

    for (int i = 0; i < N; i++) {
        const bool eager = i % 2;
        const struct trib_message m = {.kind = eager ? TRIB_MESSAGE_IS_EAGER
                                                     : TRIB_MESSAGE_ANNOUNCE,
                                       .tag = i % 3,
                                       .send_id = (uint32_t)i,
                                       .count = 8,
                                       .bytes = eager ? 8 : 0};
        memset(payload, i, sizeof(payload));
        struct trib_p2p_early *e = trib_p2p_keep(&k, &m, payload);
        assert_non_null(e);
        assert_int_equal(e->eager, eager);
    }
    assert_int_equal(k.n, N);
    assert_int_equal(k.n_eager, N / 2);
    assert_null(trib_p2p_take_early(&k, 3));
    for (int tag = 2; tag >= 1; tag--) {
        for (int i = tag; i < N; i += 3) {
            struct trib_p2p_early *e = trib_p2p_take_early(&k, tag);
            assert_int_equal(e->send_id, i);
            if (e->eager)
                assert_int_equal(e->payload[7], i);
            free(e);
        }
        assert_null(trib_p2p_take_early(&k, tag));
    }
    assert_int_equal(k.n, N / 3);
    trib_p2p_drop_earlies(&k);
    assert_int_equal(k.n + k.n_eager, 0);
    assert_null(k.head);
}
