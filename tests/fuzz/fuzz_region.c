/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Valid addresses and exported regions of each transport, with a few fields edited in
 * transit: an imported region lies within the exported memory, and a write goes there
 * or is refused. Both ends are in one process. The first byte selects the transport,
 * the second the kind of memory; then come edits (edits.h).
 *
 * Blobs of ucx and verbs, which need a device to connect, are only parsed.
 */
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "build-config.h"
#include "tests/fuzz/edits.h"
#include "transport/auto/auto.h"
#include "transport/backends.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/open.h"

#if HAVE_VERBS
#include "transport/verbs/verbs.h"
#endif
#if HAVE_UCX
#include "transport/ucx/ucx.h"
#endif

unsigned fuzz_reached; /* imports that were written to, or parsed without a device */

enum { LEN = 8192, AROUND = 4096, POLLS = 8, EDITS_MOST = 24 };

enum place { AT_BLOB, AT_ADDRESS, AT_CONTROL, AT_TRAILER, AT_PLACES };

/* Names of backends, before the parameters. */
static const char *const names[] = {"shm",
                                    "loop",
                                    "tcp",
                                    "auto",
                                    "auto:ranks_per_host=1",
                                    "rails:over=tcp,n=2",
                                    "rails:over=loop,n=2",
                                    "ucx",
                                    "verbs"};
enum { NAMES = sizeof(names) / sizeof(*names) };

static struct trib_config cfg;
static struct trib_log quiet;
/* Memory that no peer has exported: no write may go there. */
static _Alignas(4096) uint8_t untouched[AROUND];

struct end {
    struct trib_error err;
    struct trib_transport *t;
    struct trib_region *region;
    uint8_t *mem;
};

struct pair {
    struct end a, b; /* a imports the regions that b has exported */
    struct trib_address address[2];
    struct trib_blob blob;
    uint8_t *around; /* guards of AROUND bytes on both sides of registered memory */
    bool near_only;  /* an edited address may be connected to: it leads to this host
                      * only */
};

static void open_end(struct end *e, const char *name, int self)
{
    const struct trib_transport_opts opts = {.self = self,
                                             .size = 2,
                                             .params = "",
                                             .cfg = &cfg,
                                             .log = &quiet,
                                             .err = &e->err};

    need(trib_transport_open(name, &opts, &e->t) == TRIB_OK);
}

static void make_memory(struct pair *p, int how)
{
    const struct trib_transport_ops *ops = p->b.t->ops;
    void *mem = NULL;

    if (how % 3 == 0)
        need(ops->alloc(p->b.t, LEN, &mem, &p->b.region) == TRIB_OK);
    if (how % 3 == 1)
        need(ops->alloc_user(p->b.t, LEN, &mem, &p->b.region) == TRIB_OK);
    if (how % 3 == 2) {
        need((p->around = aligned_alloc(4096, LEN + 2 * AROUND)) != NULL);
        memset(p->around, 0x5a, LEN + 2 * AROUND);
        mem = p->around + AROUND;
        need(ops->reg(p->b.t, mem, LEN, &p->b.region) == TRIB_OK);
    }
    p->b.mem = mem;
}

static void open_pair(struct pair *p, const char *name, int how)
{
    void *mem;

    memset(p, 0, sizeof(*p));
    p->near_only = strcmp(name, "shm") == 0 || strcmp(name, "loop") == 0;
    open_end(&p->a, name, 0);
    open_end(&p->b, name, 1);
    need(p->a.t->ops->alloc(p->a.t, LEN, &mem, &p->a.region) == TRIB_OK);
    p->a.mem = mem;
    memset(mem, 0xa5, LEN);
    make_memory(p, how);
    need(p->a.t->ops->address(p->a.t, &p->address[0]) == TRIB_OK);
    need(p->b.t->ops->address(p->b.t, &p->address[1]) == TRIB_OK);
    need(p->b.t->ops->export_region(p->b.t, p->b.region, &p->blob) == TRIB_OK);
}

