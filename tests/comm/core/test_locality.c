/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks know which ranks share their host, and sum accordingly. */
#include "comm/core/communicator.h"
#include "comm/core/locality.h"
#include "comm/core/plan_struct.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"
#include "tests/topo/data.h"
#include "topo/layout.h"

enum { COUNT = 5000 };

/* The expected groups of the job: consecutive or alternating ranks. */
struct expected {
    int per_host; /* or per group */
    int leaders;
    const char *kind; /* NULL: host */
    int in_turn;      /* number of groups with alternating ranks; 0: consecutive */
    bool bound;       /* each rank to one of two cores, alternating */
};

static int group_of(const struct expected *x, int rank)
{
    return x->in_turn ? rank % x->in_turn : rank / x->per_host;
}

static void check_groups(struct ranks_self *self, const struct expected *x)
{
    struct trib_locality_groups near;
    struct trib_shape shape = {0};
    int size = trib_size(self->comm);
    int n = x->in_turn ? x->in_turn : (size + x->per_host - 1) / x->per_host;

    ranks_ok(self, trib_locality_group(self->comm, COUNT * sizeof(int), &near, &shape));
    if (!shape.groups || shape.groups->n != n || shape.groups->leaders != x->leaders)
        ranks_die(self, "%d groups of %d leaders, not %d of %d",
                  shape.groups ? shape.groups->n : 0,
                  shape.groups ? shape.groups->leaders : 0, n, x->leaders);
    for (int r = 0; r < size; r++)
        if (shape.groups->of_rank[r] != group_of(x, r))
            ranks_die(self, "rank %d is of group %d", r, shape.groups->of_rank[r]);
    for (int r = 0; r < size && !x->kind; r++)
        if (trib_host_of(self->comm, r) != group_of(x, r))
            ranks_die(self, "rank %d is of host %d", r, trib_host_of(self->comm, r));
    ranks_assert(self, trib_host_of(self->comm, size) == -1);
    trib_locality_ungroup(&near);
}

static void check_said(struct ranks_self *self, const struct expected *x)
{
    trib_plan_t *plan;
    char text[1000], expected[80];
    int v[COUNT];
    trib_desc_t d = sized(trib_desc_t, .recv = v, .count = COUNT, .dtype = TRIB_I32);

    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    snprintf(expected, sizeof(expected), "; leaders per host: %d\n", x->leaders);
    if (x->kind)
        snprintf(expected, sizeof(expected),
                 "; %d group%s by %s, leaders per group: %d\n", x->in_turn,
                 x->in_turn == 1 ? "" : "s", x->kind, x->leaders);
    if (!strstr(text, expected))
        ranks_die(self, "explained is: %s", text);
    ranks_ok(self, trib_plan_free(plan));
}

