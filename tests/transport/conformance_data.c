/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conformance: bytes, order, bounds, memory.
 */

#include "tests/harness/rng_draw.h"
#include "tests/harness/tribtest.h"
#include "tests/transport/conformance.h"

/* A repeatable choice. */
static uint32_t pick(uint32_t seed, uint32_t index, uint32_t below)
{
    return draw_u32((struct trib_rng){.seed = seed}, index) % below;
}

struct inbox {
    struct rig *rig;
    uint32_t next[RIG_RANKS_MAX];
    int arrived;
};

static void inbox_take(void *arg, const struct trib_event *e)
{
    struct inbox *in = arg;

    SPAWN_CHECK(in->rig->s, e->kind == TRIB_EVENT_ARRIVED);
    SPAWN_CHECK(in->rig->s, e->imm == in->next[e->peer]);
    SPAWN_CHECK(in->rig->s, e->len == e->imm % 9);
    in->next[e->peer]++;
    in->arrived++;
}

/* Everybody sends to everybody, and the immediates come in order. */
static void check_order(struct spawn *s, const struct row *row)
{
    struct rig rig;
    struct inbox in = {.rig = &rig};
    struct trib_event e;
    int count = row->flags & ROW_DECORATED ? 100 : 700;

    if (!rig_open(&rig, s, row))
        goto out;
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        for (int peer = 0; peer < s->size; peer++) {
            struct trib_write w = {
                .local = rig.region,
                .remote = rig.remote[peer],
                .remote_off = 1024u * (uint32_t)(1 + s->rank),
                .len = i % 9,
                .imm = i,
            };
            if (peer != s->rank && !rig_write(&rig, peer, &w, inbox_take, &in))
                goto out;
        }
    }
    while (in.arrived < count * (s->size - 1) && rig_next(&rig, &e))
        inbox_take(&in, &e);
out:
    rig_close(&rig);
}

/* Both ranks have received all: each notifies the other, in any order. */
static void agree(struct rig *rig, uint32_t imm)
{
    const struct trib_write w = {.imm = imm};
    bool written = false, heard = false;
    struct trib_event e;
    unsigned turns = 0;
    int peer = !rig->s->rank;

    while (!(written && heard) && !rig->s->failures && !spawn_expired(rig->s)) {
        written = written || rig->t->ops->write(rig->t, peer, &w) == TRIB_OK;
        if (rig->t->ops->poll(rig->t, &e, 1) == 0) {
            tribtest_rest(&turns);
            continue;
        }
        SPAWN_CHECK(rig->s, !heard && e.kind == TRIB_EVENT_ARRIVED && e.imm == imm);
        heard = true;
    }
    SPAWN_CHECK(rig->s, written && heard);
}

/* Large and small writes alternate in both directions: a backend may use another path
 * for large ones, but later writes wait for them. */
static void check_mixed(struct spawn *s, const struct row *row)
{
    enum { LARGE = 200000, SMALL = 40, COUNT = 24, ROOM = COUNT / 2 * (LARGE + SMALL) };
    struct rig rig;
    struct trib_event e;
    uint32_t sent = 0, got = 0;
    unsigned turns = 0;
    uint8_t *theirs = malloc(ROOM);

    if (!rig_open_len(&rig, s, row, 2 * (size_t)ROOM) ||
        !SPAWN_CHECK(s, theirs != NULL))
        goto out;
    fill(rig.mem, ROOM, (uint32_t)s->rank);
    fill(theirs, ROOM, (uint32_t)!s->rank);
    for (size_t off = 0;
         (got < COUNT || sent < COUNT) && !s->failures && !spawn_expired(s);) {
        struct trib_write w = {
            .local = rig.region,
            .local_off = off,
            .remote = rig.remote[!s->rank],
            .remote_off = ROOM + off,
            .len = sent % 2 ? SMALL : LARGE,
            .imm = sent,
        };
        if (sent < COUNT && rig.t->ops->write(rig.t, !s->rank, &w) == TRIB_OK) {
            off += w.len;
            sent++;
        }
        if (got == COUNT && sent == COUNT)
            break; /* the next event is the peer's notification */
        if (rig.t->ops->poll(rig.t, &e, 1) == 0) {
            tribtest_rest(&turns);
            continue;
        }
        size_t at = ROOM + got / 2 * (LARGE + SMALL) + (got % 2 ? LARGE : 0);
        SPAWN_CHECK(s, e.kind == TRIB_EVENT_ARRIVED && e.imm == got);
        SPAWN_CHECK(s, e.len == (got % 2 ? SMALL : LARGE));
        SPAWN_CHECK(s, rig.mem[at + e.len - 1] == theirs[at + e.len - 1 - ROOM]);
        got++;
    }
    SPAWN_CHECK(s, got == COUNT && sent == COUNT);
    agree(&rig, COUNT); /* the peer may need this rank to hand over the last ones */
out:
    rig_close(&rig);
    free(theirs);
}

