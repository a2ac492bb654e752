/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pushes to a vector in tribd, and pulls, by all ranks at once. They are of all
 * elements, of one in 100 by index, and of all elements with a codec.
 */
#include <stdlib.h>

#include "perf/versus/versus.h"

enum { SPARSE = 100 };

struct state {
    trib_store_t *store;
    trib_vector_t *vector;
    float *x;
    uint64_t *indices; /* [some] */
    size_t some;
};

static trib_status_t note(struct versus *b, trib_status_t status)
{
    const struct state *s = b->state;

    if (status != TRIB_OK && s->store != NULL)
        snprintf(b->why, sizeof(b->why), "%s", trib_store_error(s->store));
    return status;
}

static trib_status_t open_store(struct versus *b)
{
    const size_t count = b->bytes / sizeof(float);
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    struct state *s = b->state = calloc(1, sizeof(*s));

    if (s == NULL)
        return TRIB_ERR_NO_MEMORY;
    s->some = count < SPARSE ? 1 : count / SPARSE;
    s->x = calloc(count, sizeof(*s->x));
    s->indices = calloc(s->some, sizeof(*s->indices));
    if (s->x == NULL || s->indices == NULL)
        return TRIB_ERR_NO_MEMORY;
    for (size_t i = 0; i < s->some; i++)
        s->indices[i] = i * (count / s->some);
    trib_status_t status = trib_store_open(b->comm, &s->store);
    d.name = "trib-perf";
    d.count = count;
    d.rule = b->args->rule;
    if (status == TRIB_OK)
        status = note(b, trib_store_create(s->store, &d, &s->vector));
    return status;
}

enum way { PUSH, PULL, PUSH_SPARSE, PULL_SPARSE, PUSH_CODED, PULL_CODED, WAYS };

static trib_status_t run(struct versus *b, int way)
{
    const struct state *s = b->state;
    const char *codec = b->args->each.codec;
    trib_push_opts_t push = TRIB_PUSH_OPTS_INIT;
    trib_pull_opts_t pull = TRIB_PULL_OPTS_INIT;

    if (way == PUSH_SPARSE || way == PULL_SPARSE) {
        push.indices = pull.indices = s->indices;
        push.count = pull.count = s->some;
    } else if (way == PUSH_CODED || way == PULL_CODED) {
        push.codec = codec != NULL ? codec : "topk:ratio=0.01";
        pull.codec = "bf16";
    }
    const bool pushes = way == PUSH || way == PUSH_SPARSE || way == PUSH_CODED;
    return note(b, pushes ? trib_store_push(s->vector, s->x, &push, NULL)
                          : trib_store_pull(s->vector, s->x, &pull, NULL));
}

static void close_store(struct versus *b)
{
    struct state *s = b->state;

    if (s == NULL)
        return;
    trib_store_free(s->store);
    free(s->x);
    free(s->indices);
    free(s);
    b->state = NULL;
}

const struct versus_kind versus_store = {
    .name = "store",
    .command =
        {
            .name = "trib-perf store",
            .usage =
                "usage: trib-perf store [OPTION]…\n"
                "\n"
                "Compares pushes to a vector in the tribd that TRIB_SERVICE names, "
                "and pulls of\n"
                "it, with an all-reduce of the same bytes. All ranks push and pull "
                "at once: all\n"
                "elements, one in 100 by index, and all with a codec. A round runs "
                "each of these\n"
                "once, and the all-reduce twice. Times are of the slowest rank; "
                "ratio is the time\n"
                "over the time of the all-reduce in the same round. GB/s count bytes "
                "of the\n"
                "vector, not bytes on the wire. tribd takes part in the all-reduce, "
                "too.\n",
            .ending = "example: TRIB_SERVICE=host:port trib-perf store -n 2 --rule "
                      "sgd:rate=0.1\n"
                      "exit code: 0 done; 1 failed; 2 wrong arguments",
            .options = versus_options,
            .n_options = VERSUS_OPTIONS,
        },
    .sizes = "8,4K,256K,4M,16M",
    .ways = {"push", "pull", "push sparse", "pull sparse", "push coded", "pull coded"},
    .n_ways = WAYS,
    .is_store = true,
    .open = open_store,
    .run = run,
    .close = close_store,
};
