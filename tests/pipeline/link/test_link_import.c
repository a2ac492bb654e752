/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Imports of the memory that a link's peer exports: its arena, and buffers that ADVERT
 * frames name.
 */
#include "tests/pipeline/link/link_pair.h"

/* Reject an arena that is smaller than its peer claims: stores, writes and notices of
 * this rank would exceed it. */
TEST(test_short_arenas)
{
    for (int k = 0; k < 8; k++) {
        const bool per_link = k & 1, mapped = k & 2, nearly = k & 4;
        struct pair *p = calloc(1, sizeof(*p));
        struct end *a = &p->end[0], *b = &p->end[1];
        assert_ok(trib_config_load(&p->cfg, NULL, NULL, NULL));
        for (int i = 0; i < 2; i++)
            open_end(p, i, transports[!mapped], 2, per_link);
        const size_t needed = per_link ? 64 + 4 * 256 : b->arena.block_bytes;
        struct trib_arena_blob told = b->blob;
        struct trib_region *small = region_of(b, nearly ? needed - 1 : 64, &told.blob);
        assert_status(trib_link_connect(&a->link, &a->arena, 1, &b->address, &told),
                      TRIB_ERR_RANGE);
        assert_non_null(strstr(a->err.text, "rank 1 exported "));
        assert_false(a->link.connected);
        trib_error_clear(&a->err);
        b->transport->ops->dereg(b->transport, small);
        struct trib_region *enough = region_of(b, needed, &told.blob);
        assert_ok(trib_link_connect(&a->link, &a->arena, 1, &b->address, &told));
        trib_link_close(&a->link, &a->arena);
        b->transport->ops->dereg(b->transport, enough);
        close_pair(p);
    }
}

TEST(test_imports_are_cached)
{
    enum { N = TRIB_IMPORTS + 4 };
    struct pair *p = open_pair("shm", 2);
    struct end *a = &p->end[0], *b = &p->end[1];
    struct trib_region *regions[N];
    struct trib_blob blobs[N];
    void *ptr[N];

    for (int i = 0; i < N; i++) {
        assert_ok(a->transport->ops->alloc(a->transport, 5000, &ptr[i], &regions[i]));
        assert_ok(
            a->transport->ops->export_region(a->transport, regions[i], &blobs[i]));
        *(int *)ptr[i] = i;
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            struct trib_import *im = trib_link_import(&b->link, &blobs[i], NULL);
            assert_non_null(im);
            assert_int_equal(*(int *)(void *)im->base, i);
            assert_ptr_equal(trib_link_import(&b->link, &blobs[i], NULL), im);
            assert_true(b->link.n_imports <= TRIB_IMPORTS);
        }
    }
    struct trib_blob none = {.len = 0}, long_one = {.len = TRIB_BLOB_MAX + 1};
    struct trib_blob nonsense = {.len = 20, .bytes = "not a blob of a peer"};
    assert_null(trib_link_import(&b->link, &none, NULL));
    assert_null(trib_link_import(&b->link, &long_one, NULL));
    assert_null(trib_link_import(&b->link, &nonsense, NULL));
    assert_non_null(trib_link_import(&b->link, &blobs[0], NULL));
    for (int i = 0; i < N; i++)
        a->transport->ops->dereg(a->transport, regions[i]);
    close_pair(p);
}

static int imported;
static const struct trib_transport_ops *plain_ops;

static trib_status_t count_import(struct trib_transport *t, int peer,
                                  const struct trib_blob *blob,
                                  struct trib_remote **out)
{
    imported++;
    return plain_ops->import_region(t, peer, blob, out);
}

/* Buffers, as many as a model has, one after the other: each is imported once. */
TEST(test_buffers_in_rotation)
{
    enum { N = 40 };
    struct pair *p = open_pair("shm", 2);
    struct end *a = &p->end[0], *b = &p->end[1];
    struct trib_transport_ops counting = *b->transport->ops;
    struct trib_region *regions[N];
    struct trib_blob blobs[N];

    plain_ops = b->transport->ops;
    counting.import_region = count_import;
    b->transport->ops = &counting;
    imported = 0;
    for (int i = 0; i < N; i++)
        regions[i] = region_of(a, 300000, &blobs[i]);
    for (int i = 0; i < 5 * N; i++)
        assert_non_null(trib_link_import(&b->link, &blobs[i % N], NULL));
    assert_int_equal(imported, N);
    b->transport->ops = plain_ops;
    for (int i = 0; i < N; i++)
        a->transport->ops->dereg(a->transport, regions[i]);
    close_pair(p);
}

/* An import that the peer has freed is dropped when the peer advertises another buffer;
 * the newest may be in use. */
TEST(test_freed_imports_are_dropped)
{
    enum { N = 8 };
    struct pair *p = open_pair("shm", 2);
    struct end *a = &p->end[0], *b = &p->end[1];
    struct trib_region *regions[N], *last;
    struct trib_blob blobs[N], blob;

    for (int i = 0; i < N; i++) {
        regions[i] = region_of(a, 300000, &blobs[i]);
        assert_non_null(trib_link_import(&b->link, &blobs[i], NULL));
    }
    assert_int_equal(b->link.n_imports, N);
    for (int i = 1; i < N; i++)
        a->transport->ops->dereg(a->transport, regions[i]);
    last = region_of(a, 300000, &blob);
    assert_non_null(trib_link_import(&b->link, &blob, NULL));
    assert_int_equal(b->link.n_imports, 3); /* the one in use, the newest, this one */
    a->transport->ops->dereg(a->transport, regions[0]);
    a->transport->ops->dereg(a->transport, last);
    close_pair(p);
}