static void close_pair(struct pair *p)
{
    p->a.t->ops->close(p->a.t);
    p->b.t->ops->close(p->b.t);
    free(p->around);
}

/* Return the shm transport within an auto transport; NULL if there is none. */
static struct shm *shm_in(struct trib_transport *t)
{
    if (t->ops == &trib_shm_ops)
        return shm_of(t);
    for (int i = 0; t->ops == &trib_auto_ops && i < auto_of(t)->n_inners; i++) {
        struct trib_transport *inner = auto_of(t)->inners[i].t;
        if (inner && inner->ops == &trib_shm_ops)
            return shm_of(inner);
    }
    return NULL;
}

/* Edit memory that the peer shares: the peer may write any bytes there. */
static bool edit_shared(const struct edits *all, const struct edit *e, struct pair *p)
{
    struct trib_segment *seg = NULL;

    struct shm *shm = shm_in(p->b.t);
    if (shm) {
        seg = &shm->control;
        if (e->offset & 1 && shm->owned) /* edit memory instead */
            seg = &shm->owned->seg;
        if (e->place % AT_PLACES == AT_CONTROL)
            return edit_apply(
                all, e, shm->control.base,
                trib_shm_control_len((uint32_t)shm->size, shm->ring_slots));
    }
    return seg && edit_apply(all, e, seg->base + seg->map_len - 4096, 64);
}

/* Return true if the address was edited. */
static bool edit_all(struct edits *all, struct pair *p)
{
    struct edit e;
    bool readdressed = false;

    for (int i = 0; i < EDITS_MOST && edits_next(all, &e); i++) {
        switch ((enum place)(e.place % AT_PLACES)) {
        case AT_BLOB:
            (void)edit_apply(all, &e, &p->blob, sizeof(p->blob));
            break;
        case AT_ADDRESS:
            (void)edit_apply(all, &e, &p->address[1],
                             offsetof(struct trib_address, bytes) +
                                 p->address[1].len % 1024);
            readdressed = true;
            break;
        default:
            (void)edit_shared(all, &e, p);
        }
    }
    return readdressed;
}

static bool is_in(const struct trib_segment *seg, const uint8_t *at, size_t len)
{
    return at >= seg->base && len <= seg->map_len &&
           (size_t)(at - seg->base) <= seg->map_len - len;
}

/* Return true if the bytes are memory that b exports to its peers, as segments or as
 * registered. */
static bool is_given(const struct pair *p, const uint8_t *at, size_t len)
{
    const struct shm *shm = shm_in(p->b.t);

    if (p->around && at >= p->around + AROUND && len <= LEN &&
        (size_t)(at - (p->around + AROUND)) <= LEN - len)
        return true;
    if (!shm)
        return at >= p->b.mem && len <= LEN && (size_t)(at - p->b.mem) <= LEN - len;
    if (is_in(&shm->control, at, len))
        return true;
    /* A region that passes for one of another process is mapped once more, completely,
     * so its length is known. */
    for (const struct shm_attached *x = shm_in(p->a.t)->peers[1].attached; x;
         x = x->next)
        if (is_in(&x->seg, at, len))
            return true;
    for (const struct shm_owned *o = shm->owned; o; o = o->next)
        if (is_in(&o->seg, at, len))
            return true;
    return false;
}

static void write_at(struct pair *p, struct trib_remote *remote, size_t off, size_t len)
{
    struct trib_event events[8];
    const struct trib_write w = {.local = p->a.region,
                                 .remote = remote,
                                 .remote_off = off,
                                 .len = len,
                                 .imm = 7};

    (void)p->a.t->ops->write(p->a.t, 1, &w);
    for (int i = 0; i < POLLS; i++) {
        (void)p->b.t->ops->poll(p->b.t, events, 8);
        (void)p->a.t->ops->poll(p->a.t, events, 8);
    }
}

/* Write at its edges, both as in the blob and the real ones, and at the 4 GiB that a
 * lane's offset can reach. */
