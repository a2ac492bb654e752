/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: join, meet, split, leave.
 */
#include "core/comm.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/process.h"
#include "base/time.h"
#include "boot/boot.h"
#include "topo/machine.h"

#define HELLO_VERSION 1

/* What every rank tells every other at the start. */
struct hello {
    uint32_t magic;   /* TRIB_FRAME_MAGIC */
    uint32_t version; /* HELLO_VERSION */
    uint64_t settings;
    uint64_t machine; /* boot id and pid namespace: equal within load/store reach */
    cpu_set_t cpus;   /* where this rank may run */
    int32_t pid;
    char library[12];
    char host[64];
    struct trib_blob address;
    struct trib_blob arena;
    char settings_text[400];
};
_Static_assert(sizeof(struct hello) <= TRIB_BOOT_BLOB_MAX, "a hello fits a boot blob");

/* Exchanges `bytes` of every rank: through the launcher, or through another comm. */
struct exchange {
    trib_status_t (*allgather)(void *arg, const char *phase, const void *in,
                               size_t bytes, void *out);
    void *arg;
};

/* The sentence of this thread's last trib_init that failed: there is no comm to ask. */
static _Thread_local char init_error[512];

void trib_say_error(const char *text)
{
    snprintf(init_error, sizeof(init_error), "%s", text);
}

trib_status_t trib_comm_fail(struct trib_comm *comm, trib_status_t status,
                             const char *fmt, ...)
{
    char text[sizeof(comm->err.text)];
    va_list args;

    if (comm->engine.failed)
        return comm->engine.failed;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    trib_error_clear(&comm->err);
    return trib_fail(&comm->err, status, "%s", text);
}

void trib_comm_lock_slow(struct trib_comm *comm)
{
    while (atomic_exchange_explicit(&comm->lock, 1, memory_order_acquire))
        sched_yield();
}

static uint64_t machine_id(void)
{
    struct trib_process self;

    trib_process_self(&self);
    return trib_digest_seeded(&self.boot, sizeof(self.boot), self.space);
}

static trib_status_t say_hello(struct trib_comm *comm, struct hello *h)
{
    struct trib_engine *e = &comm->engine;
    const struct trib_transport_ops *ops = e->transport->ops;

    memset(h, 0, sizeof(*h));
    h->magic = TRIB_FRAME_MAGIC;
    h->version = HELLO_VERSION;
    h->settings = trib_config_digest(&comm->cfg);
    h->machine = machine_id();
    h->pid = getpid();
    if (sched_getaffinity(0, sizeof(h->cpus), &h->cpus))
        CPU_ZERO(&h->cpus);
    snprintf(h->library, sizeof(h->library), "%s", trib_version());
    if (gethostname(h->host, sizeof(h->host) - 1))
        snprintf(h->host, sizeof(h->host), "unknown");
    trib_config_same_text(&comm->cfg, h->settings_text, sizeof(h->settings_text));
    trib_status_t st = ops->address(e->transport, &h->address);
    return st == TRIB_OK ? ops->export_region(e->transport, e->arena.region, &h->arena)
                         : st;
}

/* The first setting in which two texts "name=value name=value" differ. */
static void first_difference(const char *a, const char *b, char *x, char *y,
                             size_t bytes)
{
    while (*a && *b) {
        size_t la = strcspn(a, " "), lb = strcspn(b, " ");
        if (la != lb || memcmp(a, b, la) != 0) {
            snprintf(x, bytes, "%.*s", (int)la, a);
            snprintf(y, bytes, "%.*s", (int)lb, b);
            return;
        }
        a += la + strspn(a + la, " ");
        b += lb + strspn(b + lb, " ");
    }
    snprintf(x, bytes, "%s", "other settings");
    snprintf(y, bytes, "%s", "these");
}

static trib_status_t check_hello(struct trib_comm *comm, const struct hello *first,
                                 const struct hello *h, int rank)
{
    char x[128], y[128];

    if (h->magic != first->magic || h->version != first->version ||
        strncmp(h->library, first->library, sizeof(h->library)) != 0)
        return trib_fail(&comm->err, TRIB_ERR_MISMATCH,
                         "rank %d (host %.63s, process %d) has Tributary %.11s, rank 0 "
                         "(host %.63s) has %.11s: install the same version",
                         rank, h->host, h->pid, h->library, first->host,
                         first->library);
    if (h->settings == first->settings)
        return TRIB_OK;
    first_difference(h->settings_text, first->settings_text, x, y, sizeof(x));
    return trib_fail(&comm->err, TRIB_ERR_MISMATCH,
                     "rank %d (host %.63s, process %d) has %s, rank 0 (host %.63s) has "
                     "%s: give all ranks the same TRIB_* settings",
                     rank, h->host, h->pid, x, first->host, y);
}

