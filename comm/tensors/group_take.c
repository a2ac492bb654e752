/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy the caller's description, and choose each tensor's codec.
 */
#include <fnmatch.h>
#include <stdlib.h>

#include <tributary/info.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/sized.h"
#include "comm/core/communicator.h"
#include "comm/plan/configured.h"
#include "comm/tensors/tensor_group.h"

#define NONE "none"

enum { BUCKET_BYTES = 4 << 20, ALONE_BYTES = 64 << 10 };

static trib_status_t no_memory(struct trib_group *g)
{
    return trib_comm_fail(g->comm, TRIB_ERR_NO_MEMORY,
                          "no memory for a group of tensors");
}

const char *trib_group_says(const struct trib_group *g, char text[80])
{
    if (g->name[0])
        snprintf(text, 80, "group \"%s\"", g->name);
    else
        snprintf(text, 80, "the group");
    return text;
}

static bool is_printable(const char *text, size_t most)
{
    const size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return len >= 1 && len <= most;
}

static trib_status_t refuse(struct trib_group *g, const char *field, long is,
                            const char *cure)
{
    char text[80];

    return trib_comm_fail(g->comm, TRIB_ERR_INVALID, "%s: %s is %ld, it must be %s",
                          trib_group_says(g, text), field, is, cure);
}

static trib_status_t check_opts(struct trib_group *g)
{
    const trib_group_opts_t *o = &g->opts;
    const char *quorum = g->comm->cfg.quorum;

    if (o->name && !is_printable(o->name, TRIB_PLAN_NAME_MAX))
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "a group's name must be 1 to %d printable ASCII "
                              "characters",
                              TRIB_PLAN_NAME_MAX);
    if (o->name)
        snprintf(g->name, sizeof(g->name), "%s", o->name);
    if ((unsigned)o->feed > TRIB_FEED_BACKWARD)
        return refuse(g, "trib_group_opts_t.feed", (long)o->feed, "a trib_feed_t");
    if ((unsigned)o->op >= TRIB_OP_COUNT)
        return refuse(g, "trib_group_opts_t.op", (long)o->op, "a trib_op_t");
    if (o->timeout_ms < 0)
        return refuse(g, "trib_group_opts_t.timeout_ms", (long)o->timeout_ms,
                      "0 or more");
    if (o->n_rules && !o->rules)
        return refuse(g, "trib_group_opts_t.n_rules", (long)o->n_rules,
                      "0, as rules is NULL");
    if (o->reserved)
        return refuse(g, "trib_group_opts_t.reserved", (long)o->reserved, "0");
    if (o->cycle_us && o->feed == TRIB_FEED_WHOLE)
        return refuse(g, "trib_group_opts_t.cycle_us", (long)o->cycle_us,
                      "0 with feed WHOLE, where all tensors are ready at once");
    if (o->cycle_us && quorum[0] && strcmp(quorum, "all") != 0)
        return trib_comm_fail(g->comm, TRIB_ERR_UNSUPPORTED,
                              "cycle_us is %u and TRIB_QUORUM=%.60s: late "
                              "contributions stay with their bucket, so buckets cannot "
                              "be re-formed; set only one of them",
                              o->cycle_us, quorum);
    return TRIB_OK;
}

static trib_status_t check_rule(struct trib_group *g, size_t i,
                                const trib_group_rule_t *r)
{
    char why[256];

    if (r->feedback && !r->codec)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "rule %zu has feedback \"%.60s\" but no codec: set the "
                              "codec, too",
                              i, r->feedback);
    if (r->dims_min < 0 || r->dims_max < 0 ||
        (r->dims_max && r->dims_max < r->dims_min))
        return trib_comm_fail(
            g->comm, TRIB_ERR_INVALID,
            "rule %zu: dims_min is %d and dims_max %d: they must be 0 "
            "or more, and dims_max 0 or at least dims_min",
            i, r->dims_min, r->dims_max);
    if (r->count_max && r->count_max < r->count_min)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "rule %zu: count_max is %zu, it must be 0, for no limit, "
                              "or at least count_min, %zu",
                              i, r->count_max, r->count_min);
    trib_status_t st =
        r->codec ? trib_codec_check(r->codec, why, sizeof(why)) : TRIB_OK;
    if (st == TRIB_OK && r->feedback)
        st = trib_feedback_check(r->feedback, r->codec, why, sizeof(why));
    return st == TRIB_OK ? st : trib_comm_fail(g->comm, st, "rule %zu: %s", i, why);
}

