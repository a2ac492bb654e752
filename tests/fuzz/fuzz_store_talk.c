/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session of a store in order: ranks open vectors, set and push elements, pull,
 * restore a copy, and request snapshots. Each message is valid for the state of the
 * store, except for the edits (edits.h) of its payload. With an even shape, a request
 * for a snapshot edits the file of the snapshot:
 *
 *     | step 1 | rank and vector 1 | shape 1 | edits 1, at most 3 | edits … |
 *
 * The store continues, refuses a request, or reports an unexpected message and ends the
 * session of its rank. Versions stay within their range, and all memory is returned.
 */
#include "agg/store/store_peer.h"
#include "agg/store/store_snapshot.h"
#include "base/error.h"
#include "base/quota.h"
#include "tests/fuzz/edits.h"

unsigned fuzz_reached; /* inputs whose steps the store has all accepted */

enum {
    RANKS = 2,
    VECTORS = 4,
    MEMORY = 1 << 20,
    STEPS_MOST = 64,
    EDITS_MOST = 3,
    BYTES_MOST = 65536, /* of one request */
};

enum step { OPEN, SET, PUSH, GIVE, RESTORE, PULL, SOME_PUSH, SOME_PULL, CODED, TAKE,
            PUT_BACK, STEPS };

struct talk {
    struct edits edits;
    struct trib_quota quota;
    struct trib_store_table *table;
    struct trib_store_peer *peers[RANKS];
    uint8_t *files[VECTORS]; /* their newest snapshots, or NULL */
    uint64_t file_bytes[VECTORS];
    uint64_t now_ns;
    uint32_t n_edits; /* of this step */
    bool of_file; /* they edit the file of a snapshot */
    bool over; /* a message was unexpected */
};

/* Snapshots ------------------------------------------------------------------------ */

static void edit_bytes(struct talk *t, uint8_t *bytes, size_t n)
{
    struct edit e;

    for (; t->n_edits && edits_next(&t->edits, &e); t->n_edits--)
        (void)edit_apply(&t->edits, &e, bytes, n);
}

static void take_snapshot(struct talk *t, uint32_t vector)
{
    struct trib_snapshot_about about = {.user = "ana", .job = "a-job"};
    struct trib_store_image image;

    trib_store_image(t->table, vector, &image);
    free(t->files[vector]);
    t->file_bytes[vector] = trib_snapshot_bytes(&image);
    t->files[vector] = malloc(t->file_bytes[vector]);
    need(t->files[vector] != NULL);
    trib_snapshot_copy(&image, &about, NULL, t->files[vector]);
    edit_bytes(t, t->files[vector], t->file_bytes[vector]);
    trib_snapshot_seal(t->files[vector], t->file_bytes[vector]);
    trib_store_set_saved(t->table, vector, image.version + 1);
}

static void put_back(struct talk *t, uint32_t vector, struct trib_error *err)
{
    struct trib_snapshot s;

    if (!t->files[vector]) {
        (void)trib_fail(err, TRIB_ERR_NO_RESOURCE, "there is no snapshot");
        return;
    }
    edit_bytes(t, t->files[vector], t->file_bytes[vector]);
    trib_snapshot_seal(t->files[vector], t->file_bytes[vector]);
    if (trib_snapshot_read(t->files[vector], t->file_bytes[vector], err, &s) ==
                 TRIB_OK &&
             trib_store_put(t->table, vector, &s.image, NULL, err) == TRIB_OK)
        trib_store_set_saved(t->table, vector, s.about.version + 1);
}

static void carry_out(struct talk *t, struct trib_store_peer *peer,
                      const struct trib_control_store_snapshot *what)
{
    struct trib_error err = {0};

    if (what->vector < VECTORS && what->order == TRIB_CONTROL_SNAPSHOT_TAKE)
        take_snapshot(t, what->vector);
    else if (what->vector < VECTORS)
        put_back(t, what->vector, &err);
    else
        (void)trib_fail(&err, TRIB_ERR_NO_RESOURCE, "no place for it");
    trib_store_peer_kept(peer, what, UINT64_MAX, &err);
}

/* Messages ------------------------------------------------------------------------- */

