/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that "auto" cannot register with verbs, over a device in memory: both ends go
 * by another transport, and the cure is logged once.
 */
#include "tests/transport/auto/auto_verbs_rig.h"

#include <errno.h>

/* None can be registered: both use tcp, and each logs the cure once. */
TEST(test_no_memory_at_all, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_region *more;
    struct pair pair;

    opts->reg_errno = ENOMEM;
    pair_open(&pair, FAR, FAR);
    contains(pair.logged, "ulimit -l unlimited");
    for (int side = 0; side < 2; side++)
        assert_route(&pair, side, "tcp", "verbs: cannot register");
    assert_ok(pair.t[0]->ops->reg(pair.t[0], pair.mem[0], 64, &more));
    pair.t[0]->ops->dereg(pair.t[0], more);
    assert_int_equal(pair.lines, 2); /* the cure, which says that tcp is taken */
    assert_works(&pair);
    assert_ends_well(&pair);
}

/* Side 1's cannot: it is written to by tcp, and writes by tcp. */
TEST(test_no_memory_at_one_end, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address[2];
    struct trib_blob region[2];
    struct pair pair = {0};

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts o = pair_opts(&pair, i);
        assert_ok(trib_transport_open(FAR, &o, &pair.t[i]));
        opts->reg_errno = i ? ENOMEM : 0;
        pair_offer(&pair, i, &address[i], &region[i]);
    }
    join(&pair, 0, address, region);
    assert_route(&pair, 0, "tcp", "verbs: the peer could not register its memory");
    join(&pair, 1, address, region);
    assert_route(&pair, 1, "tcp", "verbs: cannot register");
    assert_works(&pair);
    assert_ends_well(&pair);
}

/* The part of a region's blob that is for tcp alone; its length there becomes `len`. */
static struct trib_blob by_tcp(const struct trib_blob *blob, uint64_t len, bool alone)
{
    struct trib_blob out = *blob;
    struct trib_table_export x;
    size_t at = sizeof(uint32_t), n;
    const uint8_t *record = trib_auto_get(blob->bytes, blob->len, at, 3, &n);

    assert_true(record && n == sizeof(x));
    memcpy(&x, record, n);
    x.len = len;
    memcpy(out.bytes + (record - blob->bytes), &x, n);
    if (alone && trib_auto_put(out.bytes, sizeof(out.bytes), &at, 3, (uint8_t *)&x, n))
        out.len = (uint16_t)at;
    return out;
}

/* A region that was taken by the first way is no shorter by the next. */
TEST(test_shorter_by_another_way, clean, nothing_left)
{
    for (int shorter = 0; shorter < 2; shorter++) {
        struct pair pair;
        struct trib_address address[2];
        struct trib_blob region[2], next;
        struct trib_remote *first, *second;
        open_apart(&pair, FAR, address, region);
        struct trib_transport *t = pair.t[0];
        assert_ok(t->ops->connect(t, 1, &address[1]));
        next = by_tcp(&region[1], PAIR_LEN, true);
        region[1] = by_tcp(&region[1], PAIR_LEN - (uint64_t)shorter, false);
        assert_ok(trib_transport_import(t, 1, &region[1], PAIR_LEN, &first));
        assert_route(&pair, 0, "verbs", "another host");
        assert_status(trib_transport_import(t, 1, &next, PAIR_LEN, &second),
                      shorter ? TRIB_ERR_RANGE : TRIB_OK);
        assert_route(&pair, 0, "tcp", "");
        if (shorter)
            assert_non_null(
                strstr(pair.err.text, "4095 bytes of memory, but this rank must"));
        pair_close(&pair);
    }
}

/* No memory for the source of the first write: the peer moves to another path, unless
 * the source is the caller's, who can copy. For a later write: an error. */
