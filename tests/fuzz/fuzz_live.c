/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks of one process that sum, driven by hand. Between two passes, a few fields
 * of their shared memory are edited: frames and payloads in slots, credits, notices,
 * adverts, the control segment of shm and its rings, trailers. An operation succeeds,
 * or fails with a status and a message. A wrong sum is an error as well, unless frames
 * or payloads were edited and frames have no checksums.
 *
 * The first byte selects the transport, the second the codec, the memory layout and
 * whether frames have checksums. Then come edits (edits.h); the upper bits of the place
 * of an edit are the number of passes before it.
 */
#include <unistd.h>

#include "base/config.h"
#include "collectives/collectives.h"
#include "pipeline/engine/engine.h"
#include "tests/fuzz/edits.h"
#include "transport/backends.h"
#include "transport/shm/shm.h"

unsigned fuzz_reached; /* correct sums on both ranks */

enum { COUNT = 6000, CHUNK = 4096, STARTS = 2, PASSES = 60, EDITS_MOST = 24 };

enum place {
    AT_HEAD,
    AT_CELL,
    AT_PAYLOAD,
    AT_CONTROL,
    AT_RING,
    AT_TRAILER,
    AT_NOTICE, /* a valid notice arrives, except for this edit */
    AT_GRANT, /* the same */
    AT_PLACES,
};

static const char *const transports[] = {"shm", "shm+nomap", "loop"};
static const char *const codecs[] = {NULL, "topk:ratio=0.25", "f8",
                                     "qsgd:bits=8,bucket=64"};
enum { TRANSPORTS = 3, CODECS = 4 };

struct side {
    struct trib_error err;
    struct trib_engine engine;
    struct trib_run run;
    float *x;
};

struct two {
    struct side side[2];
    struct trib_codec *codec;
    bool sums; /* frames have checksums, so edits are detected */
    bool spoilt; /* frames or payloads were edited: a sum may be wrong */
};

static struct trib_config cfg;

static void open_side(struct two *t, int rank, const char *transport, bool per_link)
{
    struct side *s = &t->side[rank];
    struct trib_engine *e = &s->engine;
    const struct trib_transport_opts opts = {
        .self = rank, .size = 2, .params = "", .cfg = &cfg, .err = &s->err};
    void *x;

    e->cfg = &cfg;
    e->err = &s->err;
    e->kernels = trib_kernels_get(NULL);
    e->rank = rank;
    e->size = e->ranks = 2;
    e->arena.per_link = per_link;
    need(trib_transport_open(transport, &opts, &e->transport) == TRIB_OK);
    need(trib_engine_open(e) == TRIB_OK);
    need(trib_memory_alloc(&e->memories, COUNT * sizeof(float), &x) == TRIB_OK);
    s->x = x;
}

static void introduce(struct trib_engine *to, const struct trib_engine *e)
{
    struct trib_peer *p = &to->peers[e->rank];

    snprintf(p->host, sizeof(p->host), "here");
    p->pid = getpid();
    need(e->transport->ops->address(e->transport, &p->address) == TRIB_OK);
    need(trib_arena_export(&e->arena, &p->arena) == TRIB_OK);
}

static void prepare(struct two *t, struct side *s)
{
    struct trib_engine *e = &s->engine;
    const struct trib_shape shape = {
        .coll = TRIB_ALLREDUCE, .rank = e->rank, .size = 2};
    struct trib_schedule schedule = {0};

    need(trib_algo_find("direct")->build(&shape, &schedule) == TRIB_OK);
    need(trib_program_create(&schedule, &shape, &s->run.program) == TRIB_OK);
    trib_schedule_free(&schedule);
    s->run.desc =
        (struct trib_run_desc){.op = {.coll = TRIB_ALLREDUCE, .root = TRIB_ROOT_NONE},
                               .element = sizeof(float),
                               .count = COUNT,
                               .total = COUNT,
                               .piece = CHUNK / sizeof(float),
                               .n_chunks = 2,
                               .rounds = 3,
                               .zero_copy = !t->codec,
                               .check.sum = t->sums,
                               .codec = t->codec};
    s->run.desc.name = "direct";
    need(trib_run_prepare(e, &s->run) == TRIB_OK);
}