static void write_all(struct pair *p, struct trib_remote *remote)
{
    static const size_t offsets[] = {0, LEN - 1, LEN, LEN + AROUND, 65536, UINT32_MAX};
    size_t len = 0;
    uint8_t *at = p->a.t->ops->map(p->a.t, remote, &len);

    if (at)
        need(is_given(p, at, len));
    for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
        write_at(p, remote, offsets[i], 1);
    write_at(p, remote, 0, LEN);
    for (size_t i = 0; i < AROUND; i++)
        need(!untouched[i] && (!p->around || (p->around[i] == 0x5a &&
                                              p->around[AROUND + LEN + i] == 0x5a)));
    fuzz_reached++;
}

static void import(struct pair *p)
{
    const struct trib_transport_ops *ops = p->a.t->ops;
    struct trib_remote *remote;

    if (ops->import_region(p->a.t, 1, &p->blob, &remote) != TRIB_OK) {
        need(p->a.err.text[0] != 0);
        return;
    }
    write_all(p, remote);
    ops->release(p->a.t, remote);
}

static void run_pair(const char *name, int how, struct edits *all)
{
    struct pair p;
    struct trib_address real;
    uint32_t caps;

    open_pair(&p, name, how);
    const uint64_t special[] = {(uintptr_t)untouched,
                                (uintptr_t)&cfg,
                                (uintptr_t)p.b.mem,
                                (uintptr_t)p.a.mem,
                                (uint64_t)getpid(),
                                1,
                                2,
                                LEN,
                                LEN - 1,
                                LEN + 1,
                                UINT64_MAX,
                                INT64_MAX,
                                UINT64_C(1) << 40,
                                4096};
    all->special = special;
    all->n_special = sizeof(special) / sizeof(*special);
    real = p.address[1];
    const bool readdressed = edit_all(all, &p);
    (void)p.a.t->ops->reach(p.a.t, 1, &p.address[1]);
    (void)p.a.t->ops->caps(p.a.t, p.address, &caps);
    if (readdressed && !p.near_only) { /* it may lead anywhere, so it is only parsed */
        close_pair(&p);
        open_pair(&p, name, how);
        real = p.address[1];
    }
    if (p.b.t->ops->connect(p.b.t, 0, &p.address[0]) == TRIB_OK &&
        p.a.t->ops->connect(p.a.t, 1, p.near_only ? &p.address[1] : &real) == TRIB_OK)
        import(&p);
    close_pair(&p);
}

/* Parts of a rank that need no device ---------------------------------------------- */

#if HAVE_UCX
static void run_ucx(struct edits *all)
{
    struct trib_error err = {0};
    struct ucx u = {
        .size = 2,
        .err = &err,
        .table = {.owner = "ucx"},
        .local = {.owner = "ucx", .magic = UCX_MAGIC, .version = UCX_VERSION},
    };
    struct trib_table_export x = {
        .magic = UCX_MAGIC, .region = 1, .key = 5, .len = LEN};
    struct trib_ip_address a = {.magic = UCX_MAGIC, .version = UCX_VERSION, .port = 1};
    struct trib_address address = {.len = sizeof(a)};
    struct trib_blob blob = {.len = sizeof(x)};
    struct trib_remote *remote;
    struct edit e;

    need((u.peers = calloc(2, sizeof(*u.peers))) != NULL);
    memcpy(blob.bytes, &x, sizeof(x));
    memcpy(address.bytes, &a, sizeof(a));
    for (int i = 0; i < EDITS_MOST && edits_next(all, &e); i++)
        (void)edit_apply(all, &e, e.place & 1 ? (void *)&address : (void *)&blob,
                         e.place & 1 ? sizeof(address) : sizeof(blob));
    u.peers[1].base.state = TRIB_PEER_UNKNOWN;
    (void)trib_ucx_reach(&u.base, 1, &address);
    u.peers[1].base.state = TRIB_PEER_CONNECTED;
    u.peers[1].key = 5;
    if (trib_ucx_import(&u.base, 1, &blob, &remote) == TRIB_OK) {
        trib_table_release_op(&u.base, remote);
        fuzz_reached++;
    } else {
        need(err.text[0] != 0);
    }
    free(u.peers);
}
#endif

