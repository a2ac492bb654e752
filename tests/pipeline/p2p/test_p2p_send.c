/* SPDX-License-Identifier: BSD-3-Clause */
/* Short messages are sent at once, up to a limit; a long one waits for its receive. */
#include "tests/pipeline/p2p/talk.h"

static const char *const transports[] = {"shm", "shm+nomap"};

/* A short message is done without a receive, until the receiver keeps as many as it
 * does for one peer; a longer one waits. */
TEST(test_ways)
{
    static uint8_t out[MOST][5000], in[MOST][5000];

    for (int t = 0; t < 2; t++) {
        struct talk *k = open_talk(transports[t], NULL);
        for (int i = 0; i < MOST; i++) {
            memset(out[i], i, sizeof(out[i]));
            begin(k, i, 0, true, 1, i, out[i], i == 3 ? 5000 : 4096);
        }
        drive(k, 400);
        for (int i = 0; i < MOST; i++)
            assert_int_equal(is_done(k, i), i != 3 && i < TRIB_P2P_EAGER_MOST + 1);
        for (int i = MOST - 1; i >= 0; i--)
            begin(k, MOST + i, 1, false, 0, i, in[i], i == 3 ? 5000 : 4096);
        drive(k, 400);
        for (int i = 0; i < 2 * MOST; i++) {
            assert_true(is_done(k, i));
            assert_status(k->runs[i].now.status, TRIB_OK);
        }
        for (int i = 0; i < MOST; i++)
            assert_memory_equal(in[i], out[i], i == 3 ? 5000 : 4096);
        assert_false(trib_engine_is_busy(&k->t->side[0].engine));
        close_talk(k);
    }
}
