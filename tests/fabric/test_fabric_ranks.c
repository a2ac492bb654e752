/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many hosts in one process: each rank is a thread with a transport of its own, on the
 * devices of its own host. FABRIC_RANKS sets their number, up to 1024.
 */
#include "tests/harness/fake_verbs.h"
#include "tests/harness/tribtest.h"

#include <sys/resource.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/time.h"
#include "transport/multirail/multirail.h"
#include "transport/open.h"
#include "transport/verbs/verbs.h"

enum { RANKS = 64, RANKS_MAX = 1024, STACK = 512 << 10, HANDSHAKE_US = 2000 };

struct job {
    int size;
    int (*peers)(int self, int size, int *out); /* returns their number */
    const char *text; /* of the transport */
    bool slow; /* rank 0 spends HANDSHAKE_US on each connection */
    double seconds; /* that rank 0 took to connect */
    pthread_barrier_t barrier;
    struct trib_address *addresses; /* [size] */
    struct trib_blob *regions; /* [size] */
};

struct rank {
    struct job *job;
    int self, n_peers;
    int *peers; /* [n_peers] */
    struct trib_config cfg;
    struct trib_log log;
    struct trib_error err;
    struct trib_transport *t;
    uint64_t *mem; /* [size + 1]: from each rank; the own value */
    struct trib_region *region;
    struct trib_remote **remotes; /* [n_peers] */
};

#define DEMAND(rank, condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "rank %d: not so: %s: %s\n", (rank)->self, #condition, \
                    trib_error_text(&(rank)->err)); \
            abort(); \
        } \
    } while (0)

static int ring(int self, int size, int *out)
{
    out[0] = (self + 1) % size;
    out[1] = (self + size - 1) % size;
    return size > 2 ? 2 : 1;
}

static int tree(int self, int size, int *out)
{
    int n = 0;

    if (self > 0)
        out[n++] = (self - 1) / 2;
    for (int child = 2 * self + 1; child <= 2 * self + 2 && child < size; child++)
        out[n++] = child;
    return n;
}

static int all(int self, int size, int *out)
{
    int n = 0;

    for (int i = 1; i < size; i++)
        out[n++] = (self + i) % size;
    return n;
}

static int star(int self, int size, int *out)
{
    int n = 0;

    for (int i = 1; i < size && self == 0; i++)
        out[n++] = i;
    return n;
}

static int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

static int modify_slowly(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    if (attr->qp_state == IBV_QPS_RTR)
        usleep(HANDSHAKE_US);
    return modify_qp(qp, attr, mask);
}

static void be_slow(struct trib_transport *t)
{
    struct verbs *v = verbs_of(multirail_of(t)->inner[0]);

    modify_qp = v->api.ibv_modify_qp;
    v->api.ibv_modify_qp = modify_slowly;
}

static uint64_t value_of(int rank)
{
    return UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(rank + 1);
}

static void open_transport(struct rank *r)
{
    const struct trib_transport_opts opts = {
        .self = r->self,
        .size = r->job->size,
        .params = "",
        .cfg = &r->cfg,
        .log = &r->log,
        .err = &r->err,
    };

    fake_verbs_host(r->self);
    r->cfg.stop_timeout_ms = 60000; /* with this many threads, one may run late */
    trib_log_init(&r->log, TRIB_LOG_ERROR, NULL, NULL);
    DEMAND(r, trib_transport_open(r->job->text, &opts, &r->t) == TRIB_OK);
    DEMAND(r, r->t->ops->address(r->t, &r->job->addresses[r->self]) == TRIB_OK);
}

static void connect_peers(struct rank *r)
{
    const struct trib_transport_ops *ops = r->t->ops;
    struct trib_target *dials = calloc((size_t)r->n_peers + 1, sizeof(*dials));
    const uint64_t begin = trib_now_ns();
    void *mem;

    if (r->job->slow && r->self == 0)
        be_slow(r->t);
    for (int i = 0; i < r->n_peers; i++)
        dials[i] = (struct trib_target){r->peers[i], &r->job->addresses[r->peers[i]],
                                        false, 0};
    ops->connect_many(r->t, dials, r->n_peers);
    free(dials);
    for (int i = 0; i < r->n_peers; i++)
        DEMAND(r, ops->connect(r->t, r->peers[i], &r->job->addresses[r->peers[i]]) ==
                      TRIB_OK);
    if (r->self == 0)
        r->job->seconds = (double)(trib_now_ns() - begin) / 1e9;
    const size_t bytes = ((size_t)r->job->size + 1) * sizeof(*r->mem);
    DEMAND(r, ops->alloc(r->t, bytes, &mem, &r->region) == TRIB_OK);
    r->mem = mem;
    r->mem[r->job->size] = value_of(r->self);
    DEMAND(r,
           ops->export_region(r->t, r->region, &r->job->regions[r->self]) == TRIB_OK);
    pthread_barrier_wait(&r->job->barrier);
    for (int i = 0; i < r->n_peers; i++)
        DEMAND(r, ops->import_region(r->t, r->peers[i], &r->job->regions[r->peers[i]],
                                     &r->remotes[i]) == TRIB_OK);
}