/* When ARRIVED is here the bytes are here; slots are used again after a note back. */
static void check_visibility(struct spawn *s, const struct row *row)
{
    enum { SLOT = 8192, ROUNDS = 300 };
    struct rig rig;
    struct trib_event e;
    int peer = !s->rank;

    if (!rig_open(&rig, s, row))
        goto out;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t len = 1 + pick(7, i, SLOT);
        if (s->rank == 0) {
            fill(rig.mem, len, i);
            struct trib_write w = {
                .local = rig.region,
                .remote = rig.remote[peer],
                .remote_off = SLOT * (i % 4),
                .len = len,
                .imm = i,
            };
            if (!rig_write(&rig, peer, &w, NULL, NULL) ||
                !rig_expect(&rig, TRIB_EVENT_ARRIVED, peer, &e))
                goto out;
        } else {
            if (!rig_expect(&rig, TRIB_EVENT_ARRIVED, peer, &e))
                goto out;
            SPAWN_CHECK(s, e.imm == i && e.len == len);
            SPAWN_CHECK(s, filled(rig.mem + SLOT * (i % 4), len, i));
            if (!rig_note(&rig, peer, i))
                goto out;
        }
    }
out:
    rig_close(&rig);
}

/* A receiver that does not poll makes the sender's writes fail, and none is lost. */
static void check_pressure(struct spawn *s, const struct row *row)
{
    struct rig rig;
    struct trib_event e;
    trib_status_t status = TRIB_OK;
    uint32_t sent = 0, counts[2];

    if (!rig_open(&rig, s, row))
        goto out;
    while (s->rank == 0 && status == TRIB_OK && sent < 200000) {
        struct trib_write w = {.imm = sent};
        status = rig.t->ops->write(rig.t, 1, &w);
        sent += status == TRIB_OK;
    }
    SPAWN_CHECK(s, s->rank == 1 || status == TRIB_ERR_NO_RESOURCE);
    if (!spawn_allgather(s, &sent, sizeof(sent), counts))
        goto out;
    for (uint32_t i = 0; s->rank == 1 && i < counts[0]; i++) {
        if (!rig_expect(&rig, TRIB_EVENT_ARRIVED, 0, &e))
            goto out;
        SPAWN_CHECK(s, e.imm == i);
    }
    if (s->rank == 1)
        rig_note(&rig, 0, 1);
    else if (rig_expect(&rig, TRIB_EVENT_ARRIVED, 1, &e))
        SPAWN_CHECK(s, rig.t->ops->write(rig.t, 1, &(struct trib_write){0}) == TRIB_OK);
out:
    rig_close(&rig);
}