static void hear(struct talk *t, struct trib_store_peer *peer)
{
    static uint8_t out[TRIB_CONTROL_FRAME_BYTES];
    struct trib_control_store_snapshot what;
    struct trib_control m;
    size_t used;

    trib_store_peer_wake(peer, ++t->now_ns);
    if (trib_store_peer_wants(peer, &what))
        carry_out(t, peer, &what);
    while (trib_store_peer_next(peer, &m)) {
        need(trib_control_put(&m, out, sizeof(out), &used) == TRIB_OK);
        trib_store_peer_sent(peer);
    }
}

/* Send a message with the remaining edits of this step. */
static void say(struct talk *t, uint32_t rank, const struct trib_control *m)
{
    static uint8_t out[TRIB_CONTROL_FRAME_BYTES];
    struct trib_control_frame frame;
    struct trib_error err = {0};
    struct trib_control in;
    size_t used;

    if (t->over)
        return;
    need(trib_control_put(m, out, sizeof(out), &used) == TRIB_OK);
    if (!t->of_file)
        edit_bytes(t, out + TRIB_CONTROL_HEAD_BYTES, used - TRIB_CONTROL_HEAD_BYTES);
    need(trib_control_parse(out, used, 0, TRIB_CONTROL_JOB, &frame) == TRIB_OK);
    t->over = trib_control_get(frame.kind, frame.payload, frame.length, &in) != TRIB_OK;
    if (t->over)
        return;
    const trib_status_t st = trib_store_peer_take(t->peers[rank], &in, &err);
    need(st == TRIB_OK || (st == TRIB_ERR_PROTOCOL && err.text[0]));
    t->over = st != TRIB_OK;
    hear(t, t->peers[rank]);
}

static void open_vector(struct talk *t, uint32_t rank, uint32_t vector, uint8_t shape)
{
    static const char *const rules[] = {"sum", "sgd:rate=0.1,momentum=0.9",
                                        "adam:rate=0.1", "elastic:pull=0.5"};
    static const uint32_t dtypes[] = {TRIB_F32, TRIB_F64, TRIB_BF16, TRIB_I64};
    static const uint64_t counts[] = {1, 7, 600, 5000};
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_OPEN};
    struct trib_control_store_open *o = &m.store_open;

    *o = (struct trib_control_store_open){.dtype = dtypes[shape / 4 % 4],
                                          .count = counts[shape / 16 % 4]};
    snprintf(o->name, sizeof(o->name), "v%u", vector);
    snprintf(o->rule, sizeof(o->rule), "%s", rules[shape % 4]);
    say(t, rank, &m);
}

/* Push for any purpose, in as many messages as needed. */
static void push(struct talk *t, uint32_t rank, uint32_t vector,
                 enum trib_control_push purpose, uint64_t bytes)
{
    static uint8_t elements[BYTES_MOST];
    const uint64_t clock = trib_store_clock(t->table, vector, rank);
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_PUSH};
    uint64_t at = 0;

    if (bytes > sizeof(elements))
        return;
    do {
        const uint64_t left = bytes - at;
        m.store_push = (struct trib_control_store_push){
            .vector = vector,
            .purpose = purpose,
            .number = purpose <= TRIB_CONTROL_PUSH_GIVE ? clock + 1 : 1,
            .offset = at,
            .data = {elements + at, (uint32_t)(left < TRIB_CONTROL_STORE_BYTES
                                                   ? left
                                                   : TRIB_CONTROL_STORE_BYTES)}};
        at += m.store_push.data.n;
        say(t, rank, &m);
    } while (at < bytes && !t->over);
}

static void pull(struct talk *t, uint32_t rank, uint32_t vector, uint64_t count)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_STORE_PULL,
                                   .store_pull = {.vector = vector,
                                                  .count = count,
                                                  .bound = TRIB_CONTROL_UNBOUNDED}};

    say(t, rank, &m);
}

/* Send the indices of the first elements for the next request. Return their number. */
static uint64_t name_some(struct talk *t, uint32_t rank, uint32_t vector, uint64_t all)
{
    const uint64_t n = all < 5 ? all : 5;
    const size_t width = trib_control_index_bytes(all);
    uint8_t indices[5 * sizeof(uint64_t)] = {0};
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_INDEX};

    for (uint64_t i = 0; i < n; i++)
        memcpy(indices + i * width, &i, width);
    m.store_index = (struct trib_control_store_index){
        .vector = vector, .count = n, .data = {indices, (uint32_t)(n * width)}};
    say(t, rank, &m);
    return n;
}