static trib_status_t learn_peers(struct trib_comm *comm, const struct hello *all)
{
    struct trib_engine *e = &comm->engine;
    int neighbours = 0;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    for (int r = 0; r < e->size; r++) {
        trib_status_t st = check_hello(comm, &all[0], &all[r], r);
        if (st != TRIB_OK)
            return st;
        struct trib_peer *p = &e->peers[r];
        memcpy(p->host, all[r].host, sizeof(p->host));
        p->host[sizeof(p->host) - 1] = 0;
        p->pid = all[r].pid;
        p->address = all[r].address;
        p->arena = all[r].arena;
        if (all[r].machine != all[e->rank].machine)
            continue;
        neighbours++;
        CPU_OR(&cpus, &cpus, &all[r].cpus);
    }
    e->oversubscribed = neighbours > CPU_COUNT(&cpus);
    return TRIB_OK;
}

/* Everything after rank and size are known. */
static trib_status_t meet(struct trib_comm *comm, int rank, int size,
                          const struct exchange *x)
{
    struct trib_engine *e = &comm->engine;
    struct trib_transport_opts opts = {.self = rank,
                                       .size = size,
                                       .params = "",
                                       .cfg = &comm->cfg,
                                       .log = &comm->log,
                                       .err = &comm->err};
    static const char *const isas[] = {"auto", "c", "avx2", "avx512"};

    e->cfg = &comm->cfg;
    e->log = &comm->log;
    e->err = &comm->err;
    e->rank = rank;
    e->size = size;
    comm->coded = strcmp(comm->cfg.codec, "none") != 0;
    e->kernels = trib_kernels_get(isas[comm->cfg.cpu]);
    struct trib_machine machine;
    trib_machine_read_sysfs("", &machine);
    comm->cache_bytes = machine.l3_bytes;
    if (!e->kernels)
        return trib_fail(&comm->err, TRIB_ERR_CONFIG,
                         "TRIB_CPU=%s: this CPU does not have it", isas[comm->cfg.cpu]);
    struct hello *all = malloc((size_t)size * sizeof(*all)), mine;
    if (!all)
        return trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks", size);
    trib_status_t st = trib_transport_open(comm->cfg.transport, &opts, &e->transport);
    if (st == TRIB_OK)
        st = trib_engine_open(e);
    if (st == TRIB_OK)
        st = say_hello(comm, &mine);
    if (st == TRIB_OK)
        st = x->allgather(x->arg, "connect", &mine, sizeof(mine), all);
    if (st == TRIB_OK)
        st = learn_peers(comm, all);
    if (st == TRIB_OK && size > 1)
        st = trib_engine_connect(e, (rank + 1) % size);
    free(all);
    return st;
}

static void write_trace(const struct trib_comm *comm)
{
    const struct trib_trace *trace = &comm->engine.trace;
    char path[TRIB_CONFIG_TEXT_BYTES + 48];

    if (!trace->count)
        return;
    snprintf(path, sizeof(path), "%s.%s.json", comm->cfg.trace_file, comm->label);
    FILE *f = fopen(path, "w");
    bool ok = f && trib_trace_dump(trace, f) == TRIB_OK;
    if (f && fclose(f))
        ok = false;
    if (!ok)
        trib_log(&comm->log, TRIB_LOG_WARN, "trace", "cannot write %s: %m", path);
}

static void dispose(struct trib_comm *comm)
{
    struct trib_engine *e = &comm->engine;

    trib_driver_stop(comm);
    trib_cache_clear(comm);
    write_trace(comm);
    trib_engine_close(e);
    if (e->transport)
        e->transport->ops->close(e->transport);
    free(comm);
}

static trib_status_t boot_allgather(void *arg, const char *phase, const void *in,
                                    size_t bytes, void *out)
{
    struct trib_boot *b = arg;

    return b->ops->allgather(b, phase, in, bytes, out);
}