/* 1 B to 4 MiB at odd offsets; the bytes around remain unchanged. */
static void check_sizes(struct spawn *s, const struct row *row)
{
    /* clang-format off */
    static const size_t sizes[] = {1, 2, 3, 7, 8, 63, 64, 65, 1000, 4095, 4096,
        4097, 65535, 65536, 131073, 1 << 20, (size_t)4 << 20};
    /* clang-format on */
    size_t room = ((size_t)4 << 20) + 256;
    struct rig rig;
    struct trib_event e;

    if (!rig_open_len(&rig, s, row, room))
        goto out;
    memset(rig.mem, 0x5a, room);
    if (!spawn_barrier(s))
        goto out;
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t from = 1 + i % 5, to = 64 + i % 7;
        if (s->rank == 0) {
            fill(rig.mem + from, sizes[i], i);
            struct trib_write w = {
                .local = rig.region,
                .local_off = from,
                .remote = rig.remote[1],
                .remote_off = to,
                .len = sizes[i],
                .imm = i,
            };
            if (!rig_write(&rig, 1, &w, NULL, NULL) ||
                !rig_expect(&rig, TRIB_EVENT_ARRIVED, 1, &e))
                goto out;
            continue;
        }
        if (!rig_expect(&rig, TRIB_EVENT_ARRIVED, 0, &e))
            goto out;
        SPAWN_CHECK(s, e.len == sizes[i]);
        SPAWN_CHECK(s, filled(rig.mem + to, sizes[i], i));
        SPAWN_CHECK(s, rig.mem[to - 1] == 0x5a && rig.mem[to + sizes[i]] == 0x5a);
        memset(rig.mem + to, 0x5a, sizes[i]);
        if (!rig_note(&rig, 0, 0))
            goto out;
    }
out:
    rig_close(&rig);
}

static void check_bounds(struct spawn *s, const struct row *row)
{
    static const struct {
        size_t local_off, remote_off, len;
    } bad[] = {
        {0, 0, RIG_LEN + 1}, {RIG_LEN, 0, 1},
        {0, RIG_LEN, 1},     {1, 0, RIG_LEN},
        {0, 1, RIG_LEN},     {SIZE_MAX, 0, 2},
        {0, SIZE_MAX, 2},    {SIZE_MAX - 1, 0, 64},
        {0, 0, SIZE_MAX},    {2, SIZE_MAX / 2, SIZE_MAX},
        {RIG_LEN - 7, 0, 8}, {0, RIG_LEN - 7, 8},
    };
    struct rig rig;
    struct trib_event e;

    if (!rig_open(&rig, s, row))
        goto out;
    for (size_t i = 0; s->rank == 0 && i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct trib_write w = {
            .local = rig.region,
            .local_off = bad[i].local_off,
            .remote = rig.remote[1],
            .remote_off = bad[i].remote_off,
            .len = bad[i].len,
            .imm = 99,
        };
        SPAWN_CHECK(s, rig.t->ops->write(rig.t, 1, &w) == TRIB_ERR_RANGE);
    }
    /* The last byte is inside, and nothing but this write arrives. */
    struct trib_write last = {
        .local = rig.region,
        .local_off = RIG_LEN - 1,
        .remote = rig.remote[1],
        .remote_off = RIG_LEN - 1,
        .len = 1,
        .imm = 7,
    };
    if (s->rank == 0)
        rig_write(&rig, 1, &last, NULL, NULL);
    else if (rig_expect(&rig, TRIB_EVENT_ARRIVED, 0, &e))
        SPAWN_CHECK(s, e.imm == 7 && e.len == 1);
out:
    rig_close(&rig);
}

/* Blobs that others made up give a status. */
static void check_bad_blobs(struct spawn *s, const struct row *row)
{
    struct rig rig;
    struct trib_address address = {.len = sizeof("no address"), .bytes = "no address"};
    struct trib_blob good, bad;
    struct trib_remote *remote;
    int peer = !s->rank, refused = 0;

    if (!rig_open(&rig, s, row))
        goto out;
    /* A changed blob may say that a transport could not register: auto warns. */
    trib_log_init(&rig.log, TRIB_LOG_ERROR, NULL, NULL);
    rig.t->ops->export_region(rig.t, rig.region, &good);
    for (uint32_t i = 0; i < 400; i++) {
        bad = good;
        for (uint32_t k = 0; k <= i % 3; k++)
            bad.bytes[pick(i, 2 * k, TRIB_BLOB_MAX)] = (uint8_t)pick(i, 2 * k + 1, 256);
        if (i % 5 == 0)
            bad.len = pick(i, 99, TRIB_BLOB_MAX + 1);
        if (rig.t->ops->import_region(rig.t, peer, &bad, &remote) == TRIB_OK)
            rig.t->ops->release(rig.t, remote);
        else
            refused++;
    }
    SPAWN_CHECK(s, refused > 50);
    memset(&bad, 0, sizeof(bad));
    SPAWN_CHECK(s, rig.t->ops->import_region(rig.t, peer, &bad, &remote) < 0);
    SPAWN_CHECK(s, rig.t->ops->import_region(rig.t, 7, &good, &remote) < 0);
    SPAWN_CHECK(s, rig.t->ops->connect(rig.t, 7, &address) < 0);
    SPAWN_CHECK(s, rig.t->ops->connect(rig.t, s->rank, &address) < 0);
    SPAWN_CHECK(s, rig.err.text[0] != '\0');
out:
    rig_close(&rig);
}

