/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a plan: after save and load, a run continues with the same bits. A state
 * that does not match is refused with a message that names the reason, and damaged
 * bytes do no harm.
 */
#include "tests/harness/tribtest.h"

#include <sys/mman.h>

#include "comm/core/plan_struct.h"
#include "comm/state/plan_state.h"
#include "tests/comm/fed.h"

#define COUNT 2500
#define STEPS 8
#define PLAN (TRIB_SECTIONS_HEAD_BYTES + 24) /* of struct trib_state_plan */

static void run(ranks_fn fn, const struct fed_scene *s, int size)
{
    ranks_pass(.size = size, .fn = fn, .arg = (void *)s, .config = "transport=shm");
}

struct saved {
    unsigned char *bytes;
    size_t n;
};

static struct saved save(struct ranks_self *self, trib_plan_t *plan)
{
    struct saved s;
    size_t again;

    ranks_ok(self, trib_plan_state_save(plan, NULL, 0, &s.n));
    s.bytes = malloc(s.n);
    ranks_assert(self, s.bytes);
    ranks_ok(self, trib_plan_state_save(plan, s.bytes, s.n, &again));
    ranks_assert(self, again == s.n);
    return s;
}

/* Run steps [from, to), and hash each result. */
static void steps(struct fed *f, uint64_t from, uint64_t to, uint64_t *hashes)
{
    for (uint64_t k = from; k < to; k++) {
        fed_fill(f, k);
        fed_run(f);
        hashes[k] = oracle_hash(f->recv, f->count * f->element);
    }
}

static int goes_on(struct ranks_self *self)
{
    uint64_t whole[STEPS], parts[STEPS];
    struct fed f;

    fed_open(&f, self, self->arg, COUNT);
    steps(&f, 0, STEPS, whole);
    struct saved end = save(self, f.plan);
    fed_close(&f);
    fed_open(&f, self, self->arg, COUNT);
    steps(&f, 0, STEPS / 2, parts);
    struct saved s = save(self, f.plan);
    fed_close(&f);
    fed_open(&f, self, self->arg, COUNT);
    steps(&f, STEPS - 1, STEPS, parts); /* this step is discarded */
    ranks_ok(self, trib_plan_state_load(f.plan, s.bytes, s.n));
    steps(&f, STEPS / 2, STEPS, parts);
    for (int k = 0; k < STEPS; k++)
        if (whole[k] != parts[k])
            ranks_die(self, "%s %s: step %d has other bits", f.scene->codec,
                      f.scene->feedback, k);
    struct saved last = save(self, f.plan);
    ranks_assert(self, last.n == end.n && memcmp(last.bytes, end.bytes, end.n) == 0);
    fed_close(&f);
    free(s.bytes), free(end.bytes), free(last.bytes);
    return 0;
}

TEST(test_goes_on)
{
    static const struct fed_scene scenes[] = {
        {"topk:ratio=0.1", NULL, "direct", TRIB_F32, TRIB_SUM},
        {"qsgd:bits=4", NULL, "ring", TRIB_F32, TRIB_MEAN},
        {"qsgd:bits=4", "ef14", "halving-doubling", TRIB_F64, TRIB_SUM},
        {"topk:ratio=0.01", "ef14:momentum=0.9,nesterov=1,clip=2,warmup=6,stages=3",
         "tree", TRIB_F32, TRIB_MEAN},
        {"topk:ratio=0.1", "ef21", "flat", TRIB_F32, TRIB_SUM},
        {"topk:ratio=0.05+natural", "ef21:momentum=0.1", "ring", TRIB_F16, TRIB_MEAN},
        {"randomk:ratio=0.05", "ef14:momentum=0.9", "ring", TRIB_F32, TRIB_SUM},
        {"int8", "ef14:momentum=0.9,nesterov=1", "direct", TRIB_F32, TRIB_SUM},
        {"none", NULL, "auto", TRIB_F32, TRIB_SUM},
    };

    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
        for (int size = 1; size <= 3; size++)
            run(goes_on, &scenes[i], size);
        struct ranks_job threads = {.size = 2,
                                    .fn = goes_on,
                                    .arg = (void *)&scenes[i],
                                    .config = "transport=loop",
                                    .threads = true};
        assert_int_equal(ranks_run(&threads), 0);
    }
}

/* ---- states that do not match ---------------------------------------------------- */

static void put32(struct saved *s, size_t at, uint32_t value)
{
    memcpy(s->bytes + at, &value, sizeof(value));
    trib_sections_seal(s->bytes, s->n);
}

/* Return the state of another plan of this rank. */
static struct saved state_of(struct ranks_self *self, const struct fed_scene *s,
                             size_t count)
{
    struct fed f;

    fed_open(&f, self, s, count);
    struct saved x = save(self, f.plan);
    fed_close(&f);
    return x;
}