/* Copy rule i; all rules have the size of the first. */
static trib_status_t take_rule(struct trib_group *g, size_t i, trib_group_rule_t *out)
{
    static const struct trib_sized kind = {
        "trib_group_rule_t", "TRIB_GROUP_RULE_INIT", sizeof(*out),
        TRIB_SIZED_UP_TO(trib_group_rule_t, feedback)};
    const size_t size = g->opts.rules[0].size;
    const trib_group_rule_t *theirs =
        (const void *)((const char *)g->opts.rules + i * size);
    struct trib_error err = {0};

    *out = (trib_group_rule_t)TRIB_GROUP_RULE_INIT;
    if (trib_sized_take(&kind, theirs, out, &err) != TRIB_OK)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID, "rule %zu: %s", i,
                              trib_error_text(&err));
    if (theirs->size != size)
        return trib_comm_fail(
            g->comm, TRIB_ERR_INVALID,
            "rule %zu has size %zu, and rule 0 has size %zu: all rules of "
            "a call must have the same size",
            i, theirs->size, size);
    return TRIB_OK;
}

/* Check all rules, even those that match no tensor. */
static trib_status_t check_rules(struct trib_group *g)
{
    trib_status_t st = TRIB_OK;
    trib_group_rule_t rule;

    for (size_t i = 0; i < g->opts.n_rules && st == TRIB_OK; i++) {
        st = take_rule(g, i, &rule);
        if (st == TRIB_OK)
            st = check_rule(g, i, &rule);
    }
    return st;
}

static trib_status_t take_opts(struct trib_group *g, const trib_group_opts_t *theirs)
{
    static const struct trib_sized kind = {"trib_group_opts_t", "TRIB_GROUP_OPTS_INIT",
                                           sizeof(*theirs),
                                           TRIB_SIZED_UP_TO(trib_group_opts_t, arg)};
    struct trib_error err = {0};

    g->opts = (trib_group_opts_t)TRIB_GROUP_OPTS_INIT;
    if (theirs && trib_sized_take(&kind, theirs, &g->opts, &err) != TRIB_OK)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID, "%s", trib_error_text(&err));
    if (!g->opts.bucket_bytes)
        g->opts.bucket_bytes = BUCKET_BYTES;
    if (!g->opts.alone_bytes)
        g->opts.alone_bytes = ALONE_BYTES;
    if (g->opts.algorithm && !(g->algorithm = strdup(g->opts.algorithm)))
        return no_memory(g);
    g->opts.algorithm = g->algorithm;
    const trib_status_t st = check_opts(g);
    return st == TRIB_OK ? check_rules(g) : st;
}

/* Find the first rule that matches the tensor; *found_out is false if there is none. */
static trib_status_t find_rule(struct trib_group *g, const trib_tensor_t *t,
                               trib_group_rule_t *rule, bool *found_out)
{
    const int dims = t->dims ? t->dims : 2;
    trib_status_t st = TRIB_OK;

    *found_out = false;
    for (size_t i = 0; i < g->opts.n_rules && !*found_out && st == TRIB_OK; i++) {
        st = take_rule(g, i, rule);
        *found_out =
            st == TRIB_OK && (!rule->name || fnmatch(rule->name, t->name, 0) == 0) &&
            t->count >= rule->count_min &&
            (!rule->count_max || t->count <= rule->count_max) &&
            dims >= rule->dims_min && (!rule->dims_max || dims <= rule->dims_max);
    }
    return st;
}

/* Choose a tensor's codec: its own, else a rule's, else the group's, else the
 * configured one. The strings belong to the caller or the configuration. */
static trib_status_t choose_codec(struct trib_group *g, trib_tensor_t *t)
{
    const trib_desc_t d = {.count = t->count, .dtype = t->dtype, .op = g->opts.op};
    trib_group_rule_t rule;
    bool found;

    if (t->codec)
        return TRIB_OK;
    const trib_status_t st = find_rule(g, t, &rule, &found);
    if (st != TRIB_OK)
        return st;
    if (found && rule.codec) {
        t->codec = rule.codec;
        t->feedback = rule.feedback;
        return TRIB_OK;
    }
    const bool fits =
        trib_configured_for(TRIB_ALLREDUCE, &d) && (t->dims == 0 || t->dims >= 2);
    if (fits && g->opts.codec) {
        t->codec = g->opts.codec;
        t->feedback = g->opts.feedback;
    } else if (fits) {
        t->codec = trib_codec_of(g->comm, TRIB_ALLREDUCE, &d);
        t->feedback = g->opts.feedback;
    } else {
        t->codec = NONE;
    }
    return TRIB_OK;
}

/* Replace the caller's strings by copies; NULL for strings that were not copied. */
static bool copy_texts(trib_tensor_t *d)
{
    const char *const name = d->name, *const codec = d->codec,
                      *const feedback = d->feedback;

    d->name = strdup(name);
    d->codec = strdup(codec);
    d->feedback = feedback ? strdup(feedback) : NULL;
    return d->name && d->codec && (d->feedback || !feedback);
}

