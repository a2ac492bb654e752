/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group of a few tensors of one size, each in a separate bucket, and the order in
 * which they finish.
 */
#ifndef TESTS_COMM_TENSORS_NET_H
#define TESTS_COMM_TENSORS_NET_H

#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { N = 11, COUNT = 1000 };

struct told {
    size_t order[N];
    trib_status_t status[N];
    int n;
};

static inline void tell(void *arg, size_t tensor, trib_status_t status)
{
    struct told *told = arg;

    told->order[told->n] = tensor;
    told->status[told->n++] = status;
}

struct net {
    char names[N][16];
    trib_tensor_t of[N];
    float memory[N][COUNT];
    struct told told;
    trib_group_opts_t opts;
    trib_group_t *group;
};

static inline void describe(struct net *net)
{
    *net = (struct net){.opts = TRIB_GROUP_OPTS_INIT};
    for (int i = 0; i < N; i++) {
        snprintf(net->names[i], sizeof(net->names[i]), "t%d", i);
        net->of[i] = (trib_tensor_t)TRIB_TENSOR_INIT;
        net->of[i].name = net->names[i];
        net->of[i].recv = net->memory[i];
        net->of[i].count = COUNT;
        for (int k = 0; k < COUNT; k++)
            net->memory[i][k] = (float)i;
    }
    net->opts.feed = TRIB_FEED_FORWARD;
    net->opts.alone_bytes = net->opts.bucket_bytes = 1; /* a bucket for each */
    net->opts.done = tell;
    net->opts.arg = &net->told;
}

static inline void create(struct ranks_self *self, struct net *net)
{
    if (trib_group_create(self->comm, net->of, N, &net->opts, &net->group) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(self->comm));
}

static inline void said(struct ranks_self *self, trib_status_t is,
                        trib_status_t expected, const char *const *words)
{
    const char *text = trib_last_error(self->comm);

    if (is != expected || !ranks_has(text, words))
        ranks_die(self, "%s, not %s with %s: %s", trib_status_name(is),
                  trib_status_name(expected), words[0], text);
}

#endif