static void expect_refused(struct fed *f, struct saved s, const char *const *words)
{
    struct ranks_self *self = f->self;
    struct saved before = save(self, f->plan);
    trib_status_t st = trib_plan_state_load(f->plan, s.bytes, s.n);
    const char *text = trib_last_error(self->comm);

    if (st != TRIB_ERR_INVALID || !ranks_has(text, words))
        ranks_die(self, "%s, not a sentence with \"%s\": %s", trib_status_name(st),
                  words[0], text);
    ranks_say(self, "%s", text);
    struct saved after = save(self, f->plan);
    ranks_assert(self, memcmp(before.bytes, after.bytes, before.n) == 0);
    free(before.bytes), free(after.bytes), free(s.bytes);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static int differs(struct ranks_self *self)
{
    const struct fed_scene *mine = self->arg;
    struct fed_scene other = *mine;
    struct saved s;
    struct fed f;

    fed_open(&f, self, mine, 500);
    expect_refused(&f, state_of(self, mine, 501), WORDS("count 501", "500"));
    other.codec = "topk:ratio=0.2";
    expect_refused(&f, state_of(self, &other, 500),
                   WORDS("codec", "ratio=0.2", "ratio=0.1"));
    other = *mine;
    other.feedback = "ef21";
    expect_refused(&f, state_of(self, &other, 500), WORDS("feedback", "ef21", "ef14"));
    other = *mine;
    other.dtype = TRIB_F64;
    expect_refused(&f, state_of(self, &other, 500), WORDS("dtype f64", "f32"));
    other = *mine;
    other.op = TRIB_MEAN;
    expect_refused(&f, state_of(self, &other, 500), WORDS("op mean", "sum"));
    s = state_of(self, mine, 500);
    put32(&s, PLAN + offsetof(struct trib_state_plan, ranks), 7);
    expect_refused(&f, s, WORDS("ranks 7", "1"));
    s = state_of(self, mine, 500);
    put32(&s, PLAN + offsetof(struct trib_state_plan, rank), 3);
    expect_refused(&f, s, WORDS("rank 3", "0"));
    s = state_of(self, mine, 500);
    put32(&s, 8, 1);
    expect_refused(&f, s, WORDS("version 1", "version 3"));
    s = state_of(self, mine, 500);
    s.bytes[100] ^= 1;
    expect_refused(&f, s, WORDS("damaged", "checksum"));
    s = state_of(self, mine, 500);
    s.n -= 8;
    expect_refused(&f, s, WORDS("bytes"));
    s = state_of(self, mine, 500);
    memcpy(s.bytes + PLAN + sizeof(struct trib_state_plan), "bases\n\0\0", 8);
    trib_sections_seal(s.bytes, s.n);
    expect_refused(&f, s, WORDS("section \"bases\\x0a\""));
    s = state_of(self, mine, 500);
    s.n = 10;
    expect_refused(&f, s, WORDS("10 bytes", "not the state"));
    fed_close(&f);
    return 0;
}

TEST(test_differences)
{
    run(differs,
        &(struct fed_scene){"topk:ratio=0.1", "ef14:momentum=0.9", "auto", TRIB_F32,
                            TRIB_SUM},
        1);
}

/* The key of random draws: a plan without a codec has none. */
static int keys(struct ranks_self *self)
{
    const struct fed_scene *mine = self->arg;
    struct fed f;

    fed_open(&f, self, mine, 500);
    for (uint32_t settled = 1; settled <= 2; settled++) {
        struct saved s = state_of(self, mine, 500);
        const struct trib_section key = trib_sections_find(s.bytes, s.n, "noise");

        ranks_assert(self, key.data);
        if (strcmp(mine->codec, "none") != 0 && settled == 1)
            free(s.bytes);
        else {
            put32(&s, (size_t)(key.data - s.bytes) + 8, settled);
            expect_refused(&f, s, WORDS("key of random draws"));
        }
    }
    fed_close(&f);
    return 0;
}

TEST(test_keys)
{
    static const struct fed_scene scenes[] = {
        {"none", NULL, "auto", TRIB_F32, TRIB_SUM},
        {"qsgd", NULL, "auto", TRIB_F32, TRIB_SUM},
    };

    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        run(keys, &scenes[i], 1);
}

/* Return n bytes before an inaccessible page. */
static unsigned char *guarded(struct ranks_self *self, size_t n)
{
    static unsigned char *end;
    const size_t room = (size_t)16 * (size_t)sysconf(_SC_PAGESIZE);

    if (!end) {
        unsigned char *p = mmap(NULL, 2 * room, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ranks_assert(self, p != MAP_FAILED && mprotect(p + room, room, PROT_NONE) == 0);
        end = p + room;
    }
    ranks_assert(self, n <= room);
    return end - n;
}

/* Any bytes with a valid checksum: they result in a status, and no access beyond
 * them. */
static int hostile(struct ranks_self *self)
{
    uint64_t seed = 1;
    size_t refused = 0;
    struct fed f;

    fed_open(&f, self, self->arg, 40);
    struct saved good = save(self, f.plan);
    for (int k = 0; k < 4000; k++) {
        size_t n = k % 3 ? good.n : (size_t)(oracle_mix(seed++) % (good.n + 1));
        struct saved bad = {guarded(self, n), n};
        memcpy(bad.bytes, good.bytes, n);
        for (int changes = k % 4 + 1; n && changes; changes--) {
            uint64_t r = oracle_mix(seed++);
            bad.bytes[r % n] = (unsigned char)(r >> 32);
        }
        if (n >= TRIB_SECTIONS_HEAD_BYTES) /* its length and checksum are valid */
            trib_sections_seal(bad.bytes, n);
        trib_status_t st = trib_plan_state_load(f.plan, bad.bytes, bad.n);
        ranks_assert(self, st == TRIB_OK || st == TRIB_ERR_INVALID);
        refused += st != TRIB_OK;
    }
    ranks_assert(self, refused > 1000 && refused < 4000);
    fed_fill(&f, 1);
    fed_run(&f);
    fed_close(&f);
    free(good.bytes);
    return 0;
}

TEST(test_hostile)
{
    run(hostile,
        &(struct fed_scene){"topk:ratio=0.1", "ef21:momentum=0.5", "auto", TRIB_F32,
                            TRIB_SUM},
        1);
}

/* ---- invalid calls --------------------------------------------------------------- */

static int refuses_calls(struct ranks_self *self)
{
    char room[8];
    float x[100] = {0};
    size_t n, sent;
    const unsigned char *mask;
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan, *dense;

    d.recv = x;
    d.count = 100;
    d.codec = "topk:ratio=0.1";
    d.feed = TRIB_FEED_FORWARD;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_sent(plan, &mask, &sent));
    ranks_assert(self, sent == 0);
    ranks_ok(self, trib_plan_start(plan));
    ranks_assert(self, trib_plan_state_save(plan, NULL, 0, &n) == TRIB_ERR_BUSY);
    ranks_assert(self, trib_plan_state_load(plan, room, 8) == TRIB_ERR_BUSY);
    ranks_assert(self, trib_plan_sent(plan, &mask, NULL) == TRIB_ERR_BUSY);
    ranks_ok(self, trib_plan_ready(plan, 0, 100));
    ranks_ok(self, trib_plan_wait(plan));
    ranks_assert(self, trib_plan_state_save(plan, room, 8, &n) == TRIB_ERR_OVERFLOW);
    ranks_assert(self, strstr(trib_last_error(self->comm), "room for 8"));
    ranks_assert(self, trib_plan_state_save(plan, room, 8, NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_state_load(plan, NULL, 8) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_sent(plan, NULL, NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_plan_sent(NULL, &mask, NULL) == TRIB_ERR_INVALID);
    d.codec = "bf16";
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &dense));
    ranks_assert(self, trib_plan_sent(dense, &mask, NULL) == TRIB_ERR_UNSUPPORTED);
    ranks_assert(self, strstr(trib_last_error(self->comm), "bf16"));
    ranks_ok(self, trib_plan_free(dense));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_calls)
{
    run(refuses_calls, NULL, 1);
    run(refuses_calls, NULL, 2);
}

/* One rank continues from another step than the others. */
static int other_step(struct ranks_self *self)
{
    uint64_t hashes[STEPS];
    struct fed f;

    fed_open(&f, self, self->arg, COUNT);
    steps(&f, 0, 2, hashes);
    struct saved s = save(self, f.plan);
    steps(&f, 2, 3, hashes);
    if (self->rank == 1)
        ranks_ok(self, trib_plan_state_load(f.plan, s.bytes, s.n));
    ranks_ok(self, trib_plan_start(f.plan));
    trib_status_t st = trib_plan_wait(f.plan);
    const char *text = trib_last_error(self->comm);
    if (st != TRIB_ERR_MISMATCH ||
        !ranks_has(text, WORDS("rank 1", "step 4", "step 3")))
        ranks_die(self, "%s: %s", trib_status_name(st), text);
    size_t n; /* an interrupted start has no state */
    ranks_assert(self, trib_plan_state_save(f.plan, NULL, 0, &n) == TRIB_ERR_MISMATCH);
    fed_close(&f);
    free(s.bytes);
    return 0;
}

TEST(test_other_step)
{
    run(other_step,
        &(struct fed_scene){"topk:ratio=0.1", NULL, "direct", TRIB_F32, TRIB_SUM}, 2);
}
