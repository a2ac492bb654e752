/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs built with the headers of the first release: their structs are smaller, and
 * work as before. The layouts here are frozen: never change them with the headers.
 */
#include <tributary/doctor.h>
#include <tributary/topology.h>

#include "tests/harness/ranks.h"

/* The structs of the first release. */
struct desc_1 {
    size_t size;
    const void *send;
    void *recv;
    size_t count;
    trib_dtype_t dtype;
    trib_op_t op;
    int root;
    const char *codec;
    const char *feedback;
    const char *algorithm;
    size_t chunk;
    trib_feed_t feed;
    const char *quorum;
};

struct opts_1 {
    size_t size;
    int rank_plus_1;
    int ranks;
    const char *root;
    const char *config;
    trib_log_fn log;
    void *log_arg;
};

struct reach_1 {
    size_t size;
    char transport[16];
    char why[240];
};

struct stats_1 {
    size_t size;
    uint64_t operations, wire_bytes, payload_bytes, dense_bytes, copied_bytes, messages;
    uint64_t shared_bytes, slot_bytes, peers, wait_ns, encode_ns, served;
};

struct doctor_opts_1 {
    size_t size;
    const struct opts_1 *join;
    const char *folder;
};

struct topology_opts_1 {
    size_t size;
    const char *xml;
    const char *racks;
    const char *format;
    int dot;
};

struct schedule_opts_1 {
    size_t size;
    const char *algorithm;
    int ranks;
    size_t bytes;
    int ranks_per_host;
    int leaders;
    int dot;
    const char *service;
    const char *groups;
    const char *xml;
};

struct tensor_1 {
    size_t size;
    const char *name;
    const void *send;
    void *recv;
    size_t count;
    trib_dtype_t dtype;
    int dims;
    int priority;
    const char *codec;
    const char *feedback;
};

struct group_rule_1 {
    size_t size;
    const char *name;
    size_t count_min, count_max;
    int dims_min, dims_max;
    const char *codec;
    const char *feedback;
};

struct group_opts_1 {
    size_t size;
    const char *name;
    trib_op_t op;
    double parameter;
    trib_feed_t feed;
    size_t bucket_bytes, alone_bytes;
    unsigned cycle_us;
    const struct group_rule_1 *rules;
    size_t n_rules;
    const char *codec;
    const char *feedback;
    const char *algorithm;
    uint64_t seed;
    trib_group_fn done;
    void *arg;
};

struct group_stats_1 {
    size_t size;
    uint64_t tensors, buckets, fused, coded, steps, copied_bytes, agreements, overtaken;
};

/* A guard after a struct that the library must neither read nor write. */
#define GUARD UINT64_C(0xfeedfacefeedface)

