/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of rank 0 to a node about its ranks: valid messages of ranks in another
 * process with a few fields edited, or with the message of one rank sent as another's.
 * The node exchanges with them, connects, accepts a plan, fails, and notifies them with
 * a write to each. It returns an error message or writes to the slots of the ranks, and
 * to no other memory, its own or theirs.
 *
 * The first byte selects the transport; then come edits (edits.h). A further value of
 * the first byte tests how a rank evaluates the facts of others: which ranks share its
 * host, and which one leads it. The second byte then selects the criterion.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "agg/client/agg_comm.h"
#include "base/error.h"
#include "boot/boot.h"
#include "comm/core/communicator.h"
#include "comm/core/locality.h"
#include "comm/members/wireup.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/nowhere.h"

unsigned fuzz_reached; /* nodes with links to all ranks, and groups of ranks */

enum {
    RANKS = 2,
    ALL = RANKS + 1,
    EXCHANGES = 2,
    WAYS = 2,
    EDITS_MOST = 32,
    PAGE = 4096,
    NEAR = 8
};
enum place { AT_HELLO, AT_FACTS, AT_WHOLE, AT_PLACES };

static const char *const configs[WAYS] = {"transport=shm", "transport=auto"};

/* Shared by the processes of the node and of the ranks; one for each transport. */
struct tenancy {
    pthread_barrier_t all;
    size_t bytes[EXCHANGES];
    uint8_t said[EXCHANGES][ALL][TRIB_BOOT_BLOB_MAX];
    _Alignas(PAGE) uint8_t untouched[PAGE]; /* of the process of the ranks; never
                                             * exported */
};

static struct tenancy *tenancies[WAYS];
static pid_t pids[WAYS];
/* Of the node; never exported. */
static _Alignas(PAGE) uint8_t untouched[PAGE];

/* The recorded rendezvous ---------------------------------------------------------- */

struct member {
    struct tenancy *t;
    int rank, exchange;
    const char *config;
    struct trib_comm *comm;
};

static trib_status_t meet(void *arg, const char *phase, const void *in, size_t bytes,
                          void *out)
{
    struct member *m = arg;

    (void)phase;
    need(m->exchange < EXCHANGES && bytes <= TRIB_BOOT_BLOB_MAX);
    if (m->rank == 0) /* all send the same number */
        m->t->bytes[m->exchange] = bytes;
    memcpy(m->t->said[m->exchange][m->rank], in, bytes);
    (void)pthread_barrier_wait(&m->t->all);
    for (size_t r = 0; r < ALL; r++)
        memcpy((uint8_t *)out + r * bytes, m->t->said[m->exchange][r], bytes);
    m->exchange++;
    (void)pthread_barrier_wait(&m->t->all);
    return TRIB_OK;
}

static trib_status_t join(int rank, const char *config, const struct trib_exchange *x,
                          struct trib_error *err, struct trib_comm **out)
{
    const struct trib_guard guard = {
        .serves = rank >= RANKS, .ranks = RANKS, .user = TRIB_GUARD_ANYBODY};
    const struct trib_agg_comm_opts opts = {.rank = rank,
                                            .ranks = RANKS,
                                            .aggregators = 1,
                                            .memory = 1 << 20,
                                            .guard = &guard};
    struct trib_config cfg;
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_ERROR, fuzz_drop_line, NULL);
    need(trib_config_load(&cfg, config, &log, err) == TRIB_OK);
    return trib_agg_comm_open(&cfg, &log, &opts, x, err, out);
}

static void *be_rank(void *arg)
{
    struct member *m = arg;
    struct trib_exchange x = {meet, m};
    struct trib_error err = {0};

    need(join(m->rank, m->config, &x, &err, &m->comm) == TRIB_OK);
    return NULL;
}

