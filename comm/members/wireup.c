/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wireup: two exchanges in which each rank describes itself to all others, and the
 * checks that they agree.
 */
#include "comm/members/wireup.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/host.h"
#include "base/minmax.h"
#include "base/process.h"
#include "base/release.h"
#include "base/text.h"
#include "boot/boot.h"
#include "boot/launcher.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/core/locality.h"
#include "comm/core/slot_budget.h"
#include "comm/kinds/plan_blocks.h"
#include "comm/members/wireup_check.h"
#include "topo/cpus.h"
#include "topo/machine.h"
#include "transport/op_defaults.h"
#include "transport/open.h"

enum {
    CHUNK_OF_NETWORKS = 256 << 10,
    WINDOW_OF_NETWORKS = 8, /* for networks; an explicitly smaller window is kept */
};

/*
 * The second message, derived from the first ones. All ranks hold all second messages
 * and make the same decisions from them. So the choice of an algorithm may depend on
 * these messages and on nothing local.
 */
struct wireup_msg2 {
    uint32_t transport; /* the transport's caps() */
    uint16_t oversubscribed; /* its host has more ranks than cores */
    uint16_t traces; /* TRIB_TRACE is set */
    struct trib_locality_report locality;
    struct trib_calibration calibration;
    struct trib_arena_blob arena;
};
_Static_assert(sizeof(struct wireup_msg2) <= TRIB_BOOT_BLOB_MAX,
               "the second message fits a boot blob");

uint64_t trib_wireup_machine(void)
{
    struct trib_process self;

    trib_process_self(&self);
    return trib_digest_seeded(&self.boot, sizeof(self.boot), self.space);
}

static trib_status_t fill_msg1(struct trib_comm *comm,
                               const struct trib_pinned_limit *rooms,
                               struct wireup_msg1 *h)
{
    struct trib_engine *e = &comm->engine;
    const struct trib_transport_ops *ops = e->transport->ops;

    memset(h, 0, sizeof(*h));
    h->magic = TRIB_FRAME_MAGIC;
    h->version = TRIB_WIREUP_VERSION;
    h->settings = trib_config_digest(&comm->cfg);
    h->machine = trib_wireup_machine();
    for (int near = 0; near < 2; near++)
        h->room[near] = rooms[near].bytes;
    h->pid = getpid();
    h->chunk_given = comm->cfg.origin[TRIB_CONFIG_ROW_chunk] != TRIB_ORIGIN_DEFAULT;
    h->window_given = comm->cfg.origin[TRIB_CONFIG_ROW_window] != TRIB_ORIGIN_DEFAULT;
    h->round_trip_us = comm->met.round_trip_us;
    h->never_maps = ops->map == trib_no_map;
    trib_cpus_self(&h->cpus);
    trib_secret_mark(&comm->secret, h->secret_mark);
    memcpy(h->release, trib_release, sizeof(h->release));
    if (!trib_host_name(h->host))
        snprintf(h->host, sizeof(h->host), "unknown");
    trib_config_same_text(&comm->cfg, h->settings_text, sizeof(h->settings_text));
    return ops->address(e->transport, &h->address);
}

/* Return true if the rank runs on this host; transports may simulate several hosts.
 * Otherwise lower *mbps to the speed of the ports that reach it. */
static bool same_locality(const struct trib_engine *e, const struct wireup_msg1 *all,
                          int rank, uint32_t *mbps)
{
    struct trib_route route = {.name = "none"};

    if (rank == e->rank)
        return true;
    e->transport->ops->route(e->transport, rank, &route);
    if (all[rank].machine == all[e->rank].machine && !route.apart)
        return true;
    if (route.mbps < *mbps)
        *mbps = route.mbps;
    return false;
}

/* Return the number of ranks on this host. */
static int find_locality(const struct trib_comm *comm, const struct wireup_msg1 *all,
                         struct trib_locality_report *out)
{
    const struct trib_engine *e = &comm->engine;
    int ours = 0;

    out->first = e->rank;
    out->mbps = UINT32_MAX;
    for (int r = e->size - 1; r >= 0; r--) {
        if (!same_locality(e, all, r, &out->mbps))
            continue;
        out->first = r;
        ours++;
    }
    trib_locality_probe(comm, &all[e->rank].cpus.set, ours, out);
    return ours;
}

/* Return the cores of this host's ranks; *oversubscribed: more ranks than cores. */
static int count_cores(const struct trib_engine *e, const struct wireup_msg1 *all,
                       bool *oversubscribed)
{
    struct trib_cpus_sum sum = {.processes = 0};

    for (int r = 0; r < e->size; r++)
        if (all[r].machine == all[e->rank].machine)
            trib_cpus_add(&sum, &all[r].cpus);
    *oversubscribed = sum.processes > trib_cpus_count(&sum);
    return trib_cpus_count(&sum);
}