static int sum(struct ranks_self *self)
{
    const struct expected *x = self->arg;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(self->rank % 2, &cpus);
    if (x->bound && sched_setaffinity(0, sizeof(cpus), &cpus))
        ranks_die(self, "it cannot be bound: %m");
    ranks_ok(self, trib_init(&self->opts, &self->comm));
    const int size = trib_size(self->comm);
    int v[COUNT];
    check_groups(self, x);
    check_said(self, x);
    for (int i = 0; i < COUNT; i++)
        v[i] = i * (self->rank + 1);
    ranks_ok(self, trib_allreduce(self->comm, v, v, COUNT, TRIB_I32, TRIB_SUM));
    for (int i = 0; i < COUNT; i++)
        if (v[i] != i * size * (size + 1) / 2)
            ranks_die(self, "element %d is %d", i, v[i]);
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

static struct ranks_job job_of(int size, const char *settings, struct expected *x,
                               char config[200])
{
    snprintf(config, 200, "algorithm=hierarchical;%s", settings);
    return (struct ranks_job){
        .size = size, .fn = sum, .arg = x, .config = config, .bare = true};
}

static void run(int size, const char *settings, struct expected x)
{
    char config[200];
    struct ranks_job job = job_of(size, settings, &x, config);

    assert_int_equal(ranks_run(&job), 0);
}

/* Reports of ranks bound to blocks of cores on hosts like octo, in reverse order on the
 * second host. */
static struct trib_locality_report *octo_facts(int size, int per_host)
{
    struct trib_locality_report *facts = calloc((size_t)size, sizeof(*facts));
    struct trib_layout layout;
    const trib_status_t st =
        trib_layout_read(data_path("octo.xml").text, NULL, &layout);

    if (st == TRIB_ERR_UNSUPPORTED)
        tribtest_skip("built without hwloc");
    assert_status(st, TRIB_OK);
    assert_non_null(facts);
    for (int r = 0; r < size; r++) {
        const int block = r < per_host ? r : size - 1 - r, cores = 64 / per_host;
        struct trib_rank_place place;
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        for (int i = 0; i < cores; i++)
            CPU_SET(cores * block + i, &cpus);
        trib_layout_bound(&layout, &cpus, &place);
        facts[r] = (struct trib_locality_report){.first = r / per_host * per_host,
                                                 .cores = 64,
                                                 .package = place.package,
                                                 .numa = place.numa,
                                                 .l3 = place.l3,
                                                 .maps = 1};
        memcpy(facts[r].nic, place.nic, sizeof(place.nic));
    }
    trib_layout_free(&layout);
    return facts;
}

/* Two hosts of two packages with four devices each. Leaders are near different
 * devices. */
TEST(test_devices)
{
    enum { PER_HOST = 8, SIZE = 2 * PER_HOST };
    struct trib_comm *comm = calloc(1, sizeof(*comm));
    struct trib_locality_report *facts = octo_facts(SIZE, PER_HOST);
    struct trib_locality_groups near;
    struct trib_shape shape = {0};

    comm->engine.ranks = comm->engine.size = SIZE;
    comm->cfg.leaders = 4;
    assert_status(trib_locality_make(comm, facts), TRIB_OK);
    assert_status(trib_locality_group(comm, 1 << 20, &near, &shape), TRIB_OK);
    assert_int_equal(shape.groups->n, 2);
    for (int l = 0; l < 4; l++) {
        const int a = shape.groups->leader[l], b = shape.groups->leader[4 + l];
        char device[24];
        snprintf(device, sizeof(device), "mlx5_%d", l);
        assert_string_equal(facts[a].nic, device);
        assert_string_equal(facts[b].nic, device);
        assert_int_equal(b, SIZE - 1 - a); /* the same cores of the other host */
    }
    trib_locality_ungroup(&near);
    comm->cfg.leaders = 0; /* by default it uses them all */
    assert_status(trib_locality_group(comm, 64 << 20, &near, &shape), TRIB_OK);
    assert_int_equal(shape.groups->leaders, 8);
    trib_locality_ungroup(&near);
    trib_locality_free(comm->locality);
    free(facts);
    free(comm);
}

struct logged {
    int warnings;
    char text[500];
};

static void keep_line(void *arg, trib_log_level_t level, const char *line)
{
    struct logged *log = arg;

    (void)level;
    log->warnings++;
    snprintf(log->text, sizeof(log->text), "%s", line);
}

/* Ranks of octos; rank `lost`, if any, knows nothing. */
struct octos {
    int size;
    int groups; /* TRIB_GROUPS */
    int lost;
};

/* Check that there are n groups of consecutive ranks, next to the groups by host. */
static void check_octos(struct octos o, const char *kind, int n, struct logged *log)
{
    enum { PER_HOST = 16 };
    struct trib_comm *comm = calloc(1, sizeof(*comm));
    struct trib_locality_report *facts = octo_facts(o.size, PER_HOST);
    struct trib_locality_groups near;
    struct trib_shape shape = {0};

    comm->engine.ranks = comm->engine.size = o.size;
    comm->engine.peers = calloc((size_t)o.size, sizeof(*comm->engine.peers));
    comm->cfg.groups = o.groups;
    trib_log_init(&comm->log, TRIB_LOG_WARN, keep_line, log);
    if (o.lost >= 0) {
        facts[o.lost].numa = -1;
        memset(facts[o.lost].nic, 0, sizeof(facts[o.lost].nic));
        snprintf(comm->engine.peers[o.lost].host, sizeof(comm->engine.peers->host),
                 "n7");
    }
    assert_status(trib_locality_make(comm, facts), TRIB_OK);
    assert_status(trib_locality_group(comm, 4 << 20, &near, &shape), TRIB_OK);
    assert_string_equal(near.kind, kind);
    assert_int_equal(shape.groups->n, n);
    assert_in_range(shape.groups->leaders, 1, o.size / n);
    for (int r = 0; r < o.size; r++) {
        assert_int_equal(shape.groups->of_rank[r], r / (o.size / n));
        assert_int_equal(shape.groups->host[r], r / PER_HOST);
    }
    trib_locality_ungroup(&near);
    trib_locality_free(comm->locality);
    free(comm->engine.peers);
    free(comm);
    free(facts);
}

TEST(test_kinds)
{
    struct logged log = {0};

    check_octos((struct octos){32, TRIB_GROUPS_HOST, -1}, "host", 2, &log);
    check_octos((struct octos){32, TRIB_GROUPS_NUMA, -1}, "numa", 16, &log);
    check_octos((struct octos){32, TRIB_GROUPS_NIC, -1}, "nic", 16, &log);
    check_octos((struct octos){32, TRIB_GROUPS_AUTO, -1}, "host", 2, &log);
    check_octos((struct octos){16, TRIB_GROUPS_AUTO, -1}, "numa", 8, &log);
    check_octos((struct octos){16, TRIB_GROUPS_AUTO, 5}, "host", 1, &log);
    assert_int_equal(log.warnings, 0);
    check_octos((struct octos){32, TRIB_GROUPS_NUMA, 21}, "host", 2, &log);
    assert_int_equal(log.warnings, 1);
    assert_non_null(strstr(log.text, "rank 21 (host n7) does not know its NUMA node"));
    check_octos((struct octos){32, TRIB_GROUPS_NIC, 3}, "host", 2, &log);
    assert_int_equal(log.warnings, 2);
    assert_non_null(strstr(log.text, "TRIB_GROUPS=nic: rank 3 "));
    assert_non_null(strstr(log.text, "set TRIB_GROUPS=host"));
}

/* Make hwloc report this machine as two packages of a core and a device each. */
static void pretend_pair(void)
{
    struct trib_layout layout;
    cpu_set_t cpus;

    if (trib_layout_read(data_path("pair.xml").text, NULL, &layout) ==
        TRIB_ERR_UNSUPPORTED)
        tribtest_skip("built without hwloc");
    trib_layout_free(&layout);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2 ||
        sched_getaffinity(0, sizeof(cpus), &cpus) || !CPU_ISSET(0, &cpus) ||
        !CPU_ISSET(1, &cpus))
        tribtest_skip("processors 0 and 1 are not for this test");
    setenv("HWLOC_XMLFILE", data_path("pair.xml").text, 1);
}

