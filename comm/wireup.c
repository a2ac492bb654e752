/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How ranks get to know each other: what each tells all others, and what must agree.
 */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/host.h"
#include "base/process.h"
#include "base/text.h"
#include "boot/boot.h"
#include "comm/communicator.h"
#include "comm/locality.h"
#include "comm/slot_budget.h"
#include "topo/cpus.h"
#include "topo/machine.h"

#define HELLO_VERSION 8

enum { CHUNK_OF_NETWORKS = 256 << 10 };

/* What every rank tells every other at the start: who it is, what it must agree on … */
struct hello {
    uint32_t magic;   /* TRIB_FRAME_MAGIC */
    uint32_t version; /* HELLO_VERSION */
    uint64_t settings;
    uint64_t machine; /* boot id and pid namespace: equal on one host */
    struct trib_cpus cpus; /* where this rank may run, and how much */
    uint64_t room[2]; /* bytes it can register; [1]: where all ranks are on one host */
    int32_t pid;
    uint16_t chunk_given; /* TRIB_CHUNK is not the default */
    uint16_t never_maps;  /* its transport has no load/store reach to anybody */
    uint8_t secret_mark[8]; /* trib_secret_mark */
    char library[12];
    char host[TRIB_HOST_BYTES];
    struct trib_address address;
    char settings_text[400];
};
_Static_assert(sizeof(struct hello) <= TRIB_BOOT_BLOB_MAX, "a hello fits a boot blob");

/* … and then, what it has made of that. The facts are the same for all ranks once each
 * has all of them: the choice of an algorithm may rest on those, and on nothing
 * local. */
struct facts {
    uint32_t transport;      /* of survey() */
    uint32_t oversubscribed; /* the ranks of its host have fewer cores than they are */
    struct trib_locality_report near;
    struct trib_arena_blob arena;
};
_Static_assert(sizeof(struct facts) <= TRIB_BOOT_BLOB_MAX, "facts fit a boot blob");

uint64_t trib_wireup_machine(void)
{
    struct trib_process self;

    trib_process_self(&self);
    return trib_digest_seeded(&self.boot, sizeof(self.boot), self.space);
}

static trib_status_t say_hello(struct trib_comm *comm,
                               const struct trib_pinned_limit *rooms, struct hello *h)
{
    struct trib_engine *e = &comm->engine;
    const struct trib_transport_ops *ops = e->transport->ops;

    memset(h, 0, sizeof(*h));
    h->magic = TRIB_FRAME_MAGIC;
    h->version = HELLO_VERSION;
    h->settings = trib_config_digest(&comm->cfg);
    h->machine = trib_wireup_machine();
    for (int near = 0; near < 2; near++)
        h->room[near] = rooms[near].bytes;
    h->pid = getpid();
    h->chunk_given = comm->cfg.origin[TRIB_CONFIG_ROW_chunk] != TRIB_ORIGIN_DEFAULT;
    h->never_maps = ops->map == trib_no_map;
    trib_cpus_self(&h->cpus);
    trib_secret_mark(&comm->secret, h->secret_mark);
    snprintf(h->library, sizeof(h->library), "%s", trib_version());
    if (!trib_host_name(h->host))
        snprintf(h->host, sizeof(h->host), "unknown");
    trib_config_same_text(&comm->cfg, h->settings_text, sizeof(h->settings_text));
    return ops->address(e->transport, &h->address);
}

