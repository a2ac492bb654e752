/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group's state as bytes, little-endian:
 *
 *     byte 0-7    "TRIBGRUP"
 *     byte 8      u32 version, u32 number of buckets, u64 total bytes, u64 checksum,
 *                 u64 number of tensors, u32 1 if the buckets were formed by times, u32
 *                 0
 *     byte 48     for each tensor: u64 digest of its description, u32 bucket, u32 0
 *     then        for each bucket: u64 bytes, and the state of its plan
 *                 (comm/state/plan_state.c), padded with zeros to a multiple of 8
 *
 * The checksum is XXH3 of everything else. The buckets are part of the state: they may
 * depend on times (cycle.c), and determine how sums are rounded.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/digest.h"
#include "comm/core/communicator.h"
#include "comm/tensors/tensor_group.h"

enum { VERSION = 1, ALIGN = 8 };

static const char magic[8] = {'T', 'R', 'I', 'B', 'G', 'R', 'U', 'P'};

struct head {
    char magic[8];
    uint32_t version, n_buckets;
    uint64_t bytes, checksum;
    uint64_t n_tensors;
    uint32_t timed, zero;
};
_Static_assert(sizeof(struct head) == 48, "head has no padding");

struct row {
    uint64_t digest;
    uint32_t bucket, zero;
};
_Static_assert(sizeof(struct row) == 16, "row has no padding");

static size_t padded(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t checksum_of(const struct head *h, const uint8_t *state)
{
    struct head plain = *h;

    assert(h->bytes >= sizeof(plain));
    plain.checksum = 0;
    return trib_digest_seeded(state + sizeof(plain), (size_t)h->bytes - sizeof(plain),
                              trib_digest(&plain, sizeof(plain)));
}

static trib_status_t check_idle(struct trib_group *g, const char *call)
{
    char text[80];

    trib_status_t st = trib_comm_ours(g->comm, call);
    if (st == TRIB_OK)
        st = g->step.failed ? g->step.failed : g->comm->engine.failed;
    if (st != TRIB_OK || !g->step.running)
        return st;
    return trib_comm_fail(g->comm, TRIB_ERR_BUSY,
                          "%s is in a step: wait for it before %s",
                          trib_group_says(g, text), call);
}

/* ---- save ------------------------------------------------------------------------ */

static trib_status_t size_of(const struct trib_group *g, size_t *bytes_out)
{
    size_t bytes = sizeof(struct head) + g->n * sizeof(struct row), of;
    trib_status_t st = TRIB_OK;

    for (uint32_t b = 0; b < g->buckets.n && st == TRIB_OK; b++) {
        st = trib_plan_state_save(g->buckets.at[b].plan, NULL, 0, &of);
        if (st == TRIB_OK)
            bytes += sizeof(uint64_t) + padded(of);
    }
    *bytes_out = bytes;
    return st;
}

static trib_status_t write_buckets(const struct trib_group *g, uint8_t *at,
                                   const uint8_t *end)
{
    for (uint32_t b = 0; b < g->buckets.n; b++) {
        size_t of;
        const size_t room = (size_t)(end - at) - sizeof(uint64_t);
        const trib_status_t st = trib_plan_state_save(g->buckets.at[b].plan,
                                                      at + sizeof(uint64_t), room, &of);
        if (st != TRIB_OK)
            return st;
        assert(padded(of) <= room);
        memcpy(at, &(uint64_t){of}, sizeof(uint64_t));
        at += sizeof(uint64_t);
        memset(at + of, 0, padded(of) - of);
        at += padded(of);
    }
    assert(at == end);
    return TRIB_OK;
}

static trib_status_t save(struct trib_group *g, uint8_t *state, size_t bytes)
{
    struct head h = {.version = VERSION,
                     .n_buckets = g->buckets.n,
                     .bytes = bytes,
                     .n_tensors = g->n,
                     .timed = g->opts.cycle_us && !g->measure};
    uint8_t *at = state + sizeof(h);

    memcpy(h.magic, magic, sizeof(magic));
    for (size_t i = 0; i < g->n; i++, at += sizeof(struct row)) {
        const struct row r = {.digest = trib_group_tensor_digest(&g->tensors[i]),
                              .bucket = g->tensors[i].bucket};
        memcpy(at, &r, sizeof(r));
    }
    const trib_status_t st = write_buckets(g, at, state + bytes);
    h.checksum = checksum_of(&h, state);
    memcpy(state, &h, sizeof(h));
    return st;
}

trib_status_t trib_group_state_save(trib_group_t *g, void *state, size_t bytes,
                                    size_t *bytes_out)
{
    if (!g)
        return TRIB_ERR_INVALID;
    if (!bytes_out)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "trib_group_state_save needs bytes_out, and it is NULL");
    trib_status_t st = check_idle(g, "trib_group_state_save");
    if (st == TRIB_OK)
        st = size_of(g, bytes_out);
    if (st != TRIB_OK || !state)
        return st;
    if (bytes < *bytes_out)
        return trib_comm_fail(g->comm, TRIB_ERR_OVERFLOW,
                              "the state has %zu bytes, but there is room for %zu",
                              *bytes_out, bytes);
    return save(g, state, *bytes_out);
}