static void name_codec(struct talk *t, uint32_t rank, uint32_t vector, uint8_t shape)
{
    static const char *const codecs[] = {"qsgd:bits=4", "fp16", "bf16", "terngrad"};
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_CODEC,
                             .store_codec = {.vector = vector}};

    snprintf(m.store_codec.codec, sizeof(m.store_codec.codec), "%s", codecs[shape % 4]);
    say(t, rank, &m);
}

static void order(struct talk *t, uint32_t rank, uint32_t vector, uint32_t way)
{
    const struct trib_control m = {.kind = TRIB_CONTROL_STORE_SNAPSHOT,
                                   .store_snapshot = {vector, way}};

    say(t, rank, &m);
}

/* Run a step that needs a vector. */
static void go_on(struct talk *t, uint32_t step, uint32_t rank, uint32_t vector,
                  uint8_t shape)
{
    const uint64_t bytes = trib_store_bytes(t->table, vector);
    const uint64_t element = trib_store_element(t->table, vector);

    if (step >= SET && step <= RESTORE) {
        static const enum trib_control_push purposes[] = {
            [SET] = TRIB_CONTROL_PUSH_SET,
            [PUSH] = TRIB_CONTROL_PUSH,
            [GIVE] = TRIB_CONTROL_PUSH_GIVE,
            [RESTORE] = TRIB_CONTROL_PUSH_RESTORE};
        push(t, rank, vector, purposes[step], bytes);
    } else if (step == SOME_PUSH) {
        const uint64_t n = name_some(t, rank, vector, bytes / element);
        push(t, rank, vector, TRIB_CONTROL_PUSH, n * element);
    } else if (step == SOME_PULL) {
        pull(t, rank, vector, name_some(t, rank, vector, bytes / element));
    } else if (step == TAKE || step == PUT_BACK) {
        order(t, rank, vector,
              step == TAKE ? TRIB_CONTROL_SNAPSHOT_TAKE
                           : TRIB_CONTROL_SNAPSHOT_RESTORE);
    } else {
        if (step == CODED)
            name_codec(t, rank, vector, shape);
        pull(t, rank, vector, bytes / element);
    }
}

static bool take_step(struct talk *t)
{
    if (t->over || t->edits.left < 4)
        return false;
    const uint32_t step = (uint32_t)edits_number(&t->edits, 1) % STEPS;
    const uint8_t place = (uint8_t)edits_number(&t->edits, 1);
    const uint8_t shape = (uint8_t)edits_number(&t->edits, 1);
    const uint32_t n = trib_store_table_size(t->table);
    const uint32_t rank = place % RANKS;

    t->n_edits = (uint32_t)edits_number(&t->edits, 1) % (EDITS_MOST + 1);
    t->of_file = step >= TAKE && shape % 2 == 0;
    if (step == OPEN || !n)
        open_vector(t, rank, n < VECTORS ? n : place / RANKS % VECTORS, shape);
    else
        go_on(t, step, rank, place / RANKS % n, shape);
    for (uint32_t r = 0; r < RANKS; r++)
        hear(t, t->peers[r]);
    for (uint32_t v = 0; v < trib_store_table_size(t->table); v++)
        need(trib_store_version(t->table, v) <= TRIB_CONTROL_PUSHES_MAX);
    need(trib_quota_held_mt(&t->quota) <= MEMORY);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t special[] = {0,          1,          INT64_MAX,
                                       UINT64_MAX, UINT64_MAX - 1,
                                       (uint64_t)INT64_MAX + 1, UINT32_MAX, 1 << 16};
    struct talk t = {.edits = {data, size, special, sizeof(special) / sizeof(*special)},
                     .quota = {.most = MEMORY}};
    int steps = 0;

    need(trib_store_table_create(RANKS, &t.quota, &t.table) == TRIB_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct trib_store_peer_opts opts = {t.table, r,    &t.quota, NULL,
                                                  true,    NULL, NULL};
        need(trib_store_peer_create(&opts, &t.peers[r]) == TRIB_OK);
    }
    while (steps < STEPS_MOST && take_step(&t))
        steps++;
    fuzz_reached += !t.over && steps > 0;
    for (uint32_t r = 0; r < RANKS; r++)
        trib_store_peer_free(t.peers[r]);
    trib_store_table_destroy(t.table);
    for (int i = 0; i < VECTORS; i++)
        free(t.files[i]);
    need(trib_quota_held_mt(&t.quota) == 0);
    return 0;
}
