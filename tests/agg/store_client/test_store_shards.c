/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vectors split over several tribds, bit for bit against the same vectors in one tribd:
 * all forms of pushes and pulls, with rules that keep a state.
 */

#include "agg/store_client/rank_store.h"
#include "build-config.h"
#include "tests/agg/store_client/snapshot_rig.h"
#include "tests/harness/rng_draw.h"

enum { UNIT = 65536, MOST = 3 * UNIT + 4001, PUSHES = 7, DAEMONS = 3 };

/* The same vector, whole and split. */
struct twins {
    const struct ranks_self *self;
    trib_store_t *store[2];
    trib_vector_t *v[2];
    size_t count, element;
    bool aligned; /* parts begin at chunks of codecs */
    uint8_t *pushed, *got[2];
    uint64_t *indices;
};

static void *some(const struct ranks_self *self, size_t bytes)
{
    void *p = calloc(1, bytes);

    ranks_assert(self, p);
    return p;
}

static void need(const struct twins *t, int i, trib_status_t st, const char *what)
{
    snapshot_rig_need(t->self, t->store[i], st, what);
}

/* Draw elements whose sum does not depend on the order, also in bfloat16. */
static void draw(const struct twins *t, trib_dtype_t dtype, int push)
{
    const struct trib_rng rng = {.seed = 11, .step = (uint32_t)push};

    for (size_t i = 0; i < t->count; i++) {
        const float x = draw_float(rng, i) - 0.5f;
        const double wide = x;
        const int64_t integer = (int64_t)(x * 1000);
        uint32_t bits;
        memcpy(&bits, &x, sizeof(bits));
        bits >>= 16;
        memcpy(t->pushed + i * t->element,
               dtype == TRIB_F32    ? (const void *)&x
               : dtype == TRIB_F64  ? (const void *)&wide
               : dtype == TRIB_BF16 ? (const void *)&bits
                                    : (const void *)&integer,
               t->element);
    }
}

/* Draw unordered pairs with some repetitions. */
static void draw_indices(const struct twins *t, int push, size_t n)
{
    for (size_t i = 0; i < n; i++)
        t->indices[i] = (i * 7919 + (size_t)push * 31) % t->count / 2 * 2;
}

static void same(const struct twins *t, size_t bytes, const char *what)
{
    if (memcmp(t->got[0], t->got[1], bytes))
        ranks_die(t->self, "%s of %zu elements differs", what, t->count);
}

/* Push once more: dense, sparse, or encoded, with its result or without. */
static void push(const struct twins *t, trib_dtype_t dtype, int n)
{
    static const char *const codecs[] = {"topk:ratio=0.01", "qsgd:bits=4",
                                         "topk:k=1000", "efsign"};
    trib_push_opts_t o = TRIB_PUSH_OPTS_INIT;
    const size_t pairs = t->count > 9 ? t->count / 9 : 1;
    uint64_t version[2];

    if (n % 3 == 1) {
        draw_indices(t, n, pairs);
        o.indices = t->indices;
        o.count = pairs;
    } else if (n % 3 == 2 && dtype != TRIB_F64 && dtype != TRIB_I64) {
        o.codec = t->aligned ? codecs[n % 4] : "bf16";
    }
    for (int i = 0; i < 2; i++) {
        o.result = n % 2 ? t->got[i] : NULL;
        need(t, i, trib_store_push(t->v[i], t->pushed, &o, &version[i]), "push");
    }
    ranks_assert(t->self, version[0] == version[1]);
    if (n % 2)
        same(t, (o.indices ? pairs : t->count) * t->element, "a result");
}

static void pull(const struct twins *t, bool coded)
{
    trib_pull_opts_t part = TRIB_PULL_OPTS_INIT, each = TRIB_PULL_OPTS_INIT;
    trib_pull_opts_t words = TRIB_PULL_OPTS_INIT;
    const size_t pairs = t->count > 5 ? t->count / 5 : 1;
    const trib_pull_opts_t *const all[] = {NULL, &part, &each, coded ? &words : NULL};

    part.first = t->count / 4;
    part.count = t->count - t->count / 3 - part.first;
    each.indices = t->indices;
    each.count = pairs;
    words.codec = "bf16";
    draw_indices(t, 1000, pairs);
    for (int k = 0; k < 4; k++) {
        const size_t n = k == 1 ? part.count : k == 2 ? pairs : t->count;
        uint64_t version[2];
        for (int i = 0; i < 2; i++)
            need(t, i, trib_store_pull(t->v[i], t->got[i], all[k], &version[i]),
                 "pull");
        ranks_assert(t->self, version[0] == version[1]);
        same(t, n * t->element, "a pull");
    }
}