static trib_status_t join(struct trib_comm *comm, const trib_opts_t *opts)
{
    const char *root = opts->root ? opts->root : comm->cfg.root;
    int rank = opts->rank_plus_1 ? opts->rank_plus_1 - 1 : comm->cfg.rank;
    int size = opts->ranks ? opts->ranks : comm->cfg.size;

    if (size == 0 && !*root && rank <= 0) {
        size = 1;
        rank = 0;
    }
    struct trib_boot_opts bopts = {.rank = rank,
                                   .size = size,
                                   .root = root,
                                   .cfg = &comm->cfg,
                                   .log = &comm->log,
                                   .err = &comm->err};
    struct trib_boot *boot;
    trib_status_t st = trib_boot_open(&bopts, &boot);
    if (st != TRIB_OK)
        return st;
    trib_log_set_rank(&comm->log, rank);
    snprintf(comm->label, sizeof(comm->label), "%d", rank);
    struct exchange x = {boot_allgather, boot};
    st = meet(comm, rank, size, &x);
    if (st != TRIB_OK)
        (boot->ops->fail)(boot, trib_error_text(&comm->err));
    boot->ops->close(boot);
    return st;
}

trib_status_t trib_init(const trib_opts_t *opts, trib_comm_t **comm_out)
{
    static const trib_opts_t defaults = TRIB_OPTS_INIT;

    init_error[0] = 0;
    if (!comm_out) {
        snprintf(init_error, sizeof(init_error), "trib_init: comm_out is NULL");
        return TRIB_ERR_INVALID;
    }
    *comm_out = NULL;
    opts = opts ? opts : &defaults;
    if (opts->size != sizeof(*opts)) {
        snprintf(init_error, sizeof(init_error),
                 "trib_opts_t.size is %zu, it must be %zu: begin with TRIB_OPTS_INIT",
                 opts->size, sizeof(*opts));
        return TRIB_ERR_INVALID;
    }
    struct trib_comm *comm = calloc(1, sizeof(*comm));
    if (!comm) {
        snprintf(init_error, sizeof(init_error), "no memory for a communicator");
        return TRIB_ERR_NO_MEMORY;
    }
    trib_log_init(&comm->log, TRIB_LOG_WARN, opts->log, opts->log_arg);
    trib_status_t st =
        trib_config_load(&comm->cfg, opts->config, &comm->log, &comm->err);
    if (st == TRIB_OK) {
        comm->log.level = (trib_log_level_t)comm->cfg.log;
        st = join(comm, opts);
    }
    if (st != TRIB_OK) {
        snprintf(init_error, sizeof(init_error), "%s", trib_error_text(&comm->err));
        dispose(comm);
        return st;
    }
    trib_error_clear(&comm->err);
    *comm_out = comm;
    return TRIB_OK;
}

static trib_status_t parent_allgather(void *arg, const char *phase, const void *in,
                                      size_t bytes, void *out)
{
    struct trib_plan *plan;
    trib_desc_t desc = TRIB_DESC_INIT;
    struct trib_comm *comm = arg;

    (void)phase;
    desc.count = bytes;
    desc.dtype = TRIB_I8;
    desc.codec = "none";
    trib_status_t st = trib_plan_make(comm, TRIB_ALLGATHER, &desc, false, &plan);
    if (st != TRIB_OK)
        return st;
    st = trib_plan_run(plan, in, out);
    trib_plan_destroy(plan);
    return st;
}

/* The parent's all-gather, of which a child sees its members' part. */
struct members {
    struct trib_comm *parent;
    const int *ranks; /* [size] of the child, in the parent */
    int size;
};

static trib_status_t member_allgather(void *arg, const char *phase, const void *in,
                                      size_t bytes, void *out)
{
    const struct members *m = arg;
    char *all = malloc((size_t)m->parent->engine.size * bytes);

    if (!all)
        return TRIB_ERR_NO_MEMORY;
    trib_status_t st = parent_allgather(m->parent, phase, in, bytes, all);
    for (int i = 0; st == TRIB_OK && i < m->size; i++)
        memcpy((char *)out + (size_t)i * bytes, all + (size_t)m->ranks[i] * bytes,
               bytes);
    free(all);
    return st;
}

struct split_key {
    int32_t color;
    int32_t key;
};