TEST(test_no_memory_for_a_source, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_region *source;
    struct trib_event e;
    struct pair pair;
    static uint8_t bytes[4096];
    void *mem;

    pair_open(&pair, FAR, FAR);
    assert_route(&pair, 0, "verbs", "another host");
    for (int turn = 0; turn < 3; turn++) {
        bool callers = turn == 0, moves = turn == 1;
        int side = turn == 2;
        opts->reg_errno = ENOMEM;
        if (callers)
            assert_ok(pair.t[side]->ops->reg(pair.t[side], bytes, 4096, &source));
        else
            assert_ok(pair.t[side]->ops->alloc(pair.t[side], 4096, &mem, &source));
        opts->reg_errno = 0;
        if (side == 1) /* has written by verbs */
            assert_ok(write_from(&pair, 1, 64, 1));
        opts->reg_errno = ENOMEM;
        struct trib_write w = {
            .local = source, .remote = pair.remote[side], .len = 8, .imm = 7};
        trib_error_clear(&pair.err);
        trib_status_t st = pair.t[side]->ops->write(pair.t[side], !side, &w);
        assert_status(st, moves ? TRIB_OK : TRIB_ERR_NO_MEMORY);
        if (!moves)
            contains(pair.err.text, "ulimit -l unlimited");
        assert_route(&pair, side, moves ? "tcp" : "verbs",
                     moves ? "verbs: cannot register" : "another host");
        pair.t[side]->ops->dereg(pair.t[side], source);
    }
    /* Side 0 has left this path: its failure no longer matters. */
    while (pair_poll(&pair, 0, 50, &e))
        assert_int_equal(e.kind, TRIB_EVENT_ARRIVED);
    fake_verbs_cut();
    assert_int_equal(pair_poll(&pair, 0, 300, &e), 0);
    pair_close(&pair);
}

/* Memory of the user can be copied: a peer that cannot reach it stays where it is, and
 * so does a later one. */
TEST(test_no_memory_for_users, clean, nothing_left)
{
    static uint8_t bytes[4096];
    struct trib_address address[2];
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_blob region[2], users[2];
    struct pair pair;
    struct trib_region *r;
    struct trib_remote *remote;
    void *mem;

    open_apart(&pair, FAR, address, region);
    const struct trib_transport_ops *ops = pair.t[1]->ops;
    opts->reg_errno = ENOMEM;
    assert_ok(ops->alloc_user(pair.t[1], PAIR_LEN, &mem, &r));
    assert_ok(ops->export_region(pair.t[1], r, &users[0]));
    contains(pair.logged, "registered memory is copied on its way over verbs");
    contains(pair.logged, "ulimit -l unlimited");
    assert_ok(ops->reg(pair.t[1], bytes, sizeof(bytes), &r));
    assert_ok(ops->export_region(pair.t[1], r, &users[1]));
    opts->reg_errno = 0;
    for (int side = 0; side < 2; side++) {
        join(&pair, side, address, region);
        assert_route(&pair, side, "verbs", "another host");
    }
    for (int i = 0; i < 2; i++) {
        assert_status(ops->import_region(pair.t[0], 1, &users[i], &remote),
                      TRIB_ERR_INVALID);
        assert_route(&pair, 0, "verbs", "another host");
    }
    assert_int_equal(pair.lines, 1);
    assert_works(&pair);
    assert_ends_well(&pair);
}

/* Without another path it is an error, with the cure. */
TEST(test_no_memory_and_no_choice, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct pair pair = {0};
    struct trib_transport_opts o = pair_opts(&pair, 0);
    struct trib_region *region;
    void *mem;

    opts->reg_errno = ENOMEM;
    assert_ok(trib_transport_open("auto:near=verbs,far=verbs,reconnect=0", &o,
                                  &pair.t[0]));
    assert_status(pair.t[0]->ops->alloc(pair.t[0], 64, &mem, &region),
                  TRIB_ERR_NO_MEMORY);
    contains(pair.err.text, "ulimit -l unlimited");
    trib_error_clear(&pair.err);
    assert_status(pair.t[0]->ops->reg(pair.t[0], &pair, 64, &region),
                  TRIB_ERR_NO_MEMORY);
    contains(pair.err.text, "ulimit -l unlimited");
    pair.t[0]->ops->close(pair.t[0]);
}
