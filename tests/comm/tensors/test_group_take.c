/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a group interprets a description: the errors name the tensor, rules select
 * codecs, small tensors of a kind share buckets.
 */
#include "tests/harness/tribtest.h"

#include "tests/comm/tensors/tensors.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { MODEL = 6 };

struct model {
    trib_tensor_t of[MODEL];
    float memory[MODEL][2048];
};

static void make_model(struct model *m)
{
    static const char *const names[MODEL] = {"conv.weight", "conv.bias", "bn.weight",
                                             "bn.bias",     "fc.weight", "fc.bias"};
    static const size_t counts[MODEL] = {2048, 16, 16, 16, 1500, 10};

    for (int i = 0; i < MODEL; i++) {
        m->of[i] = (trib_tensor_t)TRIB_TENSOR_INIT;
        m->of[i].name = names[i];
        m->of[i].recv = m->memory[i];
        m->of[i].count = counts[i];
        m->of[i].dims = i % 4 ? 1 : 2;
    }
}

static void refused(struct ranks_self *self, const struct model *m,
                    const trib_group_opts_t *opts, trib_status_t expected,
                    const char *const *words)
{
    trib_group_t *group = (trib_group_t *)(uintptr_t)m;
    const trib_status_t st = trib_group_create(self->comm, m->of, MODEL, opts, &group);
    const char *said = trib_last_error(self->comm);

    if (st != expected || group || !ranks_has(said, words))
        ranks_die(self, "%s for %s: %s", trib_status_name(st), words[0], said);
}

static int mistakes_of_tensors(struct ranks_self *self)
{
    struct model m;

#define WITH(change, status, ...) \
    do { \
        make_model(&m); \
        change; \
        refused(self, &m, NULL, status, WORDS(__VA_ARGS__)); \
    } while (0)
    WITH(m.of[2].name = NULL, TRIB_ERR_INVALID, "tensor 2", "name");
    WITH(m.of[2].name = "", TRIB_ERR_INVALID, "tensor 2", "name");
    WITH(m.of[2].name = "a\n", TRIB_ERR_INVALID, "tensor 2", "printable");
    WITH(m.of[2].name = "fc.bias", TRIB_ERR_INVALID, "\"fc.bias\"", "two tensors");
    WITH(m.of[4].dtype = TRIB_DTYPE_COUNT, TRIB_ERR_INVALID, "\"fc.weight\"", "dtype");
    WITH(m.of[4].dims = -1, TRIB_ERR_INVALID, "\"fc.weight\"", "dims");
    WITH(m.of[4].count = SIZE_MAX, TRIB_ERR_OVERFLOW, "\"fc.weight\"", "fit");
    WITH(m.of[4].codec = "topq", TRIB_ERR_CODEC, "\"fc.weight\"", "topq");
    WITH((m.of[4].codec = "int8", m.of[4].dtype = TRIB_I32), TRIB_ERR_UNSUPPORTED,
         "\"fc.weight\"", "int8", "i32");
    WITH(m.of[3].size = 8, TRIB_ERR_INVALID, "tensor 3", "TRIB_TENSOR_INIT");
    WITH(m.of[3].size += 8, TRIB_ERR_INVALID, "tensor 3", "size");
    WITH(m.of[2].feedback = "ef14", TRIB_ERR_INVALID, "no codec", "ef14");
#undef WITH
    return 0;
}

static int mistakes_of_options(struct ranks_self *self)
{
    trib_group_rule_t rule = TRIB_GROUP_RULE_INIT;
    struct model m;

    make_model(&m);
#define WITH(change, status, ...) \
    do { \
        trib_group_opts_t o = TRIB_GROUP_OPTS_INIT; \
        o.name = "net"; \
        change; \
        refused(self, &m, &o, status, WORDS(__VA_ARGS__)); \
    } while (0)
    WITH(o.size = 4, TRIB_ERR_INVALID, "TRIB_GROUP_OPTS_INIT");
    WITH(o.name = "", TRIB_ERR_INVALID, "name");
    WITH(o.feed = (trib_feed_t)9, TRIB_ERR_INVALID, "group \"net\"", "feed is 9");
    WITH(o.op = TRIB_OP_COUNT, TRIB_ERR_INVALID, "group \"net\"", "op is");
    WITH(o.n_rules = 2, TRIB_ERR_INVALID, "rules is NULL");
    WITH(o.cycle_us = 5, TRIB_ERR_INVALID, "cycle_us is 5", "WHOLE");
    WITH(o.algorithm = "star", TRIB_ERR_INVALID, "star");
    WITH((rule.size = 3, o.rules = &rule, o.n_rules = 1), TRIB_ERR_INVALID, "rule 0",
         "TRIB_GROUP_RULE_INIT");
    WITH(
        (rule.size = sizeof(rule), rule.codec = "topq", o.rules = &rule, o.n_rules = 1),
        TRIB_ERR_CODEC, "rule 0", "topq");
    WITH(o.reserved = 1, TRIB_ERR_INVALID, "reserved is 1");
    rule = (trib_group_rule_t)TRIB_GROUP_RULE_INIT;
    rule.name = "fits none";
#define RULE(change, status, ...) \
    do { \
        trib_group_rule_t kept = rule; \
        WITH((change, o.rules = &rule, o.n_rules = 1), status, __VA_ARGS__); \
        rule = kept; \
    } while (0)
    RULE(rule.codec = "topq", TRIB_ERR_CODEC, "rule 0", "topq");
    RULE(rule.feedback = "ef14", TRIB_ERR_INVALID, "rule 0", "no codec");
    RULE((rule.codec = "topk", rule.feedback = "ef41"), TRIB_ERR_INVALID, "rule 0",
         "ef41");
    RULE((rule.codec = "none", rule.feedback = "ef14"), TRIB_ERR_UNSUPPORTED, "rule 0",
         "ef14");
    RULE(rule.dims_min = -1, TRIB_ERR_INVALID, "dims_min is -1");
    RULE((rule.dims_min = 3, rule.dims_max = 2), TRIB_ERR_INVALID, "dims_max 2");
    RULE((rule.count_min = 9, rule.count_max = 8), TRIB_ERR_INVALID, "count_max is 8");
#undef RULE
#undef WITH
    return 0;
}

