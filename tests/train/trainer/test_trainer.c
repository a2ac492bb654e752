/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trainers: every strategy that needs no service finds the minimum, and one rank is
 * plain SGD bit for bit. A run that is saved and loaded continues with the same bits,
 * and invalid texts are rejected with an error message.
 */
#include "base/sections.h"
#include "tests/train/quadratic.h"

/* Strategies and their distance from the minimum after 240 steps. Ranks of lsgd move to
 * the best one's minimum; those with a constant rate and local steps stay apart. */
static const struct {
    const char *strategy;
    double near;
} runs[] = {
    {"sync", 1e-5},
    {"pipe:width=2", 1e-5},
    {"pipe:width=2,predict=1", 1e-5},
    {"local:period=4", 1e-5},
    {"local:period=4,fragments=2,late=2", 1e-3},
    {"diloco:period=4", 1e-3},
    {"sgp:graph=exponential", 0.3},
    {"sgp:graph=ring", 0.3},
    {"sgp:graph=bipartite", 0.3},
    {"sgp:graph=random,peers=2", 0.3},
    {"osgp:tau=2", 0.5},
    {"agp", 0.5},
    {"sgp:graph=exponential+qsgd", 0.3},
    {"easgd:period=4", 1e-3},
    {"lsgd:period=4,pull=0.1", 1},
    {"lsgd:period=4,late=2,groups=host", 1},
    {"sync+int8", 1e-2},
    {"sync+topk:ratio=0.25", 0.3},
    {"pipe:width=2+int8", 1e-2},
    {"local:period=4+topk:ratio=0.25", 0.5},
};

static int finds_minimum(struct ranks_self *self)
{
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct quadratic q;

        quadratic_init(&q, self, runs[i].strategy);
        quadratic_open(&q);
        quadratic_train(&q, 240);
        if (!(quadratic_distance(&q) <= runs[i].near))
            ranks_die(self, "%s: %g from the minimum", runs[i].strategy,
                      quadratic_distance(&q));
        quadratic_close(&q);
    }
    return 0;
}

TEST(test_finds_minimum)
{
    ranks_pass(.size = 1, .fn = finds_minimum, .config = "transport=shm");
    ranks_pass(.size = 2, .fn = finds_minimum, .config = "transport=tcp");
    ranks_pass(.size = 3, .fn = finds_minimum, .config = "transport=shm");
}

/* With a feed, parts are summed as they arrive, each with its codec: the result has the
 * same bits as with the whole gradient. */
RANKS_TEST(test_feeds, .size = 2, .config = "transport=shm")
{
    static const char *const strategies[] = {"sync", "pipe:width=1", "sync+int8",
                                             "sync+topk:ratio=0.25"};
    struct quadratic whole, fed;

    for (int s = 0; s < 4; s++) {
        quadratic_init(&whole, self, strategies[s]);
        quadratic_cut(&whole);
        quadratic_open(&whole);
        quadratic_steps(&whole, 20);
        quadratic_finish(&whole);
        quadratic_close(&whole);
        quadratic_init(&fed, self, strategies[s]);
        quadratic_cut(&fed);
        fed.desc.feed = TRIB_FEED_BACKWARD;
        quadratic_open(&fed);
        quadratic_steps(&fed, 20);
        quadratic_finish(&fed);
        quadratic_close(&fed);
        if (memcmp(whole.x, fed.x, sizeof(fed.x)) != 0)
            ranks_die(self, "%s: a fed gradient gives other bits", strategies[s]);
    }
    return 0;
}

/* One rank is the optimizer alone. */
RANKS_TEST(test_is_plain_sgd, .size = 1, .config = "transport=shm")
{
    static const char *const strategies[] = {"sync", "pipe:width=1", "local:period=1",
                                             "sgp",  "osgp:tau=2",   "lsgd:period=3",
                                             "agp"};
    float x[QUADRATIC_COUNT], v[QUADRATIC_COUNT] = {0};

    for (int s = 0; s < 7; s++) {
        struct quadratic q;

        quadratic_init(&q, self, strategies[s]);
        q.desc.optimizer = "sgd:momentum=0.5,decay=0.01";
        memset(v, 0, sizeof(v));
        memcpy(x, q.x, sizeof(x));
        quadratic_open(&q);
        quadratic_steps(&q, 30);
        quadratic_finish(&q);
        quadratic_close(&q);
        for (int k = 0; k < 30; k++)
            for (size_t i = 0; i < QUADRATIC_COUNT; i++) {
                v[i] = 0.5f * v[i] + (x[i] - quadratic_target(0, i) + 0.01f * x[i]);
                x[i] -= 0.1f * v[i];
            }
        for (size_t i = 0; i < QUADRATIC_COUNT; i++)
            if (!(x[i] - q.x[i] < 1e-5f && q.x[i] - x[i] < 1e-5f))
                ranks_die(self, "%s: element %zu is %.9g, not %.9g", strategies[s], i,
                          (double)q.x[i], (double)x[i]);
    }
    return 0;
}