static void open_two(struct two *t, int transport, int how)
{
    memset(t, 0, sizeof(*t));
    t->sums = how / CODECS / 2 % 2;
    if (codecs[how % CODECS])
        need(trib_codec_create(codecs[how % CODECS], NULL, NULL, &t->codec) == TRIB_OK);
    for (int i = 0; i < 2; i++)
        open_side(t, i, transports[transport % TRANSPORTS], how / CODECS % 2);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            introduce(&t->side[i].engine, &t->side[k].engine);
    for (int i = 0; i < 2; i++)
        prepare(t, &t->side[i]);
}

static void close_two(struct two *t)
{
    for (int i = 0; i < 2; i++)
        if (t->side[i].engine.head)
            trib_engine_fail(&t->side[i].engine, TRIB_ERR_TIMEOUT,
                             "the fuzzer ends it");
    for (int i = 0; i < 2; i++) {
        struct side *s = &t->side[i];
        trib_run_dispose(&s->run);
        trib_engine_close(&s->engine);
        s->engine.transport->ops->close(s->engine.transport);
    }
    trib_codec_destroy(t->codec);
}

/* Edits ---------------------------------------------------------------------------- */

static bool edit_control(const struct edits *all, const struct edit *e, struct shm *shm)
{
    if (e->place % AT_PLACES == AT_TRAILER) {
        struct trib_segment *seg =
            e->offset & 1 && shm->owned ? &shm->owned->seg : &shm->control;
        return edit_apply(all, e, seg->base + seg->map_len - 4096, 64);
    }
    /* Skip the descriptor of a pipe: it may be the pipe of the fuzzer's own output. */
    const int32_t pipe = atomic_load(&shm->header->pipe);
    struct trib_shm_ring *ring =
        trib_shm_ring_at(shm->header, e->offset >> 15 & 1, shm->ring_slots);
    const bool fits =
        e->place % AT_PLACES == AT_CONTROL
            ? edit_apply(all, e, shm->header, sizeof(*shm->header))
            : edit_apply(all, e, ring, sizeof(*ring) + 16 * sizeof(ring->entries[0]));
    atomic_store(&shm->header->pipe, pipe);
    return fits;
}

/* Write a notice like pipeline/link/link.c: the content first, then its version. */
static void put_notice(const struct edits *all, const struct edit *e,
                       struct trib_engine *engine)
{
    struct trib_oob_notice n = {.kind = TRIB_OOB_NOTICE_FAILED,
                                .status = TRIB_ERR_ABORTED};
    struct trib_oob_notice *at =
        (struct trib_oob_notice *)(engine->arena.base + sizeof(struct trib_credits));
    const uint32_t version = (atomic_load(&at->version) + 2) & ~1u;

    if (engine->head)
        n.frame = engine->head->now.frame;
    snprintf(n.text, sizeof(n.text), "the other one has failed");
    (void)edit_apply(all, e, &n.kind,
                     offsetof(struct trib_oob_notice, version_end) -
                         offsetof(struct trib_oob_notice, kind));
    memcpy(&at->kind, &n.kind,
           offsetof(struct trib_oob_notice, version_end) -
               offsetof(struct trib_oob_notice, kind));
    atomic_store(&at->version_end, version);
    atomic_store(&at->version, version);
    engine->links[1 - engine->rank].notice_arrived[TRIB_OOB_NOTICE_LAST_WORDS] =
        version & 0xffffff; /* as its event does without load/store reach */
}

static void put_advert(const struct edits *all, const struct edit *e,
                       struct trib_engine *engine, const struct trib_engine *other)
{
    struct trib_region *const *edges = other->arena.link_regions;
    struct trib_slot_advert g = {.ready = 1};
    const struct trib_region *region =
        edges && edges[engine->rank] ? edges[engine->rank] : other->arena.region;

    if (other->transport->ops->export_region(other->transport, region, &g.blob) !=
        TRIB_OK)
        return;
    (void)edit_apply(all, e, &g.blob, sizeof(g.blob));
    memcpy(engine->arena.base + sizeof(struct trib_credits) +
               sizeof(struct trib_oob_notice),
           &g, sizeof(g));
}