/* Many regions, each its own; released and made again. */
static void check_many_regions(struct spawn *s, const struct row *row)
{
    enum { MANY = 40, LEN = 5000 };
    struct rig rig;
    struct trib_remote *remote[MANY][RIG_RANKS_MAX];
    struct trib_region *region[MANY];
    uint8_t *mem[MANY];
    struct trib_event e;
    int peer = !s->rank;

    if (!rig_open(&rig, s, row))
        goto out;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < MANY; i++) {
            void *p;
            SPAWN_CHECK(s, rig.t->ops->alloc(rig.t, LEN, &p, &region[i]) == TRIB_OK);
            mem[i] = p;
            SPAWN_CHECK(s, (uintptr_t)p % 4096 == 0 && mem[i][0] == 0 &&
                               mem[i][LEN - 1] == 0);
            if (!rig_swap(&rig, region[i], remote[i]))
                goto out;
            fill(rig.mem, LEN, i);
            struct trib_write w = {
                .local = rig.region, .remote = remote[i][peer], .len = LEN};
            if (!rig_write(&rig, peer, &w, NULL, NULL) ||
                !rig_expect(&rig, TRIB_EVENT_ARRIVED, peer, &e) || !spawn_barrier(s))
                goto out;
        }
        for (uint32_t i = 0; i < MANY; i++) {
            SPAWN_CHECK(s, filled(mem[i], LEN, i));
            rig.t->ops->release(rig.t, remote[i][peer]);
        }
        if (!spawn_barrier(s))
            goto out;
        for (int i = 0; i < MANY; i++)
            rig.t->ops->dereg(rig.t, region[i]);
    }
out:
    rig_close(&rig);
}

/* The owner reads what was stored through map(), also in a part with its own region. */
static void check_map(struct spawn *s, const struct row *row)
{
    struct rig rig;
    struct trib_region *part = NULL;
    struct trib_remote *parts[RIG_RANKS_MAX];
    struct trib_event e;
    int peer = !s->rank;

    if (!rig_open(&rig, s, row))
        goto out;
    SPAWN_CHECK(s, rig.t->ops->reg(rig.t, rig.mem + 4097, 3000, &part) == TRIB_OK);
    if (!rig_swap(&rig, part, parts))
        goto out;
    uint8_t *whole = rig.t->ops->map(rig.t, rig.remote[peer], NULL);
    uint8_t *inner = rig.t->ops->map(rig.t, parts[peer], NULL);
    if (!SPAWN_CHECK(s, whole && inner) || !SPAWN_CHECK(s, inner == whole + 4097))
        goto out;
    fill(whole, 4097, 1);
    fill(inner, 3000, 2);
    if (!rig_note(&rig, peer, 0) || !rig_expect(&rig, TRIB_EVENT_ARRIVED, peer, &e))
        goto out;
    SPAWN_CHECK(s, filled(rig.mem, 4097, 1) && filled(rig.mem + 4097, 3000, 2));
    SPAWN_CHECK(s, filled(whole, 4097, 1));
    spawn_barrier(s);
    rig.t->ops->release(rig.t, parts[peer]);
    rig.t->ops->dereg(rig.t, part);
out:
    rig_close(&rig);
}

static void check_no_map(struct spawn *s, const struct row *row)
{
    struct rig rig;

    if (rig_open(&rig, s, row))
        SPAWN_CHECK(s, !rig.t->ops->map(rig.t, rig.remote[!s->rank], NULL));
    rig_close(&rig);
}