static void save(struct quadratic *q, unsigned char **bytes_out, size_t *n_out)
{
    size_t again;

    ranks_ok(q->self, trib_trainer_save(q->trainer, NULL, 0, n_out));
    *bytes_out = malloc(*n_out);
    ranks_assert(q->self, *bytes_out);
    ranks_ok(q->self, trib_trainer_save(q->trainer, *bytes_out, *n_out, &again));
    ranks_assert(q->self, again == *n_out);
}

RANKS_TEST(test_goes_on, .size = 3, .config = "transport=shm")
{
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct quadratic a, b;
        unsigned char *bytes;
        size_t n;

        if (strncmp(runs[i].strategy, "osgp", 4) == 0 ||
            strcmp(runs[i].strategy, "agp") == 0)
            continue; /* its bits depend on the arrival of shares */
        quadratic_init(&a, self, runs[i].strategy);
        a.desc.optimizer = "adam";
        quadratic_open(&a);
        quadratic_steps(&a, 11);
        quadratic_finish(&a);
        save(&a, &bytes, &n);
        quadratic_steps(&a, 9);
        quadratic_finish(&a);
        quadratic_init(&b, self, runs[i].strategy);
        b.desc.optimizer = "adam";
        quadratic_open(&b);
        quadratic_steps(&b, 3);
        quadratic_finish(&b);
        ranks_ok(self, trib_trainer_load(b.trainer, bytes, n));
        quadratic_steps(&b, 9);
        quadratic_finish(&b);
        if (memcmp(a.x, b.x, sizeof(a.x)) != 0)
            ranks_die(self, "%s: a loaded run has other bits", runs[i].strategy);
        bytes[n / 2] ^= 1;
        ranks_expect(self, trib_trainer_load(b.trainer, bytes, n), TRIB_ERR_INVALID,
                     "damaged bytes");
        ranks_assert(self, strstr(trib_trainer_error(b.trainer), "damaged"));
        bytes[8]++;
        ranks_expect(self, trib_trainer_load(b.trainer, bytes, n), TRIB_ERR_INVALID,
                     "another version");
        ranks_assert(self, strstr(trib_trainer_error(b.trainer),
                                  "has version 4, but this library reads version 3"));
        free(bytes);
        quadratic_close(&a);
        quadratic_close(&b);
    }
    return 0;
}

/* ---- rejected states ------------------------------------------------------------- */

/* Change the magic number of the last sum's state. */
static void spoil_last_sum(unsigned char *state, size_t n)
{
    struct trib_sections r = {
        .state = state, .bytes = n, .at = TRIB_SECTIONS_HEAD_BYTES};
    struct trib_section s;
    size_t at = 0;

    while (trib_sections_step(&r, &s))
        if (strcmp(s.name, "sum") == 0)
            at = (size_t)(s.data - state);
    state[at] ^= 1;
    trib_sections_seal(state, n);
}

/* Check that the trainer rejects the state, keeps its own, and continues. */
static void must_stay(struct quadratic *q, unsigned char *state, size_t bytes)
{
    unsigned char *before, *after;
    size_t n, n_after;

    save(q, &before, &n);
    ranks_expect(q->self, trib_trainer_load(q->trainer, state, bytes), TRIB_ERR_INVALID,
                 q->desc.strategy);
    save(q, &after, &n_after);
    if (n != n_after || memcmp(before, after, n) != 0)
        ranks_die(q->self, "%s: a refused state has changed it", q->desc.strategy);
    quadratic_steps(q, 6);
    quadratic_finish(q);
    free(before);
    free(after);
}

