/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that peers may access: the entry that holds part of a vector, its description
 * for peers, and the effects of removing it.
 */
#include "tests/pipeline/link/link_pair.h"

#include "pipeline/link/registered.h"

struct registry {
    struct trib_config cfg;
    struct trib_error err;
    struct trib_transport *transport;
    struct trib_memories m;
};

static void open_registry(struct registry *r, const char *transport)
{
    struct trib_transport_opts opts = {
        .self = 0, .size = 1, .params = "", .cfg = &r->cfg, .err = &r->err};

    memset(r, 0, sizeof(*r));
    assert_status(trib_config_load(&r->cfg, NULL, NULL, NULL), TRIB_OK);
    assert_status(trib_transport_open(transport, &opts, &r->transport), TRIB_OK);
    r->m.transport = r->transport;
}

static void close_registry(struct registry *r)
{
    trib_memory_remove_all(&r->m);
    assert_null(r->m.list);
    assert_int_equal(r->m.n + r->m.capacity + r->m.allocated_bytes, 0);
    r->transport->ops->close(r->transport);
}

/* Return true if [lo, hi) is described at the right offset of its region. */
static bool told(const struct registry *r, const void *ptr, size_t bytes, bool mapped,
                 int64_t at)
{
    struct trib_ref ref;

    trib_memory_ref(&r->m, ptr, 100, 100 + bytes, mapped, &ref);
    assert_int_equal(ref.lo, 100);
    assert_int_equal(ref.hi, 100 + bytes);
    if (ref.blob.len)
        assert_int_equal(ref.origin, at - 100);
    return ref.blob.len > 0;
}

TEST(test_parts)
{
    static uint8_t stray[64];
    struct registry r;
    uint8_t *p;

    open_registry(&r, "shm");
    assert_status(trib_memory_alloc(&r.m, 5000, (void **)&p), TRIB_OK);
    assert_int_equal(r.m.allocated_bytes, 5000);
    assert_true(told(&r, p, 5000, true, 0));
    assert_true(told(&r, p + 4000, 1000, true, 4000));
    assert_true(told(&r, p + 5000, 0, true, 5000));
    assert_false(told(&r, p + 4000, 1001, true, 0));
    assert_false(told(&r, p - 1, 1, true, 0));
    assert_false(told(&r, stray, 1, true, 0));
    assert_false(told(&r, NULL, 0, true, 0));

    const struct trib_place place = trib_memory_place(&r.m, p + 40, 100, 200);
    assert_ptr_equal(place.region, r.m.list[0].region);
    assert_int_equal(place.origin, 40 - 100);
    assert_null(trib_memory_place(&r.m, stray, 0, 1).region);
    /* Memory that a transport cannot write out of is copied; peers still read it. */
    trib_memory_copy(&r.m, place.region);
    assert_null(trib_memory_place(&r.m, p + 40, 100, 200).region);
    assert_true(told(&r, p, 5000, true, 0));
    close_registry(&r);
}

/* Memory of the caller is not mapped by peers; where both hold it, the newest counts
 * among those that serve. */
TEST(test_caller_memory)
{
    struct registry r;
    uint8_t *p;

    open_registry(&r, "shm");
    assert_status(trib_memory_alloc(&r.m, 8192, (void **)&p), TRIB_OK);
    assert_status(trib_memory_register(&r.m, p + 4096, 1000), TRIB_OK);
    assert_int_equal(r.m.n, 2);
    assert_int_equal(r.m.allocated_bytes, 8192);
    assert_ptr_equal(trib_memory_place(&r.m, p + 4096, 0, 1000).region,
                     r.m.list[1].region);
    assert_ptr_equal(trib_memory_place(&r.m, p + 4096, 0, 1001).region,
                     r.m.list[0].region);
    if (!r.m.list[1].blob.mappable)
        assert_true(told(&r, p + 4096, 1000, true, 4096));
    assert_true(told(&r, p + 4096, 1000, false, 0));
    close_registry(&r);
}

/* A model has many buffers; each is described by its own address and kind. */
TEST(test_many)
{
    enum { N = 50 };
    static uint8_t mine[N][64];
    struct registry r;
    void *p[N];

    open_registry(&r, "loop");
    for (int i = 0; i < N; i++) {
        assert_status(trib_memory_alloc(&r.m, 100, &p[i]), TRIB_OK);
        assert_status(trib_memory_register(&r.m, mine[i], 64), TRIB_OK);
    }
    assert_int_equal(r.m.n, 2 * N);
    assert_true(r.m.capacity >= r.m.n);
    for (int i = 0; i < N; i += 2) {
        assert_status(trib_memory_remove(&r.m, p[i], false, false), TRIB_ERR_INVALID);
        assert_status(trib_memory_remove(&r.m, p[i], true, i % 4), TRIB_OK);
        assert_status(trib_memory_remove(&r.m, mine[i], true, false),
                      TRIB_ERR_INVALID);
        assert_status(trib_memory_remove(&r.m, mine[i], false, false), TRIB_OK);
        assert_status(trib_memory_remove(&r.m, mine[i], false, false),
                      TRIB_ERR_INVALID);
    }
    assert_int_equal(r.m.n, N);
    assert_int_equal(r.m.allocated_bytes, N / 2 * 100);
    for (int i = 0; i < N; i++) {
        assert_int_equal(told(&r, mine[i], 64, false, 0), i % 2);
        if (i % 2)
            assert_true(told(&r, p[i], 100, false, 0));
    }
    close_registry(&r);
}

static const struct trib_transport_ops *plain;
static int live; /* regions */

static trib_status_t counted_alloc(struct trib_transport *t, size_t len, void **ptr,
                                   struct trib_region **out)
{
    const trib_status_t st = plain->alloc_user(t, len, ptr, out);

    live += st == TRIB_OK;
    return st;
}

static void counted_dereg(struct trib_transport *t, struct trib_region *region)
{
    live--;
    plain->dereg(t, region);
}

static trib_status_t no_export(struct trib_transport *t, const struct trib_region *r,
                               struct trib_blob *out)
{
    (void)t, (void)r, (void)out;
    return TRIB_ERR_NO_RESOURCE;
}

/* A region that cannot be exported is deregistered and gets no entry. */
TEST(test_no_export)
{
    struct registry r;
    struct trib_transport_ops ops;
    void *p = NULL;

    open_registry(&r, "shm");
    plain = r.transport->ops;
    ops = *plain;
    ops.alloc_user = counted_alloc;
    ops.dereg = counted_dereg;
    ops.export_region = no_export;
    r.transport->ops = &ops;
    assert_status(trib_memory_alloc(&r.m, 100, &p), TRIB_ERR_NO_RESOURCE);
    assert_null(p);
    assert_int_equal(live, 0);
    assert_int_equal(r.m.n + r.m.allocated_bytes, 0);
    ops.export_region = plain->export_region;
    assert_status(trib_memory_alloc(&r.m, 100, &p), TRIB_OK);
    assert_int_equal(live, 1);
    trib_memory_remove_all(&r.m);
    assert_int_equal(live, 0);
    r.transport->ops = plain;
    close_registry(&r);
}