static void run(struct twins *t, size_t count, trib_dtype_t dtype, const char *rule,
                int shards)
{
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    char name[80];
    const int ranks = t->self->size;

    snprintf(name, sizeof(name), "%zu.%d.%c.%d", count, (int)dtype, rule[0], shards);
    d.name = name;
    d.count = t->count = count;
    d.dtype = dtype;
    d.rule = rule;
    d.initial = t->pushed;
    t->element = trib_dtype_size(dtype);
    t->aligned = count >= (size_t)shards * UNIT;
    draw(t, dtype, 99);
    for (int i = 0; i < 2; i++) {
        d.shards = i ? shards : 1;
        need(t, i, trib_store_create(t->store[i], &d, &t->v[i]), "create");
    }
    ranks_assert(t->self, t->v[0]->n_parts == 1);
    ranks_assert(t->self, t->v[1]->n_parts == (count < 3 ? (int)count : shards));
    for (int n = 0; n < PUSHES; n++) {
        draw(t, dtype, n);
        if (n % ranks == t->self->rank)
            push(t, dtype, n);
        ranks_ok(t->self, trib_barrier(t->self->comm));
    }
    pull(t, dtype != TRIB_F64 && dtype != TRIB_I64);
}

static int bits_of_whole(struct ranks_self *self)
{
    static const size_t sizes[] = {1, 2, 7, UNIT + 1, MOST};
    struct twins t = {.self = self,
                      .pushed = some(self, MOST * 8),
                      .got = {some(self, MOST * 8), some(self, MOST * 8)},
                      .indices = some(self, MOST * 8)};

    for (int i = 0; i < 2; i++)
        ranks_ok(self, trib_store_open(self->comm, &t.store[i]));
    for (int i = 0; i < 5; i++)
        for (int shards = 2; shards <= 3; shards++) {
            if (i > 3 && shards == 2)
                continue;
            run(&t, sizes[i], TRIB_F32, "adam:rate=0.01,decay=0.1", shards);
            run(&t, sizes[i], TRIB_BF16, "sgd:rate=0.25,momentum=0.5", shards);
            run(&t, sizes[i], TRIB_I64, "sum", shards);
            if (i < 3)
                run(&t, sizes[i], TRIB_F64, "sgd:rate=0.5,nesterov=1,momentum=0.9",
                    shards);
        }
    for (int i = 0; i < 2; i++)
        ranks_ok(self, trib_store_free(t.store[i]));
    free(t.pushed);
    free(t.got[0]);
    free(t.got[1]);
    free(t.indices);
    return 0;
}

/* All ranks push at once, in step: each part has all pushes of the version. */
static int at_once(struct ranks_self *self)
{
    enum { COUNT = 2 * UNIT + 5 };
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    trib_pull_opts_t newer = TRIB_PULL_OPTS_INIT;
    trib_store_t *store = NULL;
    trib_vector_t *v = NULL;
    int64_t *x = some(self, COUNT * sizeof(*x));
    uint64_t version = 0;

    ranks_ok(self, trib_store_open(self->comm, &store));
    snapshot_rig_need(self, store, trib_store_set_staleness(store, 1), "staleness");
    d.name = "ones";
    d.count = COUNT;
    d.dtype = TRIB_I64;
    d.shards = 3;
    snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
    for (int n = 1; n <= 12; n++) {
        for (int i = 0; i < COUNT; i++)
            x[i] = 1;
        snapshot_rig_need(self, store, trib_store_push(v, x, NULL, NULL), "push");
        newer.at_least = (uint64_t)n;
        snapshot_rig_need(self, store, trib_store_pull(v, x, &newer, &version), "pull");
        ranks_assert(self, version >= (uint64_t)(n + (self->size - 1) * (n - 1)));
        for (int i = 0; i < COUNT; i++)
            ranks_assert(self, x[i] >= (int64_t)version);
    }
    snapshot_rig_need(self, store,
                      trib_store_wait(v, (uint64_t)(12 * self->size), 0, NULL), "wait");
    snapshot_rig_need(self, store, trib_store_pull(v, x, NULL, &version), "pull");
    ranks_assert(self, version == (uint64_t)(12 * self->size));
    for (int i = 0; i < COUNT; i++)
        ranks_assert(self, x[i] == 12 * self->size);
    d.name = "long";
    d.count = (2 << 20) / sizeof(*x); /* a MiB for each part */
    d.shards = 0;
    snapshot_rig_need(self, store, trib_store_create(store, &d, &v), "create");
    ranks_assert(self, v->n_parts == 2);
    d.name = "other";
    d.shards = -1;
    snapshot_rig_refused(self, store, trib_store_create(store, &d, &v),
                         TRIB_ERR_INVALID, "shards is -1");
    ranks_ok(self, trib_store_free(store));
    free(x);
    return 0;
}

static void on_daemons(int (*fn)(struct ranks_self *self), const char *transport,
                       int size)
{
    struct snapshot_rig rig;
    char config[200];

    if (!snapshot_rig_open(&rig, DAEMONS, false))
        tribtest_skip("built without libmicrohttpd");
    snapshot_rig_config(&rig, transport + sizeof("transport=") - 1, config);
    ranks_pass(.size = size, .fn = fn, .config = config, .seconds = 100);
    snapshot_rig_close(&rig);
}

TEST_ON(test_bits, "shm")
{
    on_daemons(bits_of_whole, *state, 2);
}

TEST_ON(test_at_once, "tcp", IF_UCX("ucx"))
{
    on_daemons(at_once, *state, 3);
}