/* Unregistered memory, by its address. */
static void check_read(struct rig *rig, int peer, const uint8_t *mine, uint8_t *got,
                       size_t len)
{
    const bool reads = rig->row->flags & ROW_MAPS;
    uint64_t at = (uintptr_t)mine, all[RIG_RANKS_MAX];

    SPAWN_CHECK(rig->s, rig->t->ops->reads(rig->t, peer) == reads);
    if (!spawn_allgather(rig->s, &at, sizeof(at), all))
        return;
    const uint64_t from[] = {all[peer], 1, UINT64_MAX - 1};
    for (int i = 0; i < 3; i++)
        SPAWN_CHECK(rig->s,
                    rig->t->ops->read(rig->t, peer, from[i], got, len) ==
                        (reads ? i ? TRIB_ERR_RANGE : TRIB_OK : TRIB_ERR_UNSUPPORTED));
    SPAWN_CHECK(rig->s, !reads || filled(got, len, (uint32_t)peer));
}

/* Memory that malloc gave, as source and as target. */
static void check_foreign(struct spawn *s, const struct row *row)
{
    enum { LEN = 300001 };
    struct rig rig;
    struct trib_region *region = NULL;
    struct trib_remote *remote[RIG_RANKS_MAX];
    struct trib_event e;
    uint8_t *mem = malloc(2 * LEN);
    int peer = !s->rank;

    if (!SPAWN_CHECK(s, mem != NULL) || !rig_open(&rig, s, row))
        goto out;
    memset(mem, 0, 2 * LEN);
    fill(mem, LEN, (uint32_t)s->rank);
    check_read(&rig, peer, mem, mem + LEN, LEN);
    SPAWN_CHECK(s, rig.t->ops->reg(rig.t, mem, 2 * LEN, &region) == TRIB_OK);
    if (!rig_swap(&rig, region, remote))
        goto out;
    struct trib_write w = {
        .local = region, .remote = remote[peer], .remote_off = LEN, .len = LEN};
    if (!rig_write(&rig, peer, &w, NULL, NULL) ||
        !rig_expect(&rig, TRIB_EVENT_ARRIVED, peer, &e))
        goto out;
    SPAWN_CHECK(s, filled(mem + LEN, LEN, (uint32_t)peer));
    w.remote_off++;
    SPAWN_CHECK(s, rig.t->ops->write(rig.t, peer, &w) == TRIB_ERR_RANGE);
    spawn_barrier(s);
    rig.t->ops->release(rig.t, remote[peer]);
    rig.t->ops->dereg(rig.t, region);
out:
    rig_close(&rig);
    free(mem);
}

static bool is_zero(const uint8_t *mem, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (mem[i] != 0)
            return false;
    return true;
}

/* A peer's knowledge of a region is worth nothing once the region was given back,
 * though the same memory is registered again: nothing is written, nothing arrives, and
 * the pair is lost. */
static void check_given_back(struct spawn *s, const struct row *row)
{
    enum { LEN = 8192 };
    struct rig rig;
    struct trib_region *region = NULL;
    struct trib_remote *remote[RIG_RANKS_MAX];
    struct trib_event e = {0};
    uint8_t *mem = malloc(LEN);
    int peer = !s->rank;

    if (!SPAWN_CHECK(s, mem != NULL) || !rig_open(&rig, s, row))
        goto out;
    trib_log_init(&rig.log, TRIB_LOG_ERROR, NULL, NULL); /* some warn */
    SPAWN_CHECK(s, rig.t->ops->reg(rig.t, mem, LEN, &region) == TRIB_OK);
    if (!rig_swap(&rig, region, remote))
        goto out;
    fill(rig.mem, LEN, 3);
    struct trib_write w = {
        .local = rig.region, .remote = remote[peer], .len = LEN, .imm = 1};
    if (s->rank == 0 ? !rig_write(&rig, peer, &w, NULL, NULL)
                     : !rig_expect(&rig, TRIB_EVENT_ARRIVED, peer, &e))
        goto out;
    if (s->rank == 1) {
        SPAWN_CHECK(s, e.imm == 1 && filled(mem, LEN, 3));
        rig.t->ops->dereg(rig.t, region);
        memset(mem, 0, LEN);
        SPAWN_CHECK(s, rig.t->ops->reg(rig.t, mem, LEN, &region) == TRIB_OK);
    }
    if (!spawn_barrier(s))
        goto out;
    w.imm = 2;
    if (s->rank == 0)
        SPAWN_CHECK(s, rig.t->ops->write(rig.t, peer, &w) == TRIB_OK);
    rig_expect(&rig, TRIB_EVENT_PEER_LOST, peer, &e);
    SPAWN_CHECK(s, s->rank == 0 || is_zero(mem, LEN));
    rig.t->ops->dereg(rig.t, region);
out:
    rig_close(&rig);
    free(mem);
}