/* Ranks bound to alternating cores are in alternating groups, with and without shared
 * memory. */
TEST(test_two_nodes)
{
    pretend_pair();
    run(4, "transport=shm;groups=numa;leaders=2",
        (struct expected){2, 2, "numa", 2, true});
    run(5, "transport=shm;groups=numa;leaders=1",
        (struct expected){2, 1, "numa", 2, true});
    run(5, "transport=tcp;groups=nic;leaders=2",
        (struct expected){2, 2, "nic", 2, true});
    run(6, "transport=shm;groups=auto;leaders=3",
        (struct expected){3, 3, "numa", 2, true});
    run(4, "transport=shm;groups=host;leaders=2",
        (struct expected){4, 2, NULL, 0, true});
}

/* Ranks that may run anywhere belong to no node: rank 0 logs that, and they sum by
 * hosts. */
TEST(test_not_bound)
{
    struct expected x = {3, 2, NULL, 0, false};
    char config[200];
    struct ranks_job job = job_of(3, "transport=shm;groups=numa;leaders=2", &x, config);
    struct ranks r;

    pretend_pair();
    job.noisy = true;
    assert_true(ranks_start(&r, &job));
    ranks_wait(&r);
    assert_int_equal(ranks_failed(&r), 0);
    assert_int_equal(r.slots[0].warnings, 1);
    assert_int_equal(r.slots[1].warnings + r.slots[2].warnings, 0);
    assert_non_null(strstr(r.slots[0].warning, "rank 0 (host "));
    ranks_close(&r);
}