/* The ranks only hand out their shared memory on request. */
static void be_ranks(struct tenancy *t, const char *config)
{
    struct member m[RANKS];
    pthread_t threads[RANKS];
    struct trib_event events[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(0);
    for (int r = 0; r < RANKS; r++) {
        m[r] = (struct member){.t = t, .rank = r, .config = config};
        need(pthread_create(&threads[r], NULL, be_rank, &m[r]) == 0);
    }
    for (int r = 0; r < RANKS; r++)
        need(pthread_join(threads[r], NULL) == 0);
    for (;;) {
        for (int r = 0; r < RANKS; r++) {
            struct trib_transport *transport = m[r].comm->engine.transport;
            (void)transport->ops->poll(transport, events, 16);
        }
        usleep(500);
    }
}

static struct tenancy *settle(const char *config, pid_t *pid_out)
{
    struct tenancy *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attr;

    need(t != MAP_FAILED && pthread_barrierattr_init(&attr) == 0);
    (void)pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    need(pthread_barrier_init(&t->all, &attr, ALL) == 0);
    *pid_out = fork();
    need(*pid_out >= 0);
    if (*pid_out == 0)
        be_ranks(t, config);
    struct member node = {.t = t, .rank = RANKS, .config = config};
    (void)be_rank(&node);
    trib_agg_comm_dispose(node.comm);
    return t;
}

static void close_all(void)
{
    for (int i = 0; i < WAYS; i++) {
        if (!tenancies[i])
            continue;
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
        munmap(tenancies[i], sizeof(*tenancies[i]));
        tenancies[i] = NULL;
    }
}

/* The rendezvous of an input ------------------------------------------------------- */

struct told {
    const struct tenancy *t;
    struct edits edits; /* all of them, from the first */
    int exchange;
};

static trib_status_t hear(void *arg, const char *phase, const void *in, size_t bytes,
                          void *out)
{
    struct told *told = arg;
    const struct tenancy *t = told->t;
    uint8_t *all = out;
    struct edits edits = told->edits;
    struct edit e;

    (void)phase;
    need(told->exchange < EXCHANGES && bytes == t->bytes[told->exchange]);
    for (size_t r = 0; r < RANKS; r++)
        memcpy(all + r * bytes, t->said[told->exchange][r], bytes);
    memcpy(all + RANKS * bytes, in, bytes);
    for (int i = 0; i < EDITS_MOST && edits_next(&edits, &e); i++) {
        const int place = e.place % AT_PLACES, of = e.place / AT_PLACES % ALL;
        if (place == AT_WHOLE && e.offset % EXCHANGES == (unsigned)told->exchange)
            memmove(all + (size_t)of * bytes, all + e.value % ALL * bytes, bytes);
        else if (place == told->exchange)
            (void)edit_apply(&edits, &e, all + (size_t)of * bytes, bytes);
    }
    told->exchange++;
    return TRIB_OK;
}

/* Return true if every remote address lies within the memory that the peer has
 * exported. */
static bool has_room(struct trib_engine *e, const struct trib_link *l)
{
    const struct trib_transport_ops *ops = e->transport->ops;
    const size_t head = sizeof(struct trib_credits) +
                        2 * sizeof(struct trib_oob_notice) +
                        2 * sizeof(struct trib_slot_advert);
    const size_t places =
        l->small < e->arena.slot_bytes ? TRIB_BIG_SLOTS * e->arena.slot_bytes : 0;
    const size_t lanes = TRIB_LANES * (l->stride * e->arena.slots + places);
    size_t len = 0;

    if (!ops->map(e->transport, l->arena, &len))
        return true; /* the transport checks the written data */
    return l->head_off + head + (l->slots == l->arena ? lanes : 0) <= len;
}

static void use(struct trib_comm *node)
{
    static const char plan[] =
        "coll=allreduce count=5000 dtype=f32 op=sum root=0 feed=0 chunk=0 leaving=0 "
        "feedback=none quorum=all codec=none";
    struct trib_engine *e = &node->engine;
    int linked = 0;

    for (int r = 0; r < RANKS && !e->failed; r++) {
        if (trib_engine_connect(e, r, "its service") != TRIB_OK)
            break;
        need(has_room(e, &e->links[r]));
        linked++;
    }
    if (!e->failed && trib_agg_comm_announced(node, 0, plan) == TRIB_OK)
        for (int i = 0; i < 3; i++)
            (void)trib_agg_comm_step(node);
    fuzz_reached += linked == RANKS;
    if (!e->failed)
        trib_engine_fail(e, TRIB_ERR_ABORTED, "the fuzzer ends it");
    need(e->failure.text[0] != 0);
}

/* Check facts of eight ranks on two hosts. */
static void run_near(const char *by, struct edits *all)
{
    static struct trib_comm comm;
    static struct trib_peer peers[NEAR];
    struct trib_locality_report facts[NEAR];
    struct trib_locality_groups near;
    struct trib_shape shape = {.coll = TRIB_ALLREDUCE, .size = NEAR};
    struct trib_choice choice = {0};
    struct edit e;

    memset(&comm, 0, sizeof(comm));
    trib_comm_claim(&comm);
    trib_log_init(&comm.log, TRIB_LOG_ERROR, fuzz_drop_line, NULL);
    need(trib_config_load(&comm.cfg, by, &comm.log, &comm.err) == TRIB_OK);
    comm.engine.ranks = comm.engine.size = NEAR;
    comm.engine.peers = peers;
    for (int r = 0; r < NEAR; r++)
        facts[r] = (struct trib_locality_report){.first = r / 4 * 4,
                                                 .cores = 4,
                                                 .maps = 1,
                                                 .numa = r / 2 % 2,
                                                 .nic = "mlx5_0"};
    for (int i = 0; i < EDITS_MOST && edits_next(all, &e); i++)
        (void)edit_apply(all, &e, facts, sizeof(facts));
    if (trib_locality_make(&comm, facts) == TRIB_OK) {
        if (trib_locality_group(&comm, 1 << 20, &near, &shape) == TRIB_OK) {
            for (int r = 0; shape.groups && r < NEAR; r++)
                need(near.groups.of_rank[r] >= 0 &&
                     near.groups.of_rank[r] < near.groups.n);
            fuzz_reached++;
        }
        trib_locality_ungroup(&near);
        trib_locality_describe(&comm, &choice);
    } else {
        need(comm.err.text[0] != 0);
    }
    trib_locality_free(comm.locality);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const groups[] = {"groups=host", "groups=numa", "groups=nic",
                                         "groups=auto"};
    const int way = size ? data[0] % (WAYS + 1) : 0;
    struct trib_error err = {0};
    struct trib_comm *node;

    if (size > 1 && way == WAYS) {
        static const uint64_t numbers[] = {0,         1,          NEAR,
                                           INT32_MAX, UINT32_MAX, UINT64_MAX};
        struct edits all = {data + 2, size - 2, numbers,
                            sizeof(numbers) / sizeof(*numbers)};
        run_near(groups[data[1] % 4], &all);
        return 0;
    }
    if (size == 0 || way == WAYS)
        return 0;
    if (!tenancies[way]) {
        tenancies[way] = settle(configs[way], &pids[way]);
        atexit(close_all);
    }
    struct tenancy *t = tenancies[way];
    const uint64_t special[] = {(uintptr_t)untouched,
                                (uintptr_t)t->untouched,
                                (uint64_t)getpid(),
                                (uint64_t)pids[way],
                                1,
                                2,
                                3,
                                64,
                                4096,
                                8192,
                                UINT64_C(1) << 40,
                                INT64_MAX,
                                UINT64_MAX,
                                0};
    struct told told = {.t = t,
                        .edits = {.at = data + 1,
                                  .left = size - 1,
                                  .special = special,
                                  .n_special = sizeof(special) / sizeof(*special)}};
    const struct trib_exchange x = {hear, &told};
    if (join(RANKS, configs[way], &x, &err, &node) == TRIB_OK) {
        use(node);
        trib_agg_comm_dispose(node);
    } else {
        need(err.text[0] != 0);
    }
    for (size_t i = 0; i < PAGE; i++)
        need(!untouched[i] && !t->untouched[i]);
    need(waitpid(pids[way], NULL, WNOHANG) == 0);
    return 0;
}
