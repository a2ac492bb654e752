/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two transports that use memory in place. The fake device keeps the pages that a
 * region had when it was registered, so data of memory that was unmapped since is seen.
 */
#ifndef TESTS_TRANSPORT_VERBS_VERBS_CACHE_SCENE_H
#define TESTS_TRANSPORT_VERBS_VERBS_CACHE_SCENE_H

#include "tests/transport/verbs/verbs_pair.h"

#include <sys/mman.h>

#include "base/map_watch.h"
#include "tests/harness/fake_pages.h"
#include "transport/verbs/verbs_cache.h"

#define CACHED ALONE ",cache=1024" /* MiB */

enum { LEN = 512 << 10, PAGE = 4096, TRIES = 1100 };

static struct fake_verbs_opts *fake;
static __attribute__((unused)) const char *now = ""; /* the case in progress */

static inline int ready(void **state)
{
    (void)state;
    fake = fake_verbs_reset();
    fake->real_pages = true;
    return 0;
}

/* Skip on machines where nothing is registered, or stale data is not seen. */
static inline void need_watch(void)
{
    static bool works;

    if (works)
        return;
    const char *why = trib_map_watch_start(NULL);
    if (why)
        tribtest_skip(why);
    trib_map_watch_stop();
    works = fake_pages_work();
    if (!works)
        tribtest_skip("no io_uring");
}

static inline void *pages(size_t len)
{
    void *p =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

static inline void *pages_at(void *at, size_t len)
{
    void *p = mmap(at, len, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

    assert_ptr_equal(p, at);
    return p;
}

static inline struct trib_region *borrow(struct pair *pair, int side, void *p,
                                         size_t len, bool written)
{
    struct trib_region *region = NULL;
    const trib_status_t status =
        pair->t[side]->ops->borrow(pair->t[side], p, len, written, &region);

    if (status == TRIB_OK)
        return region;
    assert_status(status, TRIB_ERR_UNSUPPORTED);
    return NULL;
}

static inline void give_back(struct pair *pair, int side, struct trib_region *region)
{
    pair->t[side]->ops->give_back(pair->t[side], region, false);
}

/* Borrow until it is registered. */
static inline struct trib_region *borrow_hot(struct pair *pair, int side, void *p,
                                             size_t len, bool written)
{
    struct trib_region *region = NULL;

    for (int i = 0; !region && i < TRIES; i++)
        region = borrow(pair, side, p, len, written);
    if (!region)
        fail_msg("%s: not registered: %s", now, pair->logged);
    return region;
}

static inline void heat(struct pair *pair, int side, void *p, size_t len, bool written)
{
    give_back(pair, side, borrow_hot(pair, side, p, len, written));
}

/* Write a region of side 0 to one of side 1. */
static inline void carry(struct pair *pair, struct trib_region *from,
                         struct trib_region *to, size_t len)
{
    struct trib_blob blob;
    struct trib_remote *remote;
    struct trib_event event;

    assert_ok(pair->t[1]->ops->export_region(pair->t[1], to, &blob));
    assert_ok(pair->t[0]->ops->import_region(pair->t[0], 1, &blob, &remote));
    const struct trib_write w = {.local = from,
                                 .remote = remote,
                                 .len = len,
                                 .imm = 9,
                                 .signal = true,
                                 .token = 9};
    assert_ok(pair->t[0]->ops->write(pair->t[0], 1, &w));
    expect_arrival(pair, 1, 9, len);
    assert_int_equal(pair_await(pair, 0, &event), 1);
    assert_int_equal(event.kind, TRIB_EVENT_WRITE_DONE);
    pair->t[0]->ops->release(pair->t[0], remote);
}

static inline void is_all(const uint8_t *p, size_t len, uint8_t value)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != value)
            fail_msg("byte %zu is %d, not %d", i, p[i], value);
}

/* Two transports, and registered memory of each. */
struct scene {
    struct pair pair;
    struct trib_region *region[2];
    uint8_t *mem[2];
};

static inline void open_scene(struct scene *s, const char *text)
{
    need_watch();
    pair_open(&s->pair, text, text);
    for (int i = 0; i < 2; i++) {
        void *p;
        assert_ok(s->pair.t[i]->ops->alloc(s->pair.t[i], LEN, &p, &s->region[i]));
        s->mem[i] = p;
    }
}

/* Send memory if it is registered, and check its present content at the peer. */
static inline bool sends(struct scene *s, uint8_t *p, uint8_t value)
{
    memset(p, value, LEN);
    struct trib_region *from = borrow(&s->pair, 0, p, LEN, false);
    if (!from)
        return false;
    carry(&s->pair, from, s->region[1], LEN);
    is_all(s->mem[1], LEN, value);
    give_back(&s->pair, 0, from);
    return true;
}

static inline bool receives(struct scene *s, uint8_t *p, uint8_t value)
{
    struct trib_region *to = borrow(&s->pair, 1, p, LEN, true);

    if (!to)
        return false;
    memset(s->mem[0], value, LEN);
    memset(p, 0, LEN);
    carry(&s->pair, s->region[0], to, LEN);
    is_all(p, LEN, value);
    give_back(&s->pair, 1, to);
    return true;
}

#endif
