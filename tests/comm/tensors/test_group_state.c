/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a group: the run continues with the bits of an uninterrupted run, with
 * stateful codecs and buckets formed by time; a damaged or foreign state is refused,
 * and changes nothing.
 */
#include "tests/harness/tribtest.h"

#include "base/sections.h"
#include "tests/comm/tensors/tensors.h"

enum { TENSORS = 24, BEFORE = 3, AFTER = 3 };

static const char *const codecs[] = {"none", "topk:ratio=0.05", "qsgd:bits=4",
                                     "powersgd"};

struct scene {
    trib_feed_t feed;
    unsigned cycle_us;
};

static trib_group_t *make(struct ranks_self *self, const struct tensors *t)
{
    const struct scene *s = self->arg;
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_group_t *group;

    opts.feed = s->feed;
    opts.cycle_us = s->cycle_us;
    opts.bucket_bytes = 30000;
    if (trib_group_create(self->comm, t->of, t->n, &opts, &group) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(self->comm));
    return group;
}

/* Return the hash of all results of a step. */
static uint64_t step(struct ranks_self *self, struct tensors *t, trib_group_t *group,
                     uint64_t number)
{
    const struct scene *s = self->arg;
    size_t order[TENSORS_MOST];
    uint64_t hash = number;

    for (size_t i = 0; i < t->n; i++)
        tensors_fill(self, t, i, number, false);
    ranks_ok(self, trib_group_start(group));
    tensors_shuffle(order, t->n, number * 8 + (uint64_t)self->rank);
    for (size_t i = 0; i < t->n && s->feed != TRIB_FEED_WHOLE; i++) {
        usleep(i % 4 ? 0 : 700);
        ranks_ok(self, trib_group_ready(group, order[i]));
    }
    ranks_ok(self, trib_group_wait(group));
    for (size_t i = 0; i < t->n; i++)
        hash = oracle_mix(
            hash ^
            oracle_hash(t->recv[i], t->of[i].count * trib_dtype_size(t->of[i].dtype)));
    return hash;
}

struct saved {
    uint8_t *bytes;
    size_t n;
};

static struct saved save(struct ranks_self *self, trib_group_t *group)
{
    struct saved s;
    size_t n;

    ranks_ok(self, trib_group_state_save(group, NULL, 0, &s.n));
    s.bytes = malloc(s.n);
    ranks_assert(self, s.bytes != NULL);
    ranks_expect(self, trib_group_state_save(group, s.bytes, s.n - 1, &n),
                 TRIB_ERR_OVERFLOW, "save");
    ranks_ok(self, trib_group_state_save(group, s.bytes, s.n, &n));
    ranks_assert(self, n == s.n);
    return s;
}

static int goes_on(struct ranks_self *self)
{
    uint64_t hashes[AFTER];
    char was[8000], is[8000];
    struct tensors t;

    tensors_make(self, &t, TENSORS, 77, codecs, 4);
    trib_group_t *group = make(self, &t);
    for (uint64_t i = 0; i < BEFORE; i++)
        (void)step(self, &t, group, i);
    struct saved s = save(self, group);
    for (uint64_t i = 0; i < AFTER; i++)
        hashes[i] = step(self, &t, group, BEFORE + i);
    ranks_ok(self, trib_group_explain(group, was, sizeof(was)));
    ranks_ok(self, trib_group_free(group));
    group = make(self, &t);
    ranks_ok(self, trib_group_state_load(group, s.bytes, s.n));
    ranks_ok(self, trib_group_explain(group, is, sizeof(is)));
    ranks_assert(self, strcmp(was, is) == 0);
    for (uint64_t i = 0; i < AFTER; i++)
        if (step(self, &t, group, BEFORE + i) != hashes[i])
            ranks_die(self, "other bits in step %d", (int)i);
    ranks_ok(self, trib_group_free(group));
    free(s.bytes);
    tensors_free(&t);
    return 0;
}