RANKS_TEST(test_stays, .size = 2, .config = "transport=shm")
{
    static const char *const strategies[] = {
        "sync+topk:ratio=0.1", "local:period=2,fragments=3+topk:ratio=0.1",
        "pipe:width=auto+topk:ratio=0.1|qsgd:ef=1"};

    for (int i = 0; i < 3; i++) {
        unsigned char *state, *longer;
        struct quadratic q;
        size_t n;

        quadratic_init(&q, self, strategies[i]);
        quadratic_open(&q);
        quadratic_steps(&q, 20);
        quadratic_finish(&q);
        save(&q, &state, &n);
        longer = calloc(1, n + 24); /* with one more section, of no bytes */
        ranks_assert(self, longer);
        memcpy(longer, state, n);
        memcpy(longer + n, "more", 4);
        trib_sections_seal(longer, n + 24);
        quadratic_steps(&q, 6);
        quadratic_finish(&q);
        must_stay(&q, longer, n + 24);
        spoil_last_sum(state, n);
        must_stay(&q, state, n);
        free(state);
        free(longer);
        quadratic_close(&q);
    }
    return 0;
}

/* The loss (x^2 - 1)^2 has two wells. The first steps move two ranks to -0.6 and 0.6.
 * With elastic averaging they hold each other in the middle; a leader draws both into
 * its own well. */
static double well(struct ranks_self *self, const char *strategy)
{
    trib_trainer_desc_t desc = TRIB_TRAINER_DESC_INIT;
    trib_trainer_t *t;
    float x = 0;

    desc.params = &x;
    desc.count = 1;
    desc.strategy = strategy;
    desc.rate = "0.01";
    ranks_ok(self, trib_trainer_create(self->comm, &desc, &t));
    for (int s = 0; s < 600; s++) {
        trib_step_t step = TRIB_STEP_INIT;

        ranks_ok(self, trib_trainer_begin(t, &step));
        const float z = *step.params, side = self->rank == 0 ? 60 : -60;
        *step.gradient = s == 0 ? side : 4 * z * (z * z - 1);
        ranks_ok(self, trib_trainer_end(t, (double)((z * z - 1) * (z * z - 1))));
    }
    ranks_ok(self, trib_trainer_settle(t, NULL));
    ranks_ok(self, trib_trainer_free(t));
    return (double)((x * x - 1) * (x * x - 1));
}

RANKS_TEST(test_leaves_the_middle, .size = 2, .config = "transport=shm")
{
    static const char *const leaders[] = {"lsgd:period=4,pull=0.1",
                                          "lsgd:period=4,pull=0.1,late=3"};
    const double middle = well(self, "easgd:period=4,beta=0.9");

    if (!(middle > 0.99 && middle < 1.01))
        ranks_die(self, "easgd ends at a loss of %g, not in the middle", middle);
    for (int s = 0; s < 2; s++) {
        const double end = well(self, leaders[s]);

        if (!(end < 1e-6))
            ranks_die(self, "%s ends at a loss of %g", leaders[s], end);
    }
    return 0;
}

/* A percentage in a codec or feedback text is a share of the run's sums. Without the
 * conversion neither text would be valid. */
