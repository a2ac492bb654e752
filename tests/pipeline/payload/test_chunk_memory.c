/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the input and the accumulator of a chunk are, by collective and buffer.
 */
#include "tests/harness/tribtest.h"

#include "pipeline/payload/chunk_memory.h"
#include "pipeline/payload/payload_state.h"

enum { N = 12 };

static uint8_t in[N * 4], out[N * 4], scratch[N * 4];

static struct trib_run run_of(struct trib_payload_state *s, trib_coll_t coll)
{
    s->scratch_acc = scratch;
    return (struct trib_run){.desc = {.op = {.coll = coll},
                                      .element = 4,
                                      .count = N / 3,
                                      .total = N,
                                      .piece = N / 3,
                                      .n_chunks = 3,
                                      .rounds = 1,
                                      .cut = TRIB_CUT_BLOCKED},
                             .now = {.input = in, .recv = out},
                             .payload = s};
}

TEST(test_vector)
{
    struct trib_payload_state s = {.acc_bytes = 16};
    struct trib_run run = run_of(&s, TRIB_ALLREDUCE);
    const struct trib_chunk c = trib_vector_chunk(&run, 0, 2);

    assert_int_equal(c.first, 8);
    assert_ptr_equal(trib_run_input(&run, &c), in + 32);
    assert_ptr_equal(trib_run_acc(&run, &c), out + 32);
    run.no_result = true;
    assert_ptr_equal(trib_run_acc(&run, &c), scratch + 32);
}

/* Rank 1 has only the result of its own block, at the start of its buffer. */
TEST(test_block)
{
    struct trib_payload_state s = {.acc_bytes = 16};
    struct trib_run run = run_of(&s, TRIB_REDUCE_SCATTER);

    run.now.recv_first = 4;
    for (uint32_t k = 0; k < 3; k++) {
        const struct trib_chunk c = trib_vector_chunk(&run, 0, k);
        assert_ptr_equal(trib_run_acc(&run, &c), k == 1 ? out : scratch + c.first * 4);
    }
}

/* Two rounds of accumulators: the third round reuses the memory of the first. */
TEST(test_aggregator)
{
    struct trib_payload_state s = {
        .acc_bytes = 4, .acc_rounds = 2, .acc_is_read = true};
    struct trib_run run = run_of(&s, TRIB_ALLREDUCE);
    struct trib_view view = {.base = scratch, .lo = 0, .hi = 24}, none = {.base = NULL};
    const struct trib_chunk c = {.index = 7, .n = 1};

    run.is_aggregator = true;
    assert_ptr_equal(trib_run_acc(&run, &c), scratch + 4);
    assert_ptr_equal(trib_peer_result(&run, &view, &c), scratch + 4);
    assert_null(trib_peer_result(&run, &none, &c));
}