/* ---- load ------------------------------------------------------------------------ */

static trib_status_t refuse(struct trib_group *g, const char *what)
{
    return trib_comm_fail(g->comm, TRIB_ERR_INVALID, "the state of a group %s", what);
}

static trib_status_t check_head(struct trib_group *g, const uint8_t *state,
                                size_t bytes, struct head *h)
{
    if (bytes < sizeof(*h))
        return refuse(g, "is shorter than its header");
    memcpy(h, state, sizeof(*h));
    if (memcmp(h->magic, magic, sizeof(magic)) != 0)
        return refuse(g, "must begin with TRIBGRUP, but these bytes do not");
    if (h->version != VERSION)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "the state of a group has version %" PRIu32 ", this "
                              "library reads %d: load it with the release that saved "
                              "it",
                              h->version, VERSION);
    if (h->bytes != bytes)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "the state of a group has %" PRIu64 " bytes, but %zu "
                              "were passed: it was truncated",
                              h->bytes, bytes);
    if (checksum_of(h, state) != h->checksum)
        return refuse(g, "is damaged: its checksum is wrong");
    if (h->n_tensors != g->n)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "the state belongs to a group of %" PRIu64 " tensors, "
                              "this group has %zu",
                              h->n_tensors, g->n);
    if (h->n_buckets > g->n || g->n > (bytes - sizeof(*h)) / sizeof(struct row))
        return refuse(g, "ends within its tensors");
    return TRIB_OK;
}

/* Read each tensor's bucket into assign. */
static trib_status_t read_rows(struct trib_group *g, const uint8_t *at,
                               const struct head *h, uint32_t *assign)
{
    struct row r;

    for (size_t i = 0; i < g->n; i++, at += sizeof(r)) {
        memcpy(&r, at, sizeof(r));
        if (r.digest != trib_group_tensor_digest(&g->tensors[i]))
            return trib_comm_fail(
                g->comm, TRIB_ERR_INVALID,
                "tensor \"%s\": the state has another tensor %zu: it differs in name, "
                "count, dtype, priority, codec or feedback",
                g->tensors[i].desc.name, i);
        assign[i] = r.bucket;
    }
    return trib_buckets_are_valid(g, assign, h->n_buckets)
               ? TRIB_OK
               : refuse(g, "has impossible buckets");
}