/* Return this rank's part of its control group's CPU quota, in cores. All ranks of the
 * group share the quota. */
static uint32_t own_quota(const struct trib_engine *e, const struct wireup_msg1 *all)
{
    const struct wireup_msg1 *self = &all[e->rank];
    int sharers = 0;

    for (int r = 0; r < e->size; r++)
        sharers += all[r].machine == self->machine && all[r].cpus.quota_milli &&
                   all[r].cpus.quota_group == self->cpus.quota_group;
    return trib_cpus_quota(&self->cpus, sharers ? sharers : 1);
}

static void learn_peers(struct trib_engine *e, const struct wireup_msg1 *all)
{
    assert(e->peers);
    for (int r = 0; r < e->size; r++) {
        struct trib_peer *p = &e->peers[r];
        memcpy(p->host, all[r].host, sizeof(p->host));
        p->host[sizeof(p->host) - 1] = 0;
        p->pid = all[r].pid;
        p->address = all[r].address;
    }
}

static bool same_host(const struct wireup_msg1 *all, int size)
{
    for (int r = 1; r < size; r++)
        if (all[r].machine != all[0].machine)
            return false;
    return true;
}

/* A rank whose registered memory is limited; ranks of a process share the limit. */
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

static int list_limited(const struct wireup_msg1 *all, int size, bool near,
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
 * Find the rank that can register least, and how much that is: SIZE_MAX if no rank has
 * a limit. Sorting finds ranks that share a process in a job of tens of thousands of
 * ranks.
 */
static trib_status_t least_room(struct trib_comm *comm, const struct wireup_msg1 *all,
                                size_t *least, int *whose)
{
    const int size = comm->engine.size;
    struct limited *list = malloc((size_t)size * sizeof(*list));

    assert(size > 0);
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
 * Return the default chunk. Without load/store reach a message costs more, most of all
 * through the kernel, so chunks are larger if memory is ample.
 */
static size_t usual_chunk(const struct trib_comm *comm, const struct wireup_msg1 *all,
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

/*
 * Use more slots for long round trips if memory is ample: enough encoded chunks to fill
 * the link, and no larger than needed for these. An explicit window is kept.
 * Aggregators keep theirs, too, because it limits a job's memory.
 */
static void widen_slots(struct trib_comm *comm, const struct wireup_msg1 *all,
                        size_t room)
{
    struct trib_config *cfg = &comm->cfg;
    const int size = comm->engine.size;
    const struct trib_slot_budget usual = {
        (uint32_t)comm->window_asked,
        comm->chunk_given ? cfg->chunk : trib_min(cfg->chunk, comm->chunk_asked)};
    bool given = comm->window_asked < WINDOW_OF_NETWORKS;

    comm->round_trip_us = 0;
    for (int r = 0; r < size && !comm->one_host; r++) {
        given |= all[r].window_given != 0;
        if (all[r].round_trip_us > comm->round_trip_us)
            comm->round_trip_us = all[r].round_trip_us;
    }
    if (comm->round_trip_us < TRIB_FAR_MIN_US)
        comm->round_trip_us = 0;
    const struct trib_slot_budget far =
        trib_slot_budget_far(usual, comm->round_trip_us, size);
    if (given || comm->aggregators || far.window <= usual.window ||
        cfg->window < comm->window_asked || !trib_slot_budget_is_ample(far, room, size))
        return;
    /* Elements without a codec keep the bytes in flight of other networks. With all
     * slots, 25 MiB took 270 ms instead of 230 at a round trip of 10 ms. */
    comm->engine.arena.raw_window = (uint32_t)trib_max(
        usual.window, usual.window * (size_t)CHUNK_OF_NETWORKS / far.chunk);
    cfg->window = (int)far.window;
    cfg->chunk = far.chunk;
}

/* Use fewer and shorter slots if there are many ranks on several hosts: algorithms with
 * links to all others would register gigabytes. Explicit settings are kept. */
static void limit_slots(struct trib_comm *comm, const struct wireup_msg1 *all)
{
    struct trib_config *cfg = &comm->cfg;
    const int size = comm->engine.size;
    const struct trib_slot_budget usual = {(uint32_t)cfg->window, cfg->chunk};
    const struct trib_slot_budget w = trib_slot_budget_many(usual, size);
    bool given = comm->chunk_given || comm->one_host;
    char text[24];

    for (int r = 0; r < size; r++)
        given |= all[r].window_given != 0;
    if (given || (w.window == usual.window && w.chunk == usual.chunk))
        return;
    cfg->window = (int)w.window;
    cfg->chunk = w.chunk;
    if (comm->engine.rank == 0)
        trib_log(&comm->log, TRIB_LOG_INFO, "core",
                 "%d ranks have %u slots of %s per peer, so that links to all others "
                 "register at most %zu MB (TRIB_CHUNK and TRIB_WINDOW replace these)",
                 size, w.window, trib_size_format(w.chunk, text),
                 TRIB_MANY_SLOTS_MAX / 1000000);
}

/* Fit the slots of all ranks to the rank with the least memory: both ends of a link
 * have the same slots, and a chunk is the same part of the vector everywhere. */
static trib_status_t fit_slot_budget(struct trib_comm *comm,
                                     const struct trib_pinned_limit *rooms,
                                     const struct wireup_msg1 *all)
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
    widen_slots(comm, all, least);
    limit_slots(comm, all);
    e->arena.per_link = trib_slot_budget_is_ample(
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
        "%s: all ranks have %u slot%s of %s instead of %u of %s per peer, which slows "
        "large vectors; %s",
        rooms[near].why, w.window, w.window == 1 ? "" : "s",
        trib_size_format(w.chunk, is), asked.window, trib_size_format(asked.chunk, was),
        rooms[near].cure);
    return TRIB_OK;
}

/* Warn once about an unusable file, and fall back to constants. */
static void read_calibration(struct trib_comm *comm, struct trib_calibration *out)
{
    struct trib_error err = {0};

    if (trib_calibration_read(comm->cfg.calibration, comm->cfg.transport,
                              !comm->one_host, "", &err, out) != TRIB_OK)
        trib_log(&comm->log, TRIB_LOG_WARN, "core", "TRIB_CALIBRATION: %s",
                 trib_error_text(&err));
}

/* Fill the second message: the transport's capabilities for these addresses, and where
 * peers write. */
static trib_status_t fill_msg2(struct trib_comm *comm, const struct wireup_msg1 *all,
                               struct wireup_msg2 *out)
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
    out->locality.cores = count_cores(e, all, &e->oversubscribed);
    e->quota = own_quota(e, all);
    const int ours = st == TRIB_OK ? find_locality(comm, all, &out->locality) : 1;
    out->locality.maps = ops->map != trib_no_map;
    out->oversubscribed = e->oversubscribed;
    out->traces = comm->cfg.trace > 0;
    read_calibration(comm, &out->calibration);
    /* Memory that all ranks map costs nothing until it is touched. */
    e->arena.on_billboard = (out->transport & TRIB_CAP_MAPS) != 0;
    e->arena.per_link &= !e->arena.on_billboard;
    /* The transports in use must reach the arena, so open it only now. */
    if (st == TRIB_OK)
        st = trib_engine_open(e);
    if (st != TRIB_OK)
        return st;
    /* The ranks of this host share its ports. */
    if (e->arena.grants.budget)
        e->arena.grants.budget = trib_max(1, e->arena.grants.budget / (size_t)ours);
    learn_peers(e, all);
    return trib_arena_export(&e->arena, &out->arena);
}

/* Agree on one calibration and one speed of ports, so all ranks use the same
 * figures. */
static void agree_on_network(struct trib_comm *comm, const struct wireup_msg2 *all)
{
    struct trib_calibration both[2] = {all[0].calibration};
    uint32_t mbps = UINT32_MAX;

    for (int r = 0; r < comm->engine.ranks; r++) {
        both[1] = all[r].calibration;
        both[0] = trib_calibration_agree(both, 2);
        if (all[r].locality.mbps < mbps)
            mbps = all[r].locality.mbps;
    }
    comm->calibration = both[0];
    comm->mbps = mbps == UINT32_MAX ? 0 : mbps; /* no rank has another host */
    if (both[0].known)
        comm->network = trib_calibration_cost(&both[0]);
    else if (comm->mbps)
        comm->network = trib_cost_of_ports(comm->mbps);
}

static trib_status_t take_all_msg2(struct trib_comm *comm,
                                   const struct wireup_msg2 *all)
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
        if (!all[r].arena.blob.len) /* a rank that could not continue sends zeros */
            st = trib_wireup_could_not_join(comm, r);
        transport[r] = all[r].transport;
        near[r] = all[r].locality;
        e->peers[r].arena = all[r].arena;
        comm->oversubscribed |= all[r].oversubscribed != 0;
        comm->any_traces |= all[r].traces != 0;
        comm->load_store &= (all[r].transport & TRIB_CAP_MAPS) != 0;
    }
    assert(st != TRIB_OK || !comm->locality);
    if (st == TRIB_OK) {
        e->transport->ops->agree(e->transport, transport);
        agree_on_network(comm, all);
    }
    if (st == TRIB_OK)
        st = comm->aggregators ? trib_locality_hosts(comm, near)
                               : trib_locality_make(comm, near);
    free(transport);
    free(near);
    return st;
}