/* The members of my color, ordered by key, then by rank; returns my place or -1. */
static int find_members(const struct split_key *all, int size, int rank, int *ranks,
                        int *n_out)
{
    int n = 0, mine = -1;

    for (int r = 0; r < size && all[rank].color >= 0; r++) {
        if (all[r].color != all[rank].color)
            continue;
        int at = n++;
        while (at > 0 && all[ranks[at - 1]].key > all[r].key) {
            ranks[at] = ranks[at - 1];
            at--;
        }
        ranks[at] = r;
    }
    for (int i = 0; i < n; i++)
        if (ranks[i] == rank)
            mine = i;
    *n_out = n;
    return mine;
}

/* A rank of no color still takes part in the exchange of the others. */
static trib_status_t stand_by(struct trib_comm *parent)
{
    struct hello none = {0}, *all = malloc(sizeof(*all) * (size_t)parent->engine.size);
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    if (all)
        st = parent_allgather(parent, "connect", &none, sizeof(none), all);
    free(all);
    return st;
}

static trib_status_t make_child(struct trib_comm *parent, struct members *m, int rank,
                                trib_comm_t **comm_out)
{
    struct trib_comm *child = calloc(1, sizeof(*child));

    if (!child)
        return trib_comm_fail(parent, TRIB_ERR_NO_MEMORY, "no memory for a communicator");
    child->cfg = parent->cfg;
    child->log = parent->log;
    snprintf(child->label, sizeof(child->label), "%.12s-split%d", parent->label,
             ++parent->n_children);
    struct exchange x = {member_allgather, m};
    trib_status_t st = meet(child, rank, m->size, &x);
    if (st != TRIB_OK) {
        (void)trib_comm_fail(parent, st, "%s", trib_error_text(&child->err));
        dispose(child);
        return st;
    }
    *comm_out = child;
    return TRIB_OK;
}

trib_status_t trib_split(trib_comm_t *comm, int color, int key, trib_comm_t **comm_out)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!comm_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "trib_split: comm_out is NULL");
    *comm_out = NULL;
    int size = comm->engine.size, n;
    struct split_key mine = {color, key};
    struct split_key *all = calloc((size_t)size, sizeof(*all));
    int *ranks = calloc((size_t)size, sizeof(*ranks));
    trib_status_t st = TRIB_ERR_NO_MEMORY;
    if (all && ranks)
        st = parent_allgather(comm, "split", &mine, sizeof(mine), all);
    if (st == TRIB_OK) {
        int rank = find_members(all, size, comm->engine.rank, ranks, &n);
        struct members m = {comm, ranks, n};
        st = rank < 0 ? stand_by(comm) : make_child(comm, &m, rank, comm_out);
    }
    free(all);
    free(ranks);
    return st;
}

/* Nobody leaves before all others need it no more: the last operation is a barrier. */
static trib_status_t leave(struct trib_comm *comm)
{
    struct trib_plan *plan;
    trib_desc_t desc = TRIB_DESC_INIT;

    if (comm->engine.failed || comm->engine.size == 1)
        return TRIB_OK;
    desc.dtype = TRIB_I8;
    trib_status_t st = trib_plan_make(comm, TRIB_BARRIER, &desc, true, &plan);
    if (st == TRIB_OK)
        st = trib_plan_run(plan, NULL, NULL);
    trib_plan_destroy(plan);
    return st;
}

trib_status_t trib_free_comm(trib_comm_t *comm)
{
    if (!comm)
        return TRIB_OK;
    if (comm->n_plans)
        return trib_comm_fail(comm, TRIB_ERR_BUSY,
                              "%d plans are not freed: trib_plan_free comes first",
                              comm->n_plans);
    trib_status_t st = leave(comm);
    if (st != TRIB_OK)
        snprintf(init_error, sizeof(init_error), "%s", trib_error_text(&comm->err));
    dispose(comm);
    return st;
}

int trib_rank(const trib_comm_t *comm)
{
    return comm ? comm->engine.rank : -1;
}

int trib_size(const trib_comm_t *comm)
{
    return comm ? comm->engine.size : 0;
}

const char *trib_last_error(const trib_comm_t *comm)
{
    return comm ? trib_error_text(&comm->err) : init_error;
}

trib_status_t trib_progress(trib_comm_t *comm)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    if (trib_comm_try_lock(comm)) {
        if (trib_engine_progress(&comm->engine))
            trib_engine_awake(&comm->engine);
        else
            (void)trib_engine_look(&comm->engine);
        trib_comm_unlock(comm);
    }
    return comm->engine.failed;
}
