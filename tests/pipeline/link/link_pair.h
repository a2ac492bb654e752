/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of a link in one process, each driven by hand.
 */
#ifndef TESTS_PIPELINE_LINK_LINK_PAIR_H
#define TESTS_PIPELINE_LINK_LINK_PAIR_H

#include "tests/harness/tribtest.h"

#include "base/config.h"
#include "base/error.h"
#include "base/time.h"
#include "pipeline/link/link.h"
#include "transport/open.h"

#define SLOT 192

struct end {
    struct trib_error err;
    struct trib_transport *transport;
    struct trib_arena arena;
    struct trib_link link;
    struct trib_address address;
    struct trib_arena_blob blob;
};

struct pair {
    struct trib_config cfg;
    bool to_aggregators;
    uint32_t raw_window;
    struct end end[2];
};

static inline void open_end(struct pair *p, int self, const char *transport,
                            uint32_t window, bool per_link)
{
    struct end *e = &p->end[self];
    struct trib_transport_opts opts = {
        .self = self, .size = 2, .params = "", .cfg = &p->cfg, .err = &e->err};

    assert_ok(trib_transport_open(transport, &opts, &e->transport));
    e->arena = (struct trib_arena){.transport = e->transport,
                                   .self = self,
                                   .size = 2,
                                   .window = window,
                                   .raw_window = p->raw_window,
                                   .per_link = per_link,
                                   .to_aggregators = p->to_aggregators,
                                   .slot_bytes = SLOT - 5};
    assert_ok(trib_arena_create(&e->arena));
    assert_int_equal(e->arena.slot_bytes, SLOT); /* rounded up to lines */
    assert_ok(e->transport->ops->address(e->transport, &e->address));
    assert_ok(trib_arena_export(&e->arena, &e->blob));
}

/* Lets events of both ends arrive. */
static inline void poll_pair(struct pair *p)
{
    struct trib_event events[8];

    for (int i = 0; i < 2; i++) {
        struct end *e = &p->end[i];
        int n = e->transport->ops->poll(e->transport, events, 8);
        for (int k = 0; k < n; k++)
            if (events[k].kind == TRIB_EVENT_ARRIVED)
                trib_link_event(&e->link, &events[k]);
    }
}

/* per_link[i]: of end i. */
static inline struct pair *open_with(struct pair settings, const char *transport,
                                     uint32_t window, const bool *per_link)
{
    struct pair *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    *p = settings;
    assert_ok(trib_config_load(&p->cfg, NULL, NULL, NULL));
    for (int i = 0; i < 2; i++)
        open_end(p, i, transport, window, per_link[i]);
    for (int i = 0; i < 2; i++) {
        struct end *e = &p->end[i], *o = &p->end[1 - i];
        for (int twice = 0; twice < 2; twice++)
            assert_ok(
                trib_link_connect(&e->link, &e->arena, 1 - i, &o->address, &o->blob));
        assert_int_equal(e->link.mapped, strstr(transport, "nomap") == NULL);
        assert_false(trib_link_can_send(&e->link, 0, 0));
        for (int twice = 0; twice < 2; twice++)
            assert_ok(trib_link_open(&e->link, &e->arena));
        assert_int_equal(e->arena.awaited, per_link[1 - i]);
    }
    poll_pair(p);
    for (int i = 0; i < 2; i++) {
        struct end *e = &p->end[i];
        assert_int_equal(trib_link_can_send(&e->link, 0, 0), !per_link[1 - i]);
        for (int twice = 0; twice < 2; twice++)
            assert_ok(trib_link_take_advert(&e->link, &e->arena));
        assert_int_equal(e->arena.awaited, 0);
        assert_true(trib_link_can_send(&e->link, 0, 0));
    }
    return p;
}

static inline struct pair *open_as(const char *transport, uint32_t window,
                                   const bool *per_link, bool to_aggregators)
{
    return open_with((struct pair){.to_aggregators = to_aggregators}, transport, window,
                     per_link);
}

static inline struct pair *open_unlike(const char *transport, uint32_t window,
                                       const bool *per_link)
{
    return open_as(transport, window, per_link, false);
}

static inline struct pair *open_pair(const char *transport, uint32_t window)
{
    return open_unlike(transport, window, (bool[2]){false, false});
}

static inline void close_pair(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        trib_link_close(&p->end[i].link, &p->end[i].arena);
        trib_link_close(&p->end[i].link, &p->end[i].arena);
    }
    for (int i = 0; i < 2; i++) {
        trib_arena_destroy(&p->end[i].arena);
        p->end[i].transport->ops->close(p->end[i].transport);
    }
    free(p);
}

static inline void send_number(struct end *e, int lane, uint32_t number, size_t bytes)
{
    struct trib_entry *c = trib_link_entry(&e->link, &e->arena, lane);
    uint8_t *payload = trib_link_to_send(&e->link, &e->arena, lane, bytes);

    c->frame = (struct trib_frame){.magic = TRIB_FRAME_MAGIC,
                                   .kind = TRIB_FRAME_DATA,
                                   .seq = number,
                                   .bytes = (uint32_t)bytes};
    memset(payload, (int)(number & 0xff), bytes);
    assert_ok(trib_link_publish(&e->link, &e->arena, lane));
}

static inline void expect_number(struct pair *p, int at, int lane, uint32_t number,
                                 size_t bytes)
{
    struct end *e = &p->end[at];

    poll_pair(p);
    struct trib_entry *c = trib_link_peek(&e->link, &e->arena, lane);
    assert_non_null(c);
    assert_int_equal(c->frame.seq, number);
    assert_int_equal(c->frame.bytes, bytes);
    const uint8_t *payload = trib_link_received(&e->link, &e->arena, lane, c);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(payload[i], number & 0xff);
    trib_link_release(&e->link, &e->arena, lane);
}

static inline bool can_send(struct pair *p, int at, int lane, size_t bytes)
{
    poll_pair(p);
    return trib_link_can_send(&p->end[at].link, lane, bytes);
}

static const char *const transports[] = {"shm", "shm+nomap"};

static inline struct trib_region *region_of(struct end *a, size_t bytes,
                                            struct trib_blob *blob)
{
    struct trib_region *region;
    void *ptr;

    assert_ok(a->transport->ops->alloc(a->transport, bytes, &ptr, &region));
    assert_ok(a->transport->ops->export_region(a->transport, region, blob));
    return region;
}

#endif