size_t trib_wireup_bytes(int exchange)
{
    static const size_t bytes[] = {sizeof(struct wireup_msg1),
                                   sizeof(struct wireup_msg2), 0};

    _Static_assert(sizeof(bytes) / sizeof(bytes[0]) == TRIB_BOOT_EXCHANGES + 1,
                   "a boot knows how many exchanges there are");
    assert(exchange >= 0 && (size_t)exchange < sizeof(bytes) / sizeof(bytes[0]));
    return bytes[exchange];
}

static trib_status_t exchange(struct trib_comm *comm, const struct trib_exchange *x)
{
    size_t size = (size_t)comm->engine.size;
    struct wireup_msg1 *msgs1 = malloc(size * sizeof(*msgs1)), wireup_msg1;
    struct wireup_msg2 *all = malloc(size * sizeof(*all)), wireup_msg2;
    struct trib_pinned_limit rooms[2]; /* before any rank has registered memory */
    struct trib_transport *t = comm->engine.transport;
    trib_status_t st = TRIB_OK;

    if (!msgs1 || !all)
        st = trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %zu ranks", size);
    for (int near = 0; near < 2; near++)
        t->ops->pinned_limit(t, near, &rooms[near]);
    if (st == TRIB_OK)
        st = fill_msg1(comm, rooms, &wireup_msg1);
    if (st == TRIB_OK)
        st = x->allgather(x->arg, "connect", &wireup_msg1, sizeof(wireup_msg1), msgs1);
    if (st == TRIB_OK)
        st = trib_wireup_check(comm, msgs1);
    if (st == TRIB_OK)
        st = fit_slot_budget(comm, rooms, msgs1);
    if (st == TRIB_OK)
        st = fill_msg2(comm, msgs1, &wireup_msg2);
    if (st == TRIB_OK)
        st = x->allgather(x->arg, "settle", &wireup_msg2, sizeof(wireup_msg2), all);
    if (st == TRIB_OK)
        st = take_all_msg2(comm, all);
    free(msgs1);
    free(all);
    return st;
}