RANKS_TEST(test_takes_shares, .size = 2, .config = "transport=shm")
{
    static const struct {
        const char *strategy, *feedback, *says;
    } texts[] = {
        {"sync+lgc:ratio=0.5,dense=10%,train=12.5%", "ef14:momentum=0.9",
         "lgc:ratio=0.5,dense=24,train=30\n"},
        {"local:period=4+lgc:ratio=0.5,dense=0,train=10%", "ef14",
         "lgc:ratio=0.5,dense=0,train=6\n"},
        {"sync+topk:ratio=0.25", "ef14:warmup=5%", "topk:ratio=0.25\n"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct quadratic q;
        char text[4096];

        quadratic_init(&q, self, texts[i].strategy);
        q.desc.rate = "constant:rate=0.1,steps=240";
        q.desc.feedback = texts[i].feedback;
        quadratic_open(&q);
        quadratic_steps(&q, 8);
        trib_trainer_explain(q.trainer, text, sizeof(text));
        if (!strstr(text, texts[i].says))
            ranks_die(self, "\"%s\" does not say \"%s\"", text, texts[i].says);
        quadratic_finish(&q);
        quadratic_close(&q);
    }
    return 0;
}

static void no_update(void *arg, float *params, const float *gradient, size_t first,
                      size_t count, double rate)
{
    (void)arg, (void)params, (void)gradient, (void)first, (void)count, (void)rate;
}

static int refuses(struct ranks_self *self)
{
    static const struct {
        const char *strategy, *optimizer, *rate, *codec;
        const char *word;
    } bad[] = {
        {"sink", NULL, NULL, NULL, "sync"},
        {"pipe:width=9", NULL, NULL, NULL, "width"},
        {"local:periods=3", NULL, NULL, NULL, "period"},
        {"sgp:graph=star", NULL, NULL, NULL, "exponential"},
        {"sgp+topk", NULL, NULL, NULL, "codec"},
        {"lsgd:groups=9", NULL, NULL, NULL, "groups"},
        {"lsgd:groups=rack", NULL, NULL, NULL, "host"},
        {"lsgd:period=4,late=4", NULL, NULL, NULL, "below period"},
        {"sync+int8", NULL, NULL, "topk", "two codecs"},
        {"sync+topj", NULL, NULL, NULL, "topk"},
        {"sync", "sgd:momentum=2", NULL, NULL, "momentum"},
        {"sync", "adamm", NULL, NULL, "adam"},
        {"sync", NULL, "linear:rate=0.1", NULL, "steps="},
        {"sync", NULL, "fast", NULL, "constant"},
        {"sync+topk:ratio=1%", NULL, NULL, NULL, "fraction of the run"},
        {"sync+", NULL, NULL, NULL, "no codec after the +"},
        {"diloco:momentum=0,nesterov=1", NULL, NULL, NULL, "needs momentum"},
        {"sync", NULL, "linear:rate=0.1,warmup=9,steps=8", NULL, "warmup is 9"},
        {"sync", NULL, "constant:rate=0.1,warmup=1.5", NULL, "warmup is 1.5"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct quadratic q;
        trib_trainer_t *none;

        quadratic_init(&q, self, bad[i].strategy);
        q.desc.optimizer = bad[i].optimizer;
        q.desc.rate = bad[i].rate ? bad[i].rate : "0.1";
        q.desc.codec = bad[i].codec;
        ranks_assert(self,
                     trib_trainer_create(self->comm, &q.desc, &none) < 0 && !none);
        if (!strstr(trib_trainer_error(NULL), bad[i].word))
            ranks_die(self, "\"%s\" does not say \"%s\"", trib_trainer_error(NULL),
                      bad[i].word);
    }
    return 0;
}

/* Momentum in the feedback and in what applies the sum; texts that the strategy has no
 * use for. */
static const struct {
    const char *strategy, *optimizer, *codec, *feedback;
    const char *words[2]; /* of the sentence; NULL: it is taken */
} texts[] = {
    {"sync", "sgd:momentum=0.9", "topk", "ef14:momentum=0.9", {"ef14:m", "sgd, m"}},
    {"pipe", "sgd:momentum=0.9", "topk", "ef14:momentum=0.5", {"ef14:m", "sgd, m"}},
    {"sync+topk", "adam", NULL, "ef14:momentum=0.9", {"momentum twice", "adam"}},
    {"sync", "sgd:momentum=0.9", "topk", "ef21:momentum=0.1", {"ef21:m", "sgd, m"}},
    {"diloco+topk", NULL, NULL, "ef14:momentum=0.9", {"ef14:m", "momentum=0.5"}},
    {"local:momentum=0.5+topk", NULL, NULL, "ef14:momentum=0.9", {"ef14:m", "local"}},
    {"sync", "sgd:momentum=0.9", "topk", "ef21:momentum=1", {NULL}},
    {"sync", "sgd:momentum=0.9", "topk", "ef14:clip=1", {NULL}},
    {"sync", "adam:beta1=0", "topk", "ef14:momentum=0.9", {NULL}},
    {"local", "sgd:momentum=0.9", "topk", "ef14:momentum=0.9", {NULL}},
    {"diloco:momentum=0", "adam", "topk", "ef14:momentum=0.9", {NULL}},
    {"sgp", NULL, "int8", "ef14", {"sgp", "ef14"}},
    {"agp", NULL, NULL, "ef14", {"agp", "ef14"}},
    {"lsgd", NULL, NULL, "ef14", {"lsgd", "ef14"}},
    {"lsgd:period=4,global=8", NULL, NULL, NULL, {"global", "groups"}},
    {"local:nesterov=1", NULL, NULL, NULL, {"nesterov", "momentum"}},
};

static int takes_texts(struct ranks_self *self)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct quadratic q;

        quadratic_init(&q, self, texts[i].strategy);
        q.desc.optimizer = texts[i].optimizer;
        q.desc.codec = texts[i].codec;
        q.desc.feedback = texts[i].feedback;
        if (!texts[i].words[0]) {
            quadratic_open(&q);
            quadratic_close(&q);
            continue;
        }
        ranks_assert(self, trib_trainer_create(self->comm, &q.desc, &q.trainer) < 0);
        for (int w = 0; w < 2; w++)
            if (!strstr(trib_trainer_error(NULL), texts[i].words[w]))
                ranks_die(self, "row %zu: \"%s\" does not say \"%s\"", i,
                          trib_trainer_error(NULL), texts[i].words[w]);
    }
    return 0;
}