/* Check that the line of trib_group_explain that begins with this text contains these
 * words. */
static void explained(struct ranks_self *self, trib_group_t *group, const char *line,
                      const char *words)
{
    char text[4000];

    ranks_ok(self, trib_group_explain(group, text, sizeof(text)));
    char *at = strstr(text, line);
    if (!at)
        ranks_die(self, "no line %s in %s", line, text);
    at[strcspn(at, "\n")] = '\0';
    if (!strstr(at, words))
        ranks_die(self, "no %s in %s", words, at);
}

static int rules(struct ranks_self *self)
{
    const trib_group_rule_t rows[] = {
        {.size = sizeof(rows[0]), .name = "fc.*", .count_min = 100, .codec = "bf16"},
        {.size = sizeof(rows[0]), .dims_max = 1, .count_max = 12, .codec = "int8"},
        {.size = sizeof(rows[0]), .name = "bn.w*", .dims_min = 2, .codec = "int8"},
    };
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_group_stats_t stats = {.size = sizeof(stats)};
    trib_group_t *group;
    struct model m;

    make_model(&m);
    opts.name = "net";
    opts.rules = rows;
    opts.n_rules = 3;
    opts.codec = "topk:ratio=0.01";
    ranks_ok(self, trib_group_create(self->comm, m.of, MODEL, &opts, &group));
    explained(self, group, "group \"net\"", "6 tensors in 4 buckets, by sum");
    explained(self, group, "conv.weight", "codec topk:ratio=0.01");
    explained(self, group, "conv.bias .. bn.bias",
              "3 tensors, 192 bytes of f32, codec none");
    explained(self, group, "fc.weight", "codec bf16");
    explained(self, group, "fc.bias", "codec int8");
    ranks_ok(self, trib_group_stats(group, &stats));
    ranks_assert(self, stats.coded == 3 && stats.fused == 3 && stats.buckets == 4);
    ranks_ok(self, trib_group_free(group));
    return 0;
}

/* Buckets contain one dtype, one priority, and at most the allowed bytes. */
static int buckets(struct ranks_self *self)
{
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_group_t *group;
    struct model m;

    make_model(&m);
    m.of[0].count = 16;
    m.of[2].priority = 3;
    m.of[3].dtype = TRIB_I32;
    opts.bucket_bytes = 140;
    ranks_ok(self, trib_group_create(self->comm, m.of, MODEL, &opts, &group));
    explained(self, group, "the group", "6 tensors in 5 buckets");
    explained(self, group, "conv.weight .. conv.bias", "2 tensors, 128 bytes");
    explained(self, group, "bn.weight ",
              "1 tensor, 64 bytes of f32, codec none, priority 3");
    explained(self, group, "bn.bias ", "1 tensor, 64 bytes of i32");
    explained(self, group, "fc.bias ", "1 tensor, 40 bytes");
    ranks_ok(self, trib_group_free(group));
    return 0;
}

/* The configured codec applies to the same vectors as for plans, and to no others. */
static int configured(struct ranks_self *self)
{
    trib_group_t *group;
    struct model m;

    make_model(&m);
    m.of[4].dims = 1;
    ranks_ok(self, trib_group_create(self->comm, m.of, MODEL, NULL, &group));
    explained(self, group, "conv.weight", "codec int8");
    explained(self, group, "conv.bias .. fc.bias",
              "5 tensors, 6232 bytes of f32, codec none");
    ranks_ok(self, trib_group_free(group));
    return 0;
}

static int checked(struct ranks_self *self)
{
    trib_group_t *group;
    struct model m;

    make_model(&m);
    memset(m.memory, 0, sizeof(m.memory));
    m.memory[3][5] = -0.0f / 0.0f;
    ranks_ok(self, trib_group_create(self->comm, m.of, MODEL, NULL, &group));
    ranks_expect(self, trib_group_start(group), TRIB_ERR_INVALID, "NaN");
    ranks_assert(self, ranks_has(trib_last_error(self->comm),
                                 WORDS("NaN", "element 5 of \"bn.bias\"")));
    ranks_ok(self, trib_group_free(group));
    return 0;
}

TEST(test_mistakes)
{
    ranks_pass(.size = 2, .fn = mistakes_of_tensors);
    ranks_pass(.size = 2, .fn = mistakes_of_options);
}

TEST(test_rules)
{
    ranks_pass(.size = 2, .fn = rules);
    ranks_pass(.size = 2, .fn = buckets);
    ranks_pass(.size = 2, .fn = configured, .config = "codec=int8");
    ranks_pass(.size = 1, .fn = checked, .config = "check=finite");
}
