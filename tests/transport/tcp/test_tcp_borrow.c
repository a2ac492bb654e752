/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that tcp borrows for one operation. After a failure the caller may use it at
 * once, although writes to it and from it are in flight. The connection remains.
 */
#include "tests/transport/pair.h"

enum { LEN = 24 << 20 }; /* more than sockets take */

/* A write of all of `from` at side 0 to `to` at side 1. */
static void post(struct pair *pair, struct trib_region *from, struct trib_remote *to)
{
    const struct trib_write w = {
        .local = from, .remote = to, .len = LEN, .imm = 1, .signal = true};

    assert_ok(pair->t[0]->ops->write(pair->t[0], 1, &w));
}

static struct trib_region *borrow(struct pair *pair, int side, bool written,
                                  uint8_t *memory)
{
    struct trib_region *region;

    assert_ok(pair->t[side]->ops->borrow(pair->t[side], memory, LEN, written, &region));
    return region;
}

/* Side 0's import of a region of side 1. */
static struct trib_remote *import_of(struct pair *pair, struct trib_region *region)
{
    struct trib_blob blob;
    struct trib_remote *remote;

    assert_ok(pair->t[1]->ops->export_region(pair->t[1], region, &blob));
    assert_ok(pair->t[0]->ops->import_region(pair->t[0], 1, &blob, &remote));
    return remote;
}

/* Both sides poll until side 1 has an event. */
static void await_event(struct pair *pair, struct trib_event *event)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    struct trib_event other;

    do {
        if (pair->t[0]->ops->poll(pair->t[0], &other, 1))
            assert_int_equal(other.kind, TRIB_EVENT_WRITE_DONE);
        if (pair->t[1]->ops->poll(pair->t[1], event, 1))
            return;
    } while (!trib_deadline_passed(until));
    fail_msg("nothing came");
}

static void expect_arrival(struct pair *pair)
{
    struct trib_event event;

    await_event(pair, &event);
    assert_int_equal(event.kind, TRIB_EVENT_ARRIVED);
}

static bool is_all(const uint8_t *memory, uint8_t value)
{
    for (size_t i = 0; i < LEN; i++)
        if (memory[i] != value)
            return false;
    return true;
}

TEST(test_writes_into_it_go_nowhere)
{
    uint8_t *from = malloc(LEN), *to = malloc(LEN);
    struct pair pair;
    struct trib_event event;
    struct trib_region *source;

    assert_true(from && to);
    pair_open(&pair, "tcp", "tcp");
    memset(from, 1, LEN);
    memset(to, 2, LEN);
    assert_ok(pair.t[0]->ops->reg(pair.t[0], from, LEN, &source));
    struct trib_region *target = borrow(&pair, 1, true, to);
    post(&pair, source, import_of(&pair, target));
    while (to[0] == 2)
        assert_int_equal(pair.t[1]->ops->poll(pair.t[1], &event, 1), 0);
    assert_int_equal(to[LEN - 1], 2);
    pair.t[1]->ops->give_back(pair.t[1], target, true);
    memset(to, 3, LEN);
    expect_arrival(&pair);
    assert_true(is_all(to, 3));
    assert_ok(pair_write(&pair, 100, 2));
    expect_arrival(&pair);
    pair_close(&pair);
    free(from);
    free(to);
}

static void write_from_copy(const char *transport)
{
    uint8_t *from = malloc(LEN);
    struct pair pair;
    struct trib_region *target;
    void *to;

    assert_non_null(from);
    pair_open(&pair, transport, transport);
    memset(from, 1, LEN);
    struct trib_region *source = borrow(&pair, 0, false, from);
    assert_ok(pair.t[1]->ops->alloc(pair.t[1], LEN, &to, &target));
    post(&pair, source, import_of(&pair, target));
    assert_true(pair.t[0]->ops->detach(pair.t[0], 1));
    pair.t[0]->ops->give_back(pair.t[0], source, false);
    memset(from, 3, LEN);
    expect_arrival(&pair);
    assert_true(is_all(to, 1));
    pair_close(&pair);
    free(from);
}

TEST(test_writes_out_of_it_are_as_they_were)
{
    write_from_copy("tcp");
    write_from_copy("rails");
}

TEST(test_nobody_writes_into_an_input)
{
    uint8_t *from = calloc(1, LEN), *input = calloc(1, LEN);
    struct pair pair;
    struct trib_event event;
    struct trib_region *source;

    assert_true(from && input);
    pair_open(&pair, "tcp", "tcp");
    memset(from, 1, LEN);
    assert_ok(pair.t[0]->ops->reg(pair.t[0], from, LEN, &source));
    struct trib_region *closed = borrow(&pair, 1, false, input);
    post(&pair, source, import_of(&pair, closed));
    assert_int_equal(pair_await(&pair, 1, &event), 1);
    assert_int_equal(event.kind, TRIB_EVENT_PEER_LOST);
    assert_true(is_all(input, 0));
    pair.t[1]->ops->give_back(pair.t[1], closed, false);
    pair_close(&pair);
    free(from);
    free(input);
}