/* The same for parts, which have their own texts, and for an optimizer next to a
 * function. */
static int takes_parts(struct ranks_self *self)
{
    static const char *const strategies[] = {"sync", "agp", "lsgd", "sgp"};
    struct quadratic q;

    for (int s = 0; s < 4; s++) {
        quadratic_init(&q, self, strategies[s]);
        quadratic_cut(&q);
        q.desc.optimizer = s ? NULL : "sgd:momentum=0.9";
        q.parts[0].codec = "topk";
        q.parts[0].feedback = "ef14:momentum=0.9";
        ranks_assert(self, trib_trainer_create(self->comm, &q.desc, &q.trainer) < 0);
        if (!strstr(trib_trainer_error(NULL), s ? "part part0" : "momentum twice"))
            ranks_die(self, "%s: %s", strategies[s], trib_trainer_error(NULL));
    }
    quadratic_init(&q, self, "sync+topk");
    quadratic_cut(&q);
    q.parts[1].codec = NULL;
    q.parts[1].feedback = "ef14";
    ranks_assert(self, trib_trainer_create(self->comm, &q.desc, &q.trainer) < 0);
    ranks_assert(self, strstr(trib_trainer_error(NULL), "name the codec"));
    quadratic_init(&q, self, "sync");
    q.desc.optimizer = "adam";
    q.desc.update = no_update;
    ranks_assert(self, trib_trainer_create(self->comm, &q.desc, &q.trainer) < 0);
    ranks_assert(self, strstr(trib_trainer_error(NULL), "adam"));
    return 0;
}

/* Fields that would be ignored, or that no value can be right for. */
static int refuses_fields(struct ranks_self *self)
{
    static const char *const words[] = {"feed is 7",     "n_parts is 2",
                                        "n_parts is 0",  "parts[1].size",
                                        "parts[0].dims", "ef14"};

    for (int i = 0; i < 6; i++) {
        struct quadratic q;

        quadratic_init(&q, self, i ? "sync" : "local");
        if (i >= 2)
            quadratic_cut(&q);
        if (i == 0)
            q.desc.feed = (trib_feed_t)7;
        q.desc.n_parts = i == 1 ? 2 : i == 2 ? 0 : q.desc.n_parts;
        if (i == 3)
            q.parts[1].size--;
        if (i == 4)
            q.parts[0].dims = -1;
        if (i == 5)
            q.desc.feedback = "ef14";
        ranks_assert(self, trib_trainer_create(self->comm, &q.desc, &q.trainer) < 0);
        if (!strstr(trib_trainer_error(NULL), words[i]))
            ranks_die(self, "\"%s\" does not say \"%s\"", trib_trainer_error(NULL),
                      words[i]);
    }
    return 0;
}

/* TRIB_FEEDBACK sets the feedback. */
static int takes_configured(struct ranks_self *self)
{
    struct quadratic q;

    quadratic_init(&q, self, "sync+topk");
    quadratic_open(&q);
    quadratic_close(&q);
    q.desc.optimizer = "sgd:momentum=0.9";
    ranks_assert(self, trib_trainer_create(self->comm, &q.desc, &q.trainer) < 0);
    ranks_assert(self, strstr(trib_trainer_error(NULL), "momentum twice"));
    q.desc.feedback = "ef14";
    quadratic_open(&q);
    quadratic_close(&q);
    return 0;
}

TEST(test_refuses)
{
    ranks_pass(.size = 2, .fn = takes_configured,
               .config = "transport=shm;feedback=ef14:momentum=0.9");
    ranks_pass(.size = 2, .fn = refuses, .config = "transport=shm");
    ranks_pass(.size = 2, .fn = takes_texts, .config = "transport=shm");
    ranks_pass(.size = 2, .fn = takes_parts, .config = "transport=shm");
    ranks_pass(.size = 2, .fn = refuses_fields, .config = "transport=shm");
}

/* An error on one rank is an error on all, which name the rank. */
RANKS_TEST(test_refuses_on_all, .size = 3, .config = "transport=shm")
{
    struct quadratic q;
    trib_trainer_t *none;

    quadratic_init(&q, self, self->rank == 1 ? "pipe:width=9" : "pipe:width=2");
    ranks_expect(self, trib_trainer_create(self->comm, &q.desc, &none),
                 TRIB_ERR_INVALID, "create");
    ranks_assert(self, strstr(trib_trainer_error(NULL),
                              self->rank == 1 ? "width is \"9\"" : "rank 1"));
    return 0;
}