void trib_wireup_difference(const char *a, const char *b, char *x, char *y,
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

static trib_status_t could_not_join(struct trib_comm *comm, int rank)
{
    return trib_fail(&comm->err, TRIB_ERR_BOOT,
                     "rank %d could not join; its own trib_last_error says why", rank);
}

static trib_status_t check_hello(struct trib_comm *comm, const struct hello *first,
                                 const struct hello *h, int rank)
{
    char x[128], y[128];

    if (!h->magic) /* it had nothing to say but that */
        return could_not_join(comm, rank);
    if (h->magic != first->magic || h->version != first->version ||
        strncmp(h->library, first->library, sizeof(h->library)) != 0)
        return trib_fail(&comm->err, TRIB_ERR_MISMATCH,
                         "rank %d (host %.64s, process %d) has Tributary %.11s, rank 0 "
                         "(host %.64s) has %.11s: install the same version",
                         rank, h->host, h->pid, h->library, first->host,
                         first->library);
    if (memcmp(h->secret_mark, first->secret_mark, sizeof(h->secret_mark)) != 0)
        return trib_fail(
            &comm->err, TRIB_ERR_MISMATCH,
            "rank %d (host %.64s, process %d) has another secret than rank 0 (host "
            "%.64s), or only one of them has one: give all ranks the same TRIB_KEY, "
            "or none, and all hosts libsodium",
            rank, h->host, h->pid, first->host);
    if (h->settings == first->settings)
        return TRIB_OK;
    trib_wireup_difference(h->settings_text, first->settings_text, x, y, sizeof(x));
    return trib_fail(&comm->err, TRIB_ERR_MISMATCH,
                     "rank %d (host %.64s, process %d) has %s, rank 0 (host %.64s) has "
                     "%s: give all ranks the same TRIB_* settings",
                     rank, h->host, h->pid, x, first->host, y);
}

/* What peers send as text may have no end. */
static void end_texts(struct hello *h)
{
    h->library[sizeof(h->library) - 1] = 0;
    h->host[sizeof(h->host) - 1] = 0;
    h->settings_text[sizeof(h->settings_text) - 1] = 0;
}

static trib_status_t check_hellos(struct trib_comm *comm, struct hello *all)
{
    trib_status_t st = TRIB_OK;

    for (int r = 0; r < comm->engine.size; r++)
        end_texts(&all[r]);
    for (int r = 0; r < comm->engine.size && st == TRIB_OK; r++)
        st = check_hello(comm, &all[0], &all[r], r);
    return st;
}

/* Of this host; a transport may make several out of one. */
static bool is_near(const struct trib_engine *e, const struct hello *all, int rank)
{
    struct trib_route route = {.name = "none"};

    if (rank == e->rank)
        return true;
    if (all[rank].machine != all[e->rank].machine)
        return false;
    e->transport->ops->route(e->transport, rank, &route);
    return !route.apart;
}

static void find_near(const struct trib_comm *comm, const struct hello *all,
                      struct trib_locality_report *out)
{
    const struct trib_engine *e = &comm->engine;
    int ours = 0;

    out->first = e->rank;
    for (int r = e->size - 1; r >= 0; r--) {
        if (!is_near(e, all, r))
            continue;
        out->first = r;
        ours++;
    }
    trib_locality_probe(comm, &all[e->rank].cpus.set, ours, out);
}

/* How many cores the ranks of this host have; *oversubscribed: they are more. */
static int count_cores(const struct trib_engine *e, const struct hello *all,
                       bool *oversubscribed)
{
    struct trib_cpus_sum sum = {.processes = 0};

    for (int r = 0; r < e->size; r++)
        if (all[r].machine == all[e->rank].machine)
            trib_cpus_add(&sum, &all[r].cpus);
    *oversubscribed = sum.processes > trib_cpus_count(&sum);
    return trib_cpus_count(&sum);
}

static void learn_peers(struct trib_engine *e, const struct hello *all)
{
    for (int r = 0; r < e->size; r++) {
        struct trib_peer *p = &e->peers[r];
        memcpy(p->host, all[r].host, sizeof(p->host));
        p->host[sizeof(p->host) - 1] = 0;
        p->pid = all[r].pid;
        p->address = all[r].address;
    }
}

static bool same_host(const struct hello *all, int size)
{
    for (int r = 1; r < size; r++)
        if (all[r].machine != all[0].machine)
            return false;
    return true;
}

/* A rank whose memory to register has a limit, which all ranks of its process share. */
struct limited {
    uint64_t machine;
    uint64_t room;
    int pid;
    int rank;
};

static int compare_processes(const void *left, const void *right)
{
    const struct limited *a = left, *b = right;

    if (a->machine != b->machine)
        return a->machine < b->machine ? -1 : 1;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int list_limited(const struct hello *all, int size, bool near,
                        struct limited *out)
{
    int n = 0;

    for (int r = 0; r < size; r++)
        if (all[r].room[near] < SIZE_MAX)
            out[n++] =
                (struct limited){all[r].machine, all[r].room[near], all[r].pid, r};
    return n;
}

/*
 * The rank that can register least, and how much that is: SIZE_MAX where nobody has a
 * limit. A sort finds who shares a process: a job may have tens of thousands of ranks.
 */
static trib_status_t least_room(struct trib_comm *comm, const struct hello *all,
                                size_t *least, int *whose)
{
    const int size = comm->engine.size;
    struct limited *list = malloc((size_t)size * sizeof(*list));

    *least = SIZE_MAX;
    *whose = 0;
    if (!list)
        return trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks",
                         size);
    const int n = list_limited(all, size, comm->one_host, list);
    qsort(list, (size_t)n, sizeof(*list), compare_processes);
    for (int first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && list[end].machine == list[first].machine &&
                              list[end].pid == list[first].pid;)
            end++;
        for (int i = first; i < end; i++) {
            const size_t share = (size_t)(list[i].room / (uint64_t)(end - first));
            if (share > *least || (share == *least && list[i].rank > *whose))
                continue;
            *least = share;
            *whose = list[i].rank;
        }
    }
    free(list);
    return TRIB_OK;
}