static void refused(struct ranks_self *self, trib_group_t *group, const struct saved *s,
                    size_t bytes, const char *word)
{
    struct saved before = save(self, group), after;
    const trib_status_t st = trib_group_state_load(group, s->bytes, bytes);

    if (st != TRIB_ERR_INVALID || !strstr(trib_last_error(self->comm), word))
        ranks_die(self, "%s, not %s: %s", trib_status_name(st), word,
                  trib_last_error(self->comm));
    after = save(self, group);
    ranks_assert(self, after.n == before.n &&
                           memcmp(after.bytes, before.bytes, before.n) == 0);
    free(before.bytes);
    free(after.bytes);
}

/* Changed bytes with a valid checksum are refused or loaded, without an invalid
 * access. */
static void forge(struct ranks_self *self, trib_group_t *group,
                  const struct saved *good)
{
    struct saved s = {malloc(good->n), good->n};
    uint64_t seed = 5;

    ranks_assert(self, s.bytes != NULL);
    for (int i = 0; i < 400; i++) {
        const size_t at = i < 200 ? (size_t)i * 4 : tensors_draw(&seed);
        memcpy(s.bytes, good->bytes, good->n);
        s.bytes[at % s.n] ^= (uint8_t)(1 + tensors_draw(&seed) % 255);
        trib_sections_seal(s.bytes, s.n);
        const trib_status_t st = trib_group_state_load(group, s.bytes, s.n);
        ranks_assert(self, st == TRIB_OK || st == TRIB_ERR_INVALID);
    }
    free(s.bytes);
    ranks_ok(self, trib_group_state_load(group, good->bytes, good->n));
}

static int refuses(struct ranks_self *self)
{
    struct tensors t;

    tensors_make(self, &t, TENSORS, 77, codecs, 4);
    trib_group_t *group = make(self, &t);
    (void)step(self, &t, group, 0);
    struct saved s = save(self, group);
    for (size_t cut = 0; cut < s.n; cut += s.n / 37 + 1)
        refused(self, group, &s, cut,
                cut < TRIB_SECTIONS_HEAD_BYTES ? "are not" : "truncated");
    s.bytes[8]++;
    refused(self, group, &s, s.n, "has version 3, but this library reads version 2");
    s.bytes[8]--;
    for (size_t at = 0; at < s.n; at += at < 100 ? 5 : s.n / 23) {
        s.bytes[at] ^= 16;
        refused(self, group, &s, s.n, "");
        s.bytes[at] ^= 16;
    }
    ranks_expect(self, trib_group_state_load(group, NULL, 9), TRIB_ERR_INVALID, "NULL");
    forge(self, group, &s);
    const uint64_t hash = step(self, &t, group, 1);
    ranks_ok(self, trib_group_state_load(group, s.bytes, s.n));
    ranks_assert(self, step(self, &t, group, 1) == hash);
    ranks_ok(self, trib_group_free(group));
    t.of[5].priority++;
    group = make(self, &t);
    refused(self, group, &s, s.n, "\"layer5.weight\"");
    ranks_ok(self, trib_group_free(group));
    t.n--;
    group = make(self, &t);
    refused(self, group, &s, s.n, "group of 24 tensors, this group has 23");
    ranks_ok(self, trib_group_free(group));
    t.n++;
    free(s.bytes);
    tensors_free(&t);
    return 0;
}

static void run(ranks_fn fn, int size, trib_feed_t feed, unsigned cycle_us,
                const char *config)
{
    struct scene s = {feed, cycle_us};

    ranks_pass(.size = size, .fn = fn, .arg = &s, .config = config);
}

TEST(test_goes_on)
{
    run(goes_on, 3, TRIB_FEED_BACKWARD, 0, "transport=shm");
    run(goes_on, 3, TRIB_FEED_BACKWARD, 500, "transport=shm");
    run(goes_on, 2, TRIB_FEED_FORWARD, 500, "transport=tcp");
    run(goes_on, 2, TRIB_FEED_WHOLE, 0, "transport=tcp");
}

TEST(test_refuses)
{
    run(refuses, 1, TRIB_FEED_WHOLE, 0, NULL);
    run(refuses, 2, TRIB_FEED_FORWARD, 300, NULL);
}
