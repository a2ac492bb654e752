/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 161 gradients of ResNet-50 in one group, compared with one vector of the same
 * bytes. All tensors are ready at the start of a step, or become ready from the last to
 * the first. They are not contiguous, so that fused ones are copied.
 */
#include <stdlib.h>
#include <string.h>

#include "perf/versus/versus.h"

enum { TENSORS = 161, GAP = 64, WHOLE = 0, MARKED, WAYS };

struct model {
    trib_tensor_t tensors[TENSORS];
    char names[TENSORS][48];
    size_t n, elements;
};

static void add(struct model *m, const char *name, size_t count, int dims)
{
    trib_tensor_t *t = &m->tensors[m->n];

    *t = (trib_tensor_t)TRIB_TENSOR_INIT;
    snprintf(m->names[m->n], sizeof(m->names[m->n]), "%s", name);
    t->name = m->names[m->n++];
    t->count = count;
    t->dims = dims;
    m->elements += count;
}

/* Add a convolution and its batch normalisation. */
static void add_conv(struct model *m, const char *block, const char *number, size_t in,
                     size_t out, size_t kernel)
{
    char name[48];

    snprintf(name, sizeof(name), "%sconv%s.weight", block, number);
    add(m, name, in * out * kernel * kernel, 4);
    snprintf(name, sizeof(name), "%sbn%s.weight", block, number);
    add(m, name, out, 1);
    snprintf(name, sizeof(name), "%sbn%s.bias", block, number);
    add(m, name, out, 1);
}

/* ResNet-50, He et al., 2016: four stages of 3, 4, 6 and 3 bottlenecks. */
static void resnet50(struct model *m)
{
    static const size_t blocks[] = {3, 4, 6, 3};
    size_t in = 64;

    add_conv(m, "", "1", 3, 64, 7);
    for (size_t stage = 0; stage < 4; stage++) {
        const size_t width = (size_t)64 << stage, out = 4 * width;
        for (size_t i = 0; i < blocks[stage]; i++) {
            char block[32];
            snprintf(block, sizeof(block), "layer%u.%u.", (unsigned)stage + 1,
                     (unsigned)i);
            add_conv(m, block, "1", in, width, 1);
            add_conv(m, block, "2", width, width, 3);
            add_conv(m, block, "3", width, out, 1);
            if (i == 0)
                add_conv(m, block, "_downsample", in, out, 1);
            in = out;
        }
    }
    add(m, "fc.weight", 1000 * in, 2);
    add(m, "fc.bias", 1000, 1);
}

struct state {
    struct model model;
    void *memory;
    trib_group_t *groups[WAYS];
};

static trib_status_t open_groups(struct versus *b)
{
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    struct state *s = b->state = calloc(1, sizeof(*s));

    if (s == NULL)
        return TRIB_ERR_NO_MEMORY;
    struct model *m = &s->model;
    resnet50(m);
    b->bytes = m->elements * sizeof(float);
    trib_status_t status =
        versus_memory(b, b->bytes + TENSORS * GAP * sizeof(float), &s->memory);
    if (status != TRIB_OK)
        return status;
    float *at = s->memory;
    for (size_t i = 0; i < TENSORS; at += m->tensors[i++].count + GAP)
        m->tensors[i].recv = at;
    status = trib_group_create(b->comm, m->tensors, TENSORS, &opts, &s->groups[WHOLE]);
    opts.feed = TRIB_FEED_BACKWARD;
    if (status == TRIB_OK)
        status =
            trib_group_create(b->comm, m->tensors, TENSORS, &opts, &s->groups[MARKED]);
    return status;
}

static trib_status_t run(struct versus *b, int way)
{
    const struct state *s = b->state;
    trib_group_t *g = s->groups[way];

    trib_status_t status = trib_group_start(g);
    for (size_t i = TENSORS; way == MARKED && i-- > 0 && status == TRIB_OK;)
        status = trib_group_ready(g, i);
    return status == TRIB_OK ? trib_group_wait(g) : status;
}

static void tell(struct versus *b, char *text, size_t text_bytes)
{
    const struct state *s = b->state;
    trib_group_stats_t stats = {.size = sizeof(stats)};

    if (trib_group_stats(s->groups[MARKED], &stats) != TRIB_OK || stats.steps == 0)
        return;
    snprintf(text, text_bytes,
             "%llu tensors in %llu buckets, %llu fused; %llu bytes copied and %llu "
             "agreements per step",
             (unsigned long long)stats.tensors, (unsigned long long)stats.buckets,
             (unsigned long long)stats.fused,
             (unsigned long long)(stats.copied_bytes / stats.steps),
             (unsigned long long)(stats.agreements / stats.steps));
}

static void close_groups(struct versus *b)
{
    struct state *s = b->state;

    if (s == NULL)
        return;
    for (int way = 0; way < WAYS; way++)
        trib_group_free(s->groups[way]);
    versus_memory_free(b, s->memory);
    free(s);
    b->state = NULL;
}

const struct versus_kind versus_groups = {
    .name = "groups",
    .command =
        {
            .name = "trib-perf groups",
            .usage =
                "usage: trib-perf groups [OPTION]…\n"
                "\n"
                "Compares the 161 gradients of ResNet-50 (97.5 MiB) as one group of "
                "tensors with\n"
                "an all-reduce of one vector of the same bytes. All tensors are "
                "ready at the\n"
                "start of a step, or are marked ready from the last to the first. A "
                "round runs\n"
                "each of these once, and the all-reduce twice. Times are of the "
                "slowest rank;\n"
                "ratio is the time over the time of the all-reduce in the same "
                "round.\n",
            .ending = "example: trib-perf groups -n 4 --memory malloc\n"
                      "exit code: 0 done; 1 failed; 2 wrong arguments",
            .options = versus_options,
            .n_options = VERSUS_OPTIONS,
        },
    .ways = {"group", "group marked"},
    .n_ways = WAYS,
    .open = open_groups,
    .run = run,
    .close = close_groups,
    .tell = tell,
};