/* WRITE_DONE in order with the right tokens; quiet writes say nothing at the target. */
static void check_signals(struct spawn *s, const struct row *row)
{
    enum { COUNT = 300 };
    struct rig rig;
    struct trib_event e = {0};
    uint64_t next = 0;
    uint64_t posted = 0;

    if (!rig_open(&rig, s, row))
        goto out;
    while (s->rank == 0 && next < COUNT) {
        struct trib_write w = {
            .local = rig.region,
            .remote = rig.remote[1],
            .len = 8,
            .quiet = true,
            .signal = posted % 3 != 1,
            .token = posted << 33,
        };
        trib_status_t status =
            posted < COUNT ? rig.t->ops->write(rig.t, 1, &w) : TRIB_ERR_NO_RESOURCE;
        posted += status == TRIB_OK;
        SPAWN_CHECK(s, status == TRIB_OK || status == TRIB_ERR_NO_RESOURCE);
        if (rig.t->ops->poll(rig.t, &e, 1)) {
            next += next % 3 == 1;
            SPAWN_CHECK(s, e.kind == TRIB_EVENT_WRITE_DONE && e.peer == 1);
            SPAWN_CHECK(s, e.token == next << 33);
            next++;
        }
        if (s->failures || spawn_expired(s))
            break;
    }
    SPAWN_CHECK(s, s->rank == 1 || next == COUNT);
    if (s->rank == 0)
        rig_note(&rig, 1, 5);
    else if (rig_expect(&rig, TRIB_EVENT_ARRIVED, 0, &e))
        SPAWN_CHECK(s, e.imm == 5 && e.len == 0);
out:
    rig_close(&rig);
}

/* Two transports in one process know nothing of each other. */
static void check_independent(struct spawn *s, const struct row *row)
{
    struct rig a, b;
    struct trib_event e;
    int peer = !s->rank;
    bool open_a = rig_open(&a, s, row), open_b = open_a && rig_open(&b, s, row);

    if (!open_b)
        goto out;
    rig_note(&a, peer, 1);
    if (rig_expect(&a, TRIB_EVENT_ARRIVED, peer, &e))
        SPAWN_CHECK(s, e.imm == 1);
    SPAWN_CHECK(s, b.t->ops->poll(b.t, &e, 1) == 0);
    rig_close(&a);
    rig_note(&b, peer, 2);
    if (rig_expect(&b, TRIB_EVENT_ARRIVED, peer, &e))
        SPAWN_CHECK(s, e.imm == 2);
out:
    if (open_a)
        rig_close(&b);
    rig_close(&a);
}

const struct check data_checks[] = {
    {"order", check_order, 4, 0, 0, false, false},
    {"mixed", check_mixed, 2, 0, 0, false, false},
    {"visibility", check_visibility, 2, 0, 0, false, false},
    {"back-pressure", check_pressure, 2, 0, ROW_DECORATED, false, false},
    {"sizes", check_sizes, 2, 0, 0, false, false},
    {"bounds", check_bounds, 2, 0, 0, false, false},
    {"bad blobs", check_bad_blobs, 2, 0, 0, false, false},
    {"many regions", check_many_regions, 2, 0, 0, false, false},
    {"map", check_map, 2, ROW_MAPS, 0, false, false},
    {"no map", check_no_map, 2, 0, ROW_MAPS, false, false},
    {"foreign memory", check_foreign, 2, ROW_FOREIGN, 0, false, false},
    {"memory given back", check_given_back, 2, ROW_FOREIGN, ROW_MAPS | ROW_DECORATED,
     false, false},
    {"signals", check_signals, 2, 0, 0, false, false},
    {"detach", check_detach, 2, 0, 0, false, false},
    {"independent", check_independent, 2, 0, 0, false, false},
    {NULL, NULL, 0, 0, 0, false, false},
};