/*
 * Without load/store reach a message costs more, and most where it is the kernel's:
 * larger chunks. Only where there is memory in plenty, and nobody has asked for chunks
 * of a size.
 */
static size_t usual_chunk(const struct trib_comm *comm, const struct hello *all,
                          bool near, size_t room)
{
    const struct trib_engine *e = &comm->engine;
    size_t chunk =
        comm->cfg.chunk < comm->chunk_asked ? comm->cfg.chunk : comm->chunk_asked;
    struct trib_slot_budget far = {(uint32_t)comm->cfg.window, CHUNK_OF_NETWORKS};
    bool maps = near;

    for (int r = 0; r < e->size; r++)
        maps &= !all[r].never_maps;
    if (comm->chunk_given)
        return comm->cfg.chunk;
    if (maps || chunk < comm->chunk_asked ||
        !trib_slot_budget_is_ample(far, room, e->size))
        return chunk;
    return far.chunk;
}

/* All ranks take the slots for which the one with the least room has room: both ends of
 * an edge have the same, and a chunk is the same piece of the vector everywhere. */
static trib_status_t fit_window(struct trib_comm *comm,
                                const struct trib_pinned_limit *rooms,
                                const struct hello *all)
{
    struct trib_engine *e = &comm->engine;
    struct trib_config *cfg = &comm->cfg;
    bool near = same_host(all, e->size);
    size_t least;
    int whose;

    comm->one_host = near;
    trib_status_t st = least_room(comm, all, &least, &whose);
    if (st != TRIB_OK)
        return st;
    for (int r = 0; r < e->size; r++)
        comm->chunk_given |= all[r].chunk_given != 0;
    cfg->chunk = usual_chunk(comm, all, near, least);
    e->arena.per_edge = trib_slot_budget_is_ample(
        (struct trib_slot_budget){(uint32_t)cfg->window, cfg->chunk}, least, e->size);
    if (e->size == 1 || least == SIZE_MAX)
        return TRIB_OK;
    struct trib_slot_budget asked = {(uint32_t)cfg->window, cfg->chunk};
    struct trib_slot_budget w = trib_slot_budget_fit(asked, least, e->size);
    cfg->window = (int)w.window;
    cfg->chunk = w.chunk;
    if (whose != e->rank || (w.window == asked.window && w.chunk == asked.chunk))
        return TRIB_OK;
    char was[24], is[24];
    trib_log(
        &comm->log, TRIB_LOG_WARN, "core",
        "%s: all ranks have %u slot%s of %s instead of %u of %s for each peer, which "
        "slows large vectors; %s",
        rooms[near].why, w.window, w.window == 1 ? "" : "s",
        trib_size_format(w.chunk, is), asked.window, trib_size_format(asked.chunk, was),
        rooms[near].cure);
    return TRIB_OK;
}

/* What this rank's transport makes of all addresses, and where peers write to. */
static trib_status_t find_facts(struct trib_comm *comm, const struct hello *all,
                                struct facts *out)
{
    struct trib_engine *e = &comm->engine;
    const struct trib_transport_ops *ops = e->transport->ops;
    struct trib_address *addresses = malloc((size_t)e->size * sizeof(*addresses));

    memset(out, 0, sizeof(*out));
    if (!addresses)
        return trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks",
                         e->size);
    for (int r = 0; r < e->size; r++)
        addresses[r] = all[r].address;
    trib_status_t st = ops->caps(e->transport, addresses, &out->transport);
    free(addresses);
    out->near.cores = count_cores(e, all, &e->oversubscribed);
    if (st == TRIB_OK)
        find_near(comm, all, &out->near);
    out->near.maps = ops->map != trib_no_map;
    out->oversubscribed = e->oversubscribed;
    /* Memory that all map costs nothing before it is touched. */
    if (out->transport & TRIB_CAP_MAPS)
        e->arena.per_edge = false;
    /* Only now: the arena lies where the transports that are needed reach it. */
    if (st == TRIB_OK)
        st = trib_engine_open(e);
    if (st != TRIB_OK)
        return st;
    learn_peers(e, all);
    return trib_arena_export(&e->arena, &out->arena);
}

