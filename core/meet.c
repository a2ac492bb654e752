/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How ranks get to know each other: what each tells all others, and what must agree.
 */
#include "core/comm.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/process.h"
#include "boot/boot.h"
#include "topo/machine.h"

#define HELLO_VERSION 2

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
    struct trib_address address;
    struct trib_blob arena;
    char settings_text[400];
};
_Static_assert(sizeof(struct hello) <= TRIB_BOOT_BLOB_MAX, "a hello fits a boot blob");

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

/* The text of the transport, "auto" made "tcp" where the ranks are not all of one host.
 * All ranks ask, whatever their setting, or those that differ could not be told so. */
static trib_status_t choose_transport(struct trib_comm *comm, int size,
                                      const struct trib_exchange *x, char *text_out,
                                      size_t bytes)
{
    const char *wanted = comm->cfg.transport;
    bool open = strcmp(wanted, "auto") == 0 || strncmp(wanted, "auto+", 5) == 0;
    uint64_t *all = malloc((size_t)size * sizeof(*all)), mine = machine_id();
    bool together = true;

    if (!all)
        return trib_fail(&comm->err, TRIB_ERR_NO_MEMORY, "no memory for %d ranks", size);
    trib_status_t st = x->allgather(x->arg, "host", &mine, sizeof(mine), all);
    for (int r = 0; st == TRIB_OK && r < size; r++)
        together = together && all[r] == mine;
    free(all);
    if (open && !together)
        snprintf(text_out, bytes, "tcp%s", wanted + strlen("auto"));
    else
        snprintf(text_out, bytes, "%s", wanted);
    return st;
}

size_t trib_meet_bytes(int exchange)
{
    static const size_t bytes[] = {sizeof(uint64_t), sizeof(struct hello), 0};

    return bytes[exchange];
}

/* Everything after rank and size are known. */
trib_status_t trib_comm_meet(struct trib_comm *comm, int rank, int size,
                             const struct trib_exchange *x)
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
    char transport[sizeof(comm->cfg.transport)];
    trib_status_t st = choose_transport(comm, size, x, transport, sizeof(transport));
    if (st == TRIB_OK)
        st = trib_transport_open(transport, &opts, &e->transport);
    if (st == TRIB_OK)
        st = trib_engine_open(e);
    if (st == TRIB_OK)
        st = say_hello(comm, &mine);
    if (st == TRIB_OK)
        st = x->allgather(x->arg, "connect", &mine, sizeof(mine), all);
    if (st == TRIB_OK)
        st = learn_peers(comm, all);
    if (st == TRIB_OK && size > 1)
        st = trib_engine_connect(e, (rank + 1) % size, "trib_init");
    free(all);
    return st;
}