/* Those structs must still be the beginning of the current ones. */
#define SAME_PLACE(old, new, field) \
    _Static_assert(offsetof(old, field) == offsetof(new, field), #field)
SAME_PLACE(struct desc_1, trib_desc_t, quorum);
SAME_PLACE(struct opts_1, trib_opts_t, log_arg);
SAME_PLACE(struct reach_1, trib_reach_t, why);
SAME_PLACE(struct stats_1, trib_stats_t, served);
SAME_PLACE(struct doctor_opts_1, trib_doctor_opts_t, folder);
SAME_PLACE(struct topology_opts_1, trib_topology_opts_t, dot);
SAME_PLACE(struct schedule_opts_1, trib_schedule_opts_t, xml);
SAME_PLACE(struct tensor_1, trib_tensor_t, feedback);
SAME_PLACE(struct group_rule_1, trib_group_rule_t, feedback);
SAME_PLACE(struct group_opts_1, trib_group_opts_t, arg);
SAME_PLACE(struct group_stats_1, trib_group_stats_t, overtaken);

static void run_plan(struct ranks_self *self, trib_comm_t *comm)
{
    struct {
        struct desc_1 desc;
        uint64_t guard[8];
    } of;
    float x[100];
    trib_plan_t *plan;

    memset(&of, 0xab, sizeof(of));
    of.desc = (struct desc_1){.size = sizeof(of.desc), .recv = x, .count = 100};
    for (int i = 0; i < 100; i++)
        x[i] = 1;
    ranks_ok(self, trib_plan_allreduce(comm, (const trib_desc_t *)&of.desc, &plan));
    ranks_step(self, plan);
    ranks_ok(self, trib_plan_free(plan));
    ranks_assert(self, x[0] == (float)self->size && x[99] == (float)self->size);
}

static void ask(struct ranks_self *self, trib_comm_t *comm)
{
    struct {
        struct reach_1 reach;
        uint64_t guard;
    } r = {.reach = {.size = sizeof(r.reach)}, .guard = GUARD};
    struct {
        struct stats_1 stats;
        uint64_t guard;
    } s = {.stats = {.size = sizeof(s.stats)}, .guard = GUARD};

    ranks_ok(self, trib_reach(comm, !self->rank, (trib_reach_t *)&r.reach));
    ranks_assert(self, r.reach.size == sizeof(r.reach) && r.guard == GUARD);
    ranks_assert(self, r.reach.transport[0] && r.reach.why[0]);
    ranks_ok(self, trib_stats(comm, (trib_stats_t *)&s.stats));
    ranks_assert(self, s.stats.size == sizeof(s.stats) && s.guard == GUARD);
    ranks_assert(self, s.stats.operations >= 1);
    r.reach.size = sizeof(size_t);
    ranks_expect(self, trib_reach(comm, !self->rank, (trib_reach_t *)&r.reach),
                 TRIB_ERR_INVALID, "a reach that is too small");
    ranks_assert(self, strstr(trib_last_error(comm), "trib_reach_t.size is 8"));
}

/* Tensors and rules are arrays: their stride is the size of the caller's struct. */
static void run_group(struct ranks_self *self, trib_comm_t *comm)
{
    float x[3][100] = {{1, 1}, {2, 2}, {3, 3}};
    const struct tensor_1 tensors[3] = {
        {.size = sizeof(tensors[0]), .name = "a", .recv = x[0], .count = 100},
        {.size = sizeof(tensors[0]), .name = "b", .recv = x[1], .count = 100},
        {.size = sizeof(tensors[0]), .name = "c", .recv = x[2], .count = 100},
    };
    const struct group_rule_1 rules[2] = {
        {.size = sizeof(rules[0]), .name = "a", .codec = "f16"},
        {.size = sizeof(rules[0]), .name = "b", .codec = "bf16"},
    };
    const struct group_opts_1 opts = {
        .size = sizeof(opts), .rules = rules, .n_rules = 2};
    struct {
        struct group_stats_1 stats;
        uint64_t guard;
    } s = {.stats = {.size = sizeof(s.stats)}, .guard = GUARD};
    trib_group_t *group;

    ranks_ok(self, trib_group_create(comm, (const trib_tensor_t *)tensors, 3,
                                     (const trib_group_opts_t *)&opts, &group));
    ranks_ok(self, trib_group_start(group));
    ranks_ok(self, trib_group_wait(group));
    ranks_ok(self, trib_group_stats(group, (trib_group_stats_t *)&s.stats));
    ranks_assert(self, s.guard == GUARD && s.stats.coded == 2 && s.stats.buckets == 3);
    ranks_assert(self, x[2][1] == 3.0F * (float)self->size && x[0][2] == 0);
    ranks_ok(self, trib_group_free(group));
}

RANKS_TEST(test_communicators_and_plans, .size = 2, .bare = true)
{
    struct opts_1 opts = {.size = sizeof(opts),
                          .rank_plus_1 = self->opts.rank_plus_1,
                          .ranks = self->opts.ranks,
                          .root = self->opts.root,
                          .config = self->opts.config};
    trib_comm_t *comm;

    ranks_ok(self, trib_init((const trib_opts_t *)&opts, &comm));
    run_plan(self, comm);
    run_group(self, comm);
    ask(self, comm);
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

static void count_line(void *arg, const char *line)
{
    (void)line;
    ++*(int *)arg;
}

TEST(test_pictures)
{
    const struct topology_opts_1 t = {.size = sizeof(t)};
    const struct schedule_opts_1 s = {
        .size = sizeof(s), .algorithm = "ring", .ranks = 4, .bytes = 4096};
    int lines = 0;

    assert_ok(trib_topology_draw((const trib_topology_opts_t *)&t, count_line, &lines));
    assert_true(lines > 0);
    lines = 0;
    assert_ok(trib_schedule_draw((const trib_schedule_opts_t *)&s, count_line, &lines));
    assert_true(lines > 0);
}

/* Fields that would be ignored. */
TEST(test_unused)
{
    trib_topology_opts_t t = TRIB_TOPOLOGY_OPTS_INIT;
    trib_schedule_opts_t s = TRIB_SCHEDULE_OPTS_INIT;
    int lines = 0;

    t.format = "slurm";
    assert_status(trib_topology_draw(&t, count_line, &lines), TRIB_ERR_INVALID);
    assert_non_null(strstr(trib_last_error(NULL), "racks is NULL"));
    t.format = NULL;
    t.reserved = 1;
    assert_status(trib_topology_draw(&t, count_line, &lines), TRIB_ERR_INVALID);
    s.algorithm = "ring";
    s.ranks = 4;
    s.bytes = 4096;
    s.leaders = 2;
    assert_status(trib_schedule_draw(&s, count_line, &lines), TRIB_ERR_INVALID);
    assert_non_null(strstr(trib_last_error(NULL), "leaders is 2"));
    assert_int_equal(lines, 0);
}

static void count_finding(void *arg, const trib_finding_t *finding)
{
    (void)finding;
    ++*(int *)arg;
}

TEST(test_doctor)
{
    const struct opts_1 join = {.size = sizeof(join)};
    struct doctor_opts_1 d = {.size = sizeof(d), .join = &join};
    int findings = 0;

    assert_ok(
        trib_doctor((const trib_doctor_opts_t *)&d, count_finding, &findings, NULL));
    assert_true(findings > 0);
    d.size = 8;
    assert_status(
        trib_doctor((const trib_doctor_opts_t *)&d, count_finding, &findings, NULL),
        TRIB_ERR_INVALID);
    assert_non_null(strstr(trib_last_error(NULL), "trib_doctor_opts_t.size is 8"));
}