static trib_status_t settle(struct trib_comm *comm, const struct facts *all)
{
    struct trib_engine *e = &comm->engine;
    uint32_t *transport = malloc((size_t)e->size * sizeof(*transport));
    struct trib_locality_report *near = malloc((size_t)e->size * sizeof(*near));
    trib_status_t st = TRIB_OK;

    if (!transport || !near)
        st = trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks",
                       e->size);
    comm->load_store = true;
    for (int r = 0; st == TRIB_OK && r < e->size; r++) {
        if (!all[r].arena.blob.len) /* it had nothing to say but that */
            st = could_not_join(comm, r);
        transport[r] = all[r].transport;
        near[r] = all[r].near;
        e->peers[r].arena = all[r].arena;
        comm->oversubscribed |= all[r].oversubscribed != 0;
        comm->load_store &= (all[r].transport & TRIB_CAP_MAPS) != 0;
    }
    if (st == TRIB_OK)
        e->transport->ops->agree(e->transport, transport);
    if (st == TRIB_OK && !comm->aggregators)
        st = trib_locality_make(comm, near);
    free(transport);
    free(near);
    return st;
}

size_t trib_wireup_bytes(int exchange)
{
    static const size_t bytes[] = {sizeof(struct hello), sizeof(struct facts), 0};

    return bytes[exchange];
}

static trib_status_t exchange(struct trib_comm *comm, const struct trib_exchange *x)
{
    size_t size = (size_t)comm->engine.size;
    struct hello *hellos = malloc(size * sizeof(*hellos)), hello;
    struct facts *all = malloc(size * sizeof(*all)), facts;
    struct trib_pinned_limit rooms[2]; /* before any rank has registered something */
    struct trib_transport *t = comm->engine.transport;
    trib_status_t st = TRIB_OK;

    if (!hellos || !all)
        st = trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %zu ranks", size);
    for (int near = 0; near < 2; near++)
        t->ops->pinned_limit(t, near, &rooms[near]);
    if (st == TRIB_OK)
        st = say_hello(comm, rooms, &hello);
    if (st == TRIB_OK)
        st = x->allgather(x->arg, "connect", &hello, sizeof(hello), hellos);
    if (st == TRIB_OK)
        st = check_hellos(comm, hellos);
    if (st == TRIB_OK)
        st = fit_window(comm, rooms, hellos);
    if (st == TRIB_OK)
        st = find_facts(comm, hellos, &facts);
    if (st == TRIB_OK)
        st = x->allgather(x->arg, "settle", &facts, sizeof(facts), all);
    if (st == TRIB_OK)
        st = settle(comm, all);
    free(hellos);
    free(all);
    return st;
}

/* Everything after rank and size are known. */
trib_status_t trib_comm_wireup(struct trib_comm *comm, int rank, int size,
                               const struct trib_exchange *x)
{
    struct trib_engine *e = &comm->engine;
    struct trib_transport_opts opts = {.self = rank,
                                       .size = size,
                                       .params = "",
                                       .cfg = &comm->cfg,
                                       .log = &comm->log,
                                       .err = &comm->cause,
                                       .met = &comm->met,
                                       .guard = comm->guard,
                                       .secret = &comm->secret};
    e->cfg = &comm->cfg;
    e->log = &comm->log;
    e->err = &comm->cause;
    e->rank = rank;
    e->size = size;
    e->ranks = comm->aggregators ? size - comm->aggregators->n : size;
    if (!comm->chunk_asked)
        comm->chunk_asked = comm->cfg.chunk;
    comm->coded = strcmp(comm->cfg.codec, "none") != 0;
    trib_status_t st = trib_settings_kernels(&comm->cfg, &e->kernels, &comm->err);
    if (st != TRIB_OK)
        return st;
    struct trib_machine machine;
    trib_machine_read_sysfs("", &machine);
    comm->cache_bytes = machine.l3_bytes;
    st = trib_transport_open(comm->cfg.transport, &opts, &e->transport);
    if (st == TRIB_OK)
        st = exchange(comm, x);
    if (st == TRIB_OK && size > 1 && !comm->aggregators)
        st = trib_engine_connect(e, (rank + 1) % size, "trib_init");
    if (st == TRIB_OK || comm->engine.failed)
        return st;
    return trib_fail(&comm->err, st, "%s", trib_comm_cause(comm, st));
}