#if HAVE_VERBS
/* Append a record of a rank with two devices, as multirail writes it. */
static uint16_t put_record(uint8_t *bytes, uint16_t at, const void *what, uint16_t len)
{
    const struct multirail_bytes record = {what, len}, zeros = {NULL, 0};
    size_t end = at;

    need(trib_multirail_put(bytes, TRIB_BLOB_MAX * 4, &end, record, zeros));
    return (uint16_t)end;
}

static void make_verbs(struct trib_address *address, struct trib_blob *blob)
{
    const struct multirail_address head = {.magic = MULTIRAIL_MAGIC, .n = 2};
    const struct verbs_address a = {.magic = VERBS_MAGIC, .port = 1, .n = 1, .more = 1};
    const struct verbs_export x = {
        .magic = VERBS_MAGIC, .rkey = 3, .key = 5, .len = LEN};
    const uint32_t magic = MULTIRAIL_MAGIC;

    memcpy(address->bytes, &head, sizeof(head));
    address->len = sizeof(head);
    memcpy(blob->bytes, &magic, sizeof(magic));
    blob->len = sizeof(magic);
    for (int i = 0; i < 2; i++) {
        address->len = put_record(address->bytes, address->len, &a, sizeof(a));
        blob->len = put_record(blob->bytes, blob->len, &x, sizeof(x));
    }
}

static void run_verbs(struct edits *all)
{
    struct trib_error err = {0};
    static struct verbs v;
    struct trib_address address = {.len = 0};
    struct trib_blob blob = {.len = 0};
    struct verbs_choice choice;
    struct trib_remote *remote;
    struct edit e;

    memset(&v, 0, sizeof(v));
    v.size = 2;
    v.err = &err;
    need((v.peers = calloc(2, sizeof(*v.peers))) != NULL);
    make_verbs(&address, &blob);
    for (int i = 0; i < EDITS_MOST && edits_next(all, &e); i++)
        (void)edit_apply(all, &e, e.place & 1 ? (void *)&address : (void *)&blob,
                         e.place & 1 ? sizeof(address) : sizeof(blob));
    trib_verbs_choices(&v, &address, &choice);
    need(choice.n <= MULTIRAIL_MAX);
    for (int i = 0; i < choice.n; i++) {
        need(choice.address[i].n + choice.address[i].more <= VERBS_ADDRESSES);
        (void)trib_verbs_leads_back(&v, &choice.address[i], &choice.address[i].ip[0]);
    }
    v.peers[1].base.state = TRIB_PEER_CONNECTED;
    v.peers[1].key = 5;
    if (trib_verbs_import(&v.base, 1, &blob, &remote) == TRIB_OK) {
        const struct verbs_remote *r = (const struct verbs_remote *)remote;
        need(r->len > 0 && r->len <= UINT64_MAX - r->address);
        trib_verbs_release(&v.base, remote);
        fuzz_reached++;
    } else {
        need(err.text[0] != 0);
    }
    free(v.peers);
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct edits all = {.at = data + 2, .left = size - 2};
    const char *name;

    if (size < 2)
        return 0;
    trib_log_init(&quiet, TRIB_LOG_ERROR, fuzz_drop_line, NULL);
    if (!cfg.stop_timeout_ms)
        need(trib_config_load(&cfg, NULL, NULL, NULL) == TRIB_OK);
    name = names[data[0] % NAMES];
    if (strcmp(name, "ucx") != 0 && strcmp(name, "verbs") != 0)
        run_pair(name, data[1], &all);
#if HAVE_UCX
    if (strcmp(name, "ucx") == 0)
        run_ucx(&all);
#else
    fuzz_reached += strcmp(name, "ucx") == 0; /* this build has no code to parse it */
#endif
#if HAVE_VERBS
    if (strcmp(name, "verbs") == 0)
        run_verbs(&all);
#else
    fuzz_reached += strcmp(name, "verbs") == 0;
#endif
    return 0;
}