/* Find the plans' states; trib_plan_state_load checks their content. */
static trib_status_t find_plans(struct trib_group *g, const uint8_t *state,
                                const struct head *h, const uint8_t **found,
                                size_t *lengths)
{
    size_t at = sizeof(*h) + g->n * sizeof(struct row);

    for (uint32_t b = 0; b < h->n_buckets; b++) {
        const size_t left = (size_t)h->bytes - at;
        uint64_t of = UINT64_MAX;
        if (left >= sizeof(of))
            memcpy(&of, state + at, sizeof(of));
        if (of > left || padded((size_t)of) > left - sizeof(of))
            return refuse(g, "ends within its buckets");
        at += sizeof(of);
        found[b] = state + at;
        lengths[b] = (size_t)of;
        at += padded((size_t)of);
    }
    return at == h->bytes ? TRIB_OK : refuse(g, "continues after its buckets");
}

static bool has_these_buckets(const struct trib_group *g, const uint32_t *assign,
                              uint32_t n_buckets)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->tensors[i].bucket != assign[i])
            return false;
    return g->buckets.n == n_buckets;
}

static trib_status_t load_plans(struct trib_group *g, const uint8_t *const *found,
                                const size_t *lengths)
{
    char why[400];

    for (uint32_t b = 0; b < g->buckets.n; b++) {
        const struct trib_bucket *bucket = &g->buckets.at[b];
        const trib_status_t st =
            trib_plan_state_load(bucket->plan, found[b], lengths[b]);
        if (st == TRIB_OK)
            continue;
        snprintf(why, sizeof(why), "%s", trib_last_error(g->comm));
        return trib_comm_fail(g->comm, st, "tensor \"%s\": %s",
                              trib_bucket_tensor(g, bucket, 0)->desc.name, why);
    }
    return TRIB_OK;
}

/* Measure the next step if the saved group had not measured its first. */
static trib_status_t measure_as(struct trib_group *g, bool timed)
{
    if (!timed)
        return g->measure ? TRIB_OK : trib_cycle_make(g);
    trib_cycle_free(g);
    return TRIB_OK;
}

/* Load; after an error the group may have changed. */
static trib_status_t load(struct trib_group *g, const uint8_t *state, size_t bytes)
{
    uint32_t *assign = malloc((g->n + 1) * sizeof(*assign));
    const uint8_t **found = malloc((g->n + 1) * sizeof(*found));
    size_t *lengths = malloc((g->n + 1) * sizeof(*lengths));
    struct head h;

    trib_status_t st = assign && found && lengths
                           ? check_head(g, state, bytes, &h)
                           : trib_comm_fail(g->comm, TRIB_ERR_NO_MEMORY,
                                            "no memory to load the state of a group");
    if (st == TRIB_OK)
        st = read_rows(g, state + sizeof(h), &h, assign);
    if (st == TRIB_OK)
        st = find_plans(g, state, &h, found, lengths);
    if (st == TRIB_OK && !has_these_buckets(g, assign, h.n_buckets))
        st = trib_buckets_form(g, assign, h.n_buckets);
    if (st == TRIB_OK)
        st = load_plans(g, found, lengths);
    if (st == TRIB_OK)
        st = measure_as(g, h.timed);
    free(assign);
    free(found);
    free(lengths);
    return st;
}

trib_status_t trib_group_state_load(trib_group_t *g, const void *state, size_t bytes)
{
    char why[400];
    size_t room;

    if (!g)
        return TRIB_ERR_INVALID;
    if (!state)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "trib_group_state_load: state is NULL");
    trib_status_t st = check_idle(g, "trib_group_state_load");
    if (st == TRIB_OK)
        st = size_of(g, &room);
    if (st != TRIB_OK)
        return st;
    uint8_t *before = malloc(room);
    st = before ? save(g, before, room)
                : trib_comm_fail(g->comm, TRIB_ERR_NO_MEMORY,
                                 "no memory to load the state of a group");
    if (st == TRIB_OK)
        st = load(g, state, bytes);
    if (st != TRIB_OK && before) {
        snprintf(why, sizeof(why), "%s", trib_last_error(g->comm));
        if (load(g, before, room) == TRIB_OK)
            (void)trib_comm_fail(g->comm, st, "%s", why);
    }
    free(before);
    return st;
}