/* Take one event, if there is one; returns whether it is an arrival. */
static int take(struct rank *r, unsigned *turns)
{
    struct trib_event event;

    if (r->t->ops->poll(r->t, &event, 1) == 0) {
        tribtest_rest(turns);
        return 0;
    }
    *turns = 0;
    DEMAND(r, event.kind == TRIB_EVENT_ARRIVED);
    DEMAND(r, r->mem[event.peer] == value_of(event.peer));
    return 1;
}

/* Write 8 bytes to each peer and wait for as many from each. */
static void exchange(struct rank *r)
{
    unsigned turns = 0;
    int arrived = 0;

    for (int i = 0; i < r->n_peers; i++) {
        const struct trib_write w = {
            .local = r->region,
            .local_off = (size_t)r->job->size * sizeof(*r->mem),
            .remote = r->remotes[i],
            .remote_off = (size_t)r->self * sizeof(*r->mem),
            .len = sizeof(*r->mem),
            .imm = 1,
        };
        trib_status_t status;
        while ((status = r->t->ops->write(r->t, r->peers[i], &w)) ==
               TRIB_ERR_NO_RESOURCE)
            arrived += take(r, &turns);
        DEMAND(r, status == TRIB_OK);
    }
    const int expected = r->job->peers == star ? r->self != 0 : r->n_peers;
    while (arrived < expected)
        arrived += take(r, &turns);
}

static void *run_rank(void *arg)
{
    struct rank *r = arg;

    open_transport(r);
    pthread_barrier_wait(&r->job->barrier);
    connect_peers(r);
    pthread_barrier_wait(&r->job->barrier);
    exchange(r);
    pthread_barrier_wait(&r->job->barrier);
    r->t->ops->close(r->t);
    return NULL;
}

static void run_job(struct job *job, struct rank *ranks)
{
    pthread_t *threads = calloc((size_t)job->size, sizeof(*threads));
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    for (int i = 0; i < job->size; i++) {
        struct rank *r = &ranks[i];
        r->job = job;
        r->self = i;
        r->peers = calloc((size_t)job->size + 2, sizeof(*r->peers));
        r->n_peers = job->peers(i, job->size, r->peers);
        r->remotes = calloc((size_t)r->n_peers, sizeof(struct trib_remote *));
        assert_int_equal(pthread_create(&threads[i], &attr, run_rank, r), 0);
    }
    for (int i = 0; i < job->size; i++) {
        pthread_join(threads[i], NULL);
        free(ranks[i].peers);
        free(ranks[i].remotes);
    }
    pthread_attr_destroy(&attr);
    free(threads);
}

static int ranks_wanted(void)
{
    const char *text = getenv("FABRIC_RANKS");
    const int n = text ? atoi(text) : RANKS;

    return n < 2 ? 2 : n > RANKS_MAX ? RANKS_MAX : n;
}

static void run_by(int (*peers)(int self, int size, int *out), const char *name,
                   const char *text)
{
    struct rlimit files;
    struct job job = {
        .size = ranks_wanted(), .peers = peers, .text = text, .slow = peers == star};
    struct fake_verbs_opts *fake = fake_verbs_reset();
    const uint64_t start = trib_now_ns();

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max; /* a rank needs a dozen */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    fake->hosts = job.size;
    job.addresses = calloc((size_t)job.size, sizeof(*job.addresses));
    job.regions = calloc((size_t)job.size, sizeof(*job.regions));
    pthread_barrier_init(&job.barrier, NULL, (unsigned)job.size);
    struct rank *ranks = calloc((size_t)job.size, sizeof(*ranks));
    run_job(&job, ranks);
    printf("# %s, %d ranks: %.2f s; rank 0 connected in %.2f s\n", name, job.size,
           (double)(trib_now_ns() - start) / 1e9, job.seconds);
    free(ranks);
    pthread_barrier_destroy(&job.barrier);
    free(job.addresses);
    free(job.regions);
}

static void run(int (*peers)(int self, int size, int *out), const char *name)
{
    run_by(peers, name, "verbs:rails=1");
}

/* Rank 0 connects to all others; each handshake takes 2 ms. */
TEST(test_star, clean, nothing_left)
{
    run_by(star, "star by librdmacm", "verbs:rails=1,connect=rdmacm");
    assert_int_equal(fake_verbs_mistakes() + fake_verbs_live(), 0);
    run_by(star, "star by GIDs", "verbs:rails=1,connect=gid");
}

TEST(test_ring, clean, nothing_left)
{
    run(ring, "ring");
}

TEST(test_tree, clean, nothing_left)
{
    run(tree, "tree");
}

TEST(test_all_to_all, clean, nothing_left)
{
    run(all, "all-to-all");
}