/* The real nodes of this machine. */
TEST(test_here)
{
    struct trib_layout layout;

    unsetenv("HWLOC_XMLFILE");
    assert_status(trib_layout_read(NULL, NULL, &layout), TRIB_OK);
    const int nodes = layout.n_numa;
    trib_layout_free(&layout);
    run(3, "transport=shm;groups=host;leaders=2",
        (struct expected){3, 2, NULL, 0, false});
    if (nodes != 1)
        tribtest_skip("ranks of several NUMA nodes would have to be bound");
    run(3, "transport=shm;groups=numa;leaders=2",
        (struct expected){3, 2, "numa", 1, false});
}

TEST(test_two_hosts)
{
    run(4, "transport=auto:near=shm,far=tcp,ranks_per_host=2;leaders=2",
        (struct expected){2, 2, NULL, 0, false});
}

/* The last host has one rank: it is the only leader there, and the other hosts use one,
 * too. */
TEST(test_uneven)
{
    run(5, "transport=auto:near=shm,far=tcp,ranks_per_host=2;leaders=2",
        (struct expected){2, 1, NULL, 0, false});
}

/* Check what schedules rely on: hosts have leaders, and positions are distinct. */
static void check_hosts(const struct trib_shape_hosts *h, int ranks, int size)
{
    for (int r = 0; r < size; r++) {
        assert_in_range(h->of[r], 0, r);
        assert_int_equal(h->of[h->of[r]], h->of[r]);
        assert_true(r >= ranks || h->of[r] < ranks);
    }
    for (int r = 0; r < ranks; r++) {
        int before = 0, all = 0;
        for (int q = 0; q < ranks; q++) {
            before += q < r && h->of[q] == h->of[r];
            all += h->of[q] == h->of[r];
        }
        assert_int_equal(h->place[r], before);
        assert_int_equal(h->leaders[r], all < 8 ? all : 8);
    }
}

/* Reports come from other hosts. */
TEST(test_hosts_of_any_reports)
{
    enum { MOST = 24 };
    struct trib_locality_report facts[MOST];
    int n_made = 0;

    for (uint64_t n = 0; n < 20000; n++) {
        struct trib_aggregators a = {.n = 1 + (int)(n % 3)};
        struct trib_comm comm = {.aggregators = &a};
        const int ranks = 1 + (int)(n / 3 % (MOST - 3)), size = ranks + a.n;
        int leaf_of[MOST];
        struct trib_agg_tree tree = {.leaf_of = leaf_of};
        comm.engine.ranks = ranks;
        comm.engine.size = size;
        a.tree = n % 2 ? &tree : NULL;
        for (int r = 0; r < size; r++) {
            const uint64_t bits = oracle_mix(n * MOST + (uint64_t)r);
            facts[r] = (struct trib_locality_report){
                .first = bits % 9 ? (int)(bits >> 8 & 0xff) % size : (int)(bits >> 8),
                .maps = bits >> 40 & 3};
            leaf_of[r] = (int)(bits >> 44 & 1);
        }
        assert_int_equal(trib_locality_hosts(&comm, facts), TRIB_OK);
        n_made += a.hosts != NULL;
        if (a.hosts)
            check_hosts(a.hosts, ranks, size);
        free(a.hosts);
    }
    assert_true(n_made > 100);
}

TEST(test_one_host)
{
    run(3, "transport=shm;leaders=3", (struct expected){3, 3, NULL, 0, false});
    run(3, "transport=tcp;leaders=2", (struct expected){3, 2, NULL, 0, false});
}