/* Edit the memory of this side that the other side may write. */
static void edit_side(struct two *t, const struct edits *all, const struct edit *e)
{
    struct trib_engine *engine = &t->side[e->offset >> 14 & 1].engine;
    struct trib_link *l = &engine->links[1 - engine->rank];
    struct trib_recv_lane *r = &l->recv[e->offset >> 13 & 1];
    const size_t heads = sizeof(struct trib_credits) +
                         2 * sizeof(struct trib_oob_notice) +
                         2 * sizeof(struct trib_slot_advert);
    uint8_t *slots = r->slots;

    switch ((enum place)(e->place % AT_PLACES)) {
    case AT_HEAD:
        (void)edit_apply(all, e, engine->arena.base, heads);
        return;
    case AT_CELL:
        t->spoilt |= slots != NULL;
        if (slots)
            (void)edit_apply(all, e, slots + trib_slot_off(l, &engine->arena, r->next),
                             sizeof(struct trib_entry));
        return;
    case AT_PAYLOAD:
        t->spoilt |= slots != NULL;
        if (slots)
            (void)edit_apply(all, e, slots, l->stride * engine->arena.slots);
        return;
    case AT_NOTICE:
        put_notice(all, e, engine);
        return;
    case AT_GRANT:
        put_advert(all, e, engine, &t->side[1 - engine->rank].engine);
        return;
    default:
        if (engine->transport->ops == &trib_shm_ops)
            (void)edit_control(all, e, shm_of(engine->transport));
    }
}

/* Running -------------------------------------------------------------------------- */

static bool is_known(trib_status_t st)
{
    return st < 0 && strcmp(trib_status_name(st), "TRIB_?") != 0;
}

static void check(const struct two *t, const struct side *s)
{
    const struct trib_engine *e = &s->engine;
    bool right = true;

    need(!e->failed || (is_known((trib_status_t)e->failed) && e->failure.text[0]));
    if (s->run.now.state != TRIB_RUN_DONE)
        return;
    need(s->run.now.status == TRIB_OK || is_known(s->run.now.status));
    if (s->run.now.status != TRIB_OK)
        return;
    for (int i = 0; i < COUNT && !t->codec; i++)
        right &= s->x[i] == 3.0f; /* of 1 and 2 */
    need(right || (t->spoilt && !t->sums));
    fuzz_reached += right && e->rank == 1;
}

static void drive(struct two *t, struct edits *all)
{
    struct edit e = {0};
    bool has = edits_next(all, &e);
    int due = e.place >> 4, n = 0;

    for (int i = 0; i < PASSES; i++) {
        struct trib_engine *engine = &t->side[i % 2].engine;
        for (; has && i >= due && n < EDITS_MOST; n++) {
            edit_side(t, all, &e);
            has = edits_next(all, &e);
            due = i + (e.place >> 4);
        }
        (void)trib_engine_progress(engine);
        if (i % 4 > 1) {
            (void)trib_engine_events(engine);
            trib_engine_notices(engine);
        }
        if (!t->side[0].engine.head && !t->side[1].engine.head)
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct edits all = {.at = data + 2, .left = size - 2};
    static const uint64_t special[] = {1,
                                       2,
                                       3,
                                       4,
                                       CHUNK,
                                       CHUNK + 1,
                                       TRIB_ENTRY_PAYLOAD,
                                       TRIB_ENTRY_PAYLOAD + 1,
                                       INT64_MAX,
                                       UINT64_MAX,
                                       0,
                                       UINT64_C(1) << 32};
    struct two t;

    if (size < 2)
        return 0;
    if (!cfg.chunk)
        need(trib_config_load(&cfg, "chunk=4K;window=4;timeout_ms=2000", NULL, NULL) ==
             TRIB_OK);
    all.special = special;
    all.n_special = sizeof(special) / sizeof(*special);
    open_two(&t, data[0], data[1]);
    for (int start = 0;
         start < STARTS && !t.side[0].engine.failed && !t.side[1].engine.failed;
         start++) {
        for (int i = 0; i < 2; i++) {
            for (int k = 0; k < COUNT; k++)
                t.side[i].x[k] = (float)(i + 1);
            if (t.side[i].run.now.state != TRIB_RUN_QUEUED &&
                t.side[i].run.now.state != TRIB_RUN_ACTIVE)
                trib_run_start(&t.side[i].engine, &t.side[i].run, NULL, t.side[i].x);
        }
        drive(&t, &all);
        for (int i = 0; i < 2; i++)
            check(&t, &t.side[i]);
        if (t.side[0].engine.head || t.side[1].engine.head)
            break;
    }
    close_two(&t);
    return 0;
}