trib_status_t trib_settings_kernels(const struct trib_config *cfg,
                                    const struct trib_kernels **out,
                                    struct trib_error *err)
{
    static const char *const isas[] = {TRIB_AUTO, "c", "avx2", "avx512", "neon"};

    assert((size_t)cfg->cpu < sizeof(isas) / sizeof(isas[0]));
    *out = trib_kernels_get(isas[cfg->cpu]);
    return *out
               ? TRIB_OK
               : trib_fail(err, TRIB_ERR_CONFIG,
                           "TRIB_CPU=%s: this CPU does not support it", isas[cfg->cpu]);
}

trib_status_t trib_comm_wireup(struct trib_comm *comm, int rank, int size,
                               const struct trib_exchange *x)
{
    struct trib_engine *e = &comm->engine;
    struct trib_transport_opts opts = {.self = rank,
                                       .size = size,
                                       .place = trib_launch_place(rank),
                                       .params = "",
                                       .cfg = &comm->cfg,
                                       .log = &comm->log,
                                       .err = &comm->cause,
                                       .met = &comm->met,
                                       .guard = comm->guard,
                                       .secret = &comm->secret,
                                       .idle = comm->idle};
    assert(rank >= 0 && rank < size);
    assert(!comm->aggregators || comm->aggregators->n < size);
    e->cfg = &comm->cfg;
    e->log = &comm->log;
    e->err = &comm->cause;
    e->rank = rank;
    e->size = size;
    e->wait = trib_engine_wait;
    comm->kind_of = trib_plan_kind_of;
    if (comm->idle)
        trib_comm_give_way(comm);
    e->ranks = comm->aggregators ? size - comm->aggregators->n : size;
    if (!comm->chunk_asked)
        comm->chunk_asked = comm->cfg.chunk;
    if (!comm->window_asked)
        comm->window_asked = comm->cfg.window;
    comm->coded = strcmp(comm->cfg.codec, "none") != 0;
    trib_status_t st = trib_settings_kernels(&comm->cfg, &e->kernels, &comm->err);
    if (st != TRIB_OK)
        return st;
    struct trib_machine machine;
    trib_machine_read_sysfs("", &machine);
    comm->cache_bytes = machine.l3_bytes;
    st = trib_transport_open(comm->cfg.transport, &opts, &e->transport);
    if (st == TRIB_OK) {
        trib_comm_share_lock(comm);
        st = exchange(comm, x);
    }
    if (st == TRIB_OK && size > 1 && !comm->aggregators)
        st = trib_engine_connect(e, (rank + 1) % size, "trib_init");
    if (st == TRIB_OK && trib_idle_answer(comm->idle))
        st = trib_engine_give_up(e, "trib_init");
    if (st != TRIB_OK && !comm->engine.failed)
        return trib_fail(&comm->err, st, "%s", trib_comm_cause(comm, st));
    return st == TRIB_OK ? trib_engine_page_open(e, comm->label) : st;
}