static trib_status_t check_tensor(struct trib_group *g, size_t i,
                                  const trib_tensor_t *t)
{
    size_t bytes;

    if (!t->name || !is_printable(t->name, TRIB_TENSOR_NAME_MAX))
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "tensor %zu: its name must be 1 to %d printable ASCII "
                              "characters%s",
                              i, TRIB_TENSOR_NAME_MAX, t->name ? "" : ", and is NULL");
    if (!trib_dtype_size(t->dtype))
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "tensor \"%s\": dtype %d does not exist", t->name,
                              (int)t->dtype);
    if (t->dims < 0)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "tensor \"%s\": dims is %d, it must be 0 (unspecified) "
                              "or more",
                              t->name, t->dims);
    if (t->feedback && !t->codec)
        return trib_comm_fail(
            g->comm, TRIB_ERR_INVALID,
            "tensor \"%s\" has feedback \"%.60s\" but no codec of its own: set the "
            "codec, too",
            t->name, t->feedback);
    if (__builtin_mul_overflow(t->count, trib_dtype_size(t->dtype), &bytes) ||
        bytes > PTRDIFF_MAX)
        return trib_comm_fail(g->comm, TRIB_ERR_OVERFLOW,
                              "tensor \"%s\": %zu elements do not fit into memory",
                              t->name, t->count);
    return TRIB_OK;
}

/* size: of the first tensor struct, the stride of the caller's array. */
static trib_status_t take_tensor(struct trib_group *g, size_t i, size_t size,
                                 const trib_tensor_t *theirs)
{
    static const struct trib_sized kind = {"trib_tensor_t", "TRIB_TENSOR_INIT",
                                           sizeof(*theirs),
                                           TRIB_SIZED_UP_TO(trib_tensor_t, feedback)};
    struct trib_group_tensor *t = &g->tensors[i];
    trib_tensor_t d = TRIB_TENSOR_INIT;
    struct trib_error err = {0};

    if (trib_sized_take(&kind, theirs, &d, &err) != TRIB_OK)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID, "tensor %zu: %s", i,
                              trib_error_text(&err));
    if (theirs->size != size)
        return trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                              "tensor %zu: its size is %zu, it must equal the first "
                              "tensor's, %zu",
                              i, theirs->size, size);
    trib_status_t st = check_tensor(g, i, &d);
    if (st == TRIB_OK)
        st = choose_codec(g, &d);
    if (st != TRIB_OK)
        return st;
    t->coded = strcmp(d.codec, NONE) != 0;
    t->bytes = d.count * trib_dtype_size(d.dtype);
    t->alone = t->coded || t->bytes >= g->opts.alone_bytes ||
               strcmp(g->comm->cfg.check, NONE) != 0;
    t->bucket = TRIB_BUCKET_NONE;
    g->stats.coded += t->coded;
    const bool copied = copy_texts(&d);
    t->desc = d;
    g->n = i + 1;
    return copied ? TRIB_OK : no_memory(g);
}

static int by_name(const void *a, const void *b)
{
    const struct trib_group_tensor *const *x = a, *const *y = b;

    return strcmp((*x)->desc.name, (*y)->desc.name);
}

static trib_status_t check_names(struct trib_group *g)
{
    const struct trib_group_tensor **all = calloc(g->n + 1, sizeof(void *));
    trib_status_t st = TRIB_OK;

    if (!all)
        return no_memory(g);
    for (size_t i = 0; i < g->n; i++)
        all[i] = &g->tensors[i];
    qsort(all, g->n, sizeof(void *), by_name);
    for (size_t i = 1; i < g->n && st == TRIB_OK; i++)
        if (by_name(&all[i - 1], &all[i]) == 0)
            st = trib_comm_fail(g->comm, TRIB_ERR_INVALID,
                                "two tensors are named \"%s\": a tensor's state and "
                                "random numbers are keyed by its name",
                                all[i]->desc.name);
    free(all);
    return st;
}

trib_status_t trib_group_take(struct trib_group *g, const trib_tensor_t *tensors,
                              size_t n, const trib_group_opts_t *opts)
{
    const char *at = (const char *)tensors;

    trib_status_t st = take_opts(g, opts);
    if (st != TRIB_OK)
        return st;
    if (n >= TRIB_BUCKET_NONE)
        return trib_comm_fail(g->comm, TRIB_ERR_OVERFLOW,
                              "a group of %zu tensors is too large", n);
    g->tensors = calloc(n + 1, sizeof(*g->tensors));
    if (!g->tensors)
        return no_memory(g);
    for (size_t i = 0; i < n && st == TRIB_OK; i++)
        st = take_tensor(g, i, tensors[0].size,
                         (const void *)(at + i * tensors[0].size));
    g->opts.rules = NULL;
    g->opts.name = g->opts.codec = g->opts.feedback = NULL;
    return st == TRIB_OK ? check_names(g) : st;
}

static uint64_t add_text(uint64_t digest, const char *text)
{
    return text ? trib_digest_seeded(text, strlen(text), digest) : digest + 1;
}

uint64_t trib_group_tensor_digest(const struct trib_group_tensor *t)
{
    const int64_t numbers[] = {(int64_t)t->desc.count, t->desc.dtype, t->desc.priority,
                               t->alone};
    uint64_t digest = trib_digest(numbers, sizeof(numbers));

    digest = add_text(digest, t->desc.name);
    digest = add_text(digest, t->desc.codec);
    return add_text(digest, t->desc.feedback);
}
