/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators over several rails, one of which is late: data of the others overtakes
 * it in memory. The devices are emulated in memory.
 */
#include "tests/harness/fake_verbs.h"
#include "tests/harness/ranks.h"

enum { CHUNK = 4096, CHUNKS_MAX = 20, ROUNDS = 150, LATE_US = 500, PAUSE_US = 400 };

static uint8_t expected(int round, size_t chunk)
{
    return (uint8_t)(round * 7 + (int)chunk);
}

/* A vector has 4 to 20 chunks and a lane 8 slots, so the root waits for credits. */
static void broadcast(struct ranks_self *self, uint8_t *x, int round)
{
    const size_t chunks = 4 + (size_t)round % 17;
    const bool is_root = self->rank == 0;

    for (size_t c = 0; c < chunks; c++)
        memset(x + c * CHUNK, is_root ? expected(round, c) : 0xff, CHUNK);
    ranks_ok(self, trib_broadcast(self->comm, x, chunks * CHUNK, TRIB_U8, 0));
    for (size_t i = 0; i < chunks * CHUNK; i++)
        if (x[i] != expected(round, i / CHUNK))
            ranks_die(self, "round %d: byte %zu is %d", round, i, x[i]);
}

static int broadcasts(struct ranks_self *self)
{
    uint8_t *x = malloc((size_t)CHUNKS_MAX * CHUNK);

    for (int round = 0; round < ROUNDS; round++) {
        broadcast(self, x, round);
        usleep(PAUSE_US);
    }
    free(x);
    return 0;
}

/* Rank 0 sends bursts of short messages to rank 1, which has 8 slots for them. */
static int messages(struct ranks_self *self)
{
    enum { BURST = 40 };
    trib_request_t *request[BURST];
    uint32_t x[BURST];

    for (uint32_t round = 0; round < ROUNDS / 3; round++) {
        for (uint32_t i = 0; i < BURST; i++) {
            x[i] = self->rank ? UINT32_MAX : round * BURST + i;
            ranks_ok(self, self->rank
                               ? trib_irecv(self->comm, &x[i], 1, TRIB_U32, 0, 5,
                                            &request[i])
                               : trib_isend(self->comm, &x[i], 1, TRIB_U32, 1, 5,
                                            &request[i]));
        }
        for (uint32_t i = 0; i < BURST; i++) {
            ranks_ok(self, trib_request_wait(request[i]));
            ranks_ok(self, trib_request_free(request[i]));
            if (x[i] != round * BURST + i)
                ranks_die(self, "round %u: message %u is %u", round, i, x[i]);
        }
    }
    return 0;
}

/* Writes of rank 1 over the first device are late, including credits. */
static void run(int devices, ranks_fn fn)
{
    struct fake_verbs_opts *fake = fake_verbs_reset();

    fake->devices = devices;
    fake->late_us = LATE_US;
    fake->late_peer = 0;
    ranks_pass(.size = 2, .fn = fn, .threads = true, .seconds = 30,
               .config = "transport=verbs,chunk=4K,window=8,timeout_ms=20000");
    assert_int_equal(fake_verbs_mistakes(), 0);
}

TEST(test_broadcasts)
{
    for (int devices = 2; devices <= 4; devices++)
        run(devices, broadcasts);
}

TEST(test_messages)
{
    run(4, messages);
}
