/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timing model of Pipe-SGD, compared with its formulas; the settings that reach a
 * gain of 5.4; and a trainer that measures its first steps, chooses, and continues.
 */
#include <math.h>

#include "tests/train/quadratic.h"
#include "train/trainer/estimate.h"

static trib_estimate_t given(const char *algorithm, int ranks)
{
    trib_estimate_t e = TRIB_ESTIMATE_INIT;

    e.algorithm = algorithm;
    e.ranks = ranks;
    e.count = 1000000;
    e.compute = 5e-3;
    e.update = 1e-3;
    e.latency = 1e-4;
    e.rate = 1e8;
    return e;
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * fabs(b)))
        fail_msg("%.12g, not %.12g", a, b);
}

/* 4 MB at 100 MB/s are 40 ms, and a message takes 0.1 ms. */
TEST(test_formulas)
{
    static const struct {
        const char *algorithm;
        int ranks;
        double ms;
    } sums[] = {
        {NULL, 4, 2 * 0.1 + 2 * 3 / 4.0 * 40},
        {"direct", 2, 2 * 0.1 + 40},
        {"ring", 4, 6 * 0.1 + 2 * 3 / 4.0 * 40},
        {"ring", 8, 14 * 0.1 + 2 * 7 / 8.0 * 40},
        {"halving-doubling", 8, 6 * 0.1 + 2 * 7 / 8.0 * 40},
        {"flat", 4, 0.1 + 3 * 40},
        {"tree", 8, 6 * 0.1 + 6 * 40},
        {"server", 4, 2 * 0.1 + 2 * 4 * 40},
        {"ring", 1, 0},
        {"server", 1, 0},
    };

    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        trib_estimate_t e = given(sums[i].algorithm, sums[i].ranks);

        assert_int_equal(trib_estimate_step(&e), TRIB_OK);
        near(1e3 * e.wire, sums[i].ms);
        near(1e3 * e.step, 6 + sums[i].ms);
        near(e.gain, 1);
        e.width = 2;
        assert_int_equal(trib_estimate_step(&e), TRIB_OK);
        near(1e3 * e.step, sums[i].ms > 6 ? sums[i].ms : 6);
    }
}

/* A codec divides the bytes alone; agreements are messages more; processors that are
 * shared lengthen a sum by at most a fifth where they take as long as its link. */
TEST(test_codec_terms)
{
    trib_estimate_t e = given("direct", 4);

    e.ratio = 4;
    e.agreements = 1;
    assert_int_equal(trib_estimate_step(&e), TRIB_OK);
    near(1e3 * e.wire, 4 * 0.1 + 60 / 4.0);
    near(e.cap, 5);
    e.busy = 7.7e-3;
    e.crowd = 2;
    assert_int_equal(trib_estimate_step(&e), TRIB_OK);
    near(1e3 * e.step, 6 + 15.4 * pow(2, 0.25));
    e.start = 0.2;
    assert_int_equal(trib_estimate_step(&e), TRIB_OK);
    near(1e3 * e.step, 6 + 15.4 * pow(2, 0.25));
    e.width = 2;
    assert_int_equal(trib_estimate_step(&e), TRIB_OK);
    near(e.step, 0.206);
    e.start = 0;
    e.width = 2;
    e.load = 92.3e-3;
    assert_int_equal(trib_estimate_step(&e), TRIB_OK);
    assert_true(e.step >= 0.2 && e.step < 0.2001);
    near(trib_train_remainder(trib_train_overlap(3, 2), 2), 3);
    near(trib_train_remainder(6, 7), 3);
}

static double gain_at(const char *algorithm, double ratio, double t_sum_to_compute)
{
    trib_estimate_t e = given(algorithm, 4);

    e.latency = 0;
    e.update = 0;
    assert_int_equal(trib_estimate_step(&e), TRIB_OK);
    e.compute = e.wire / t_sum_to_compute;
    e.width = 2;
    e.ratio = ratio;
    e.dense = 0;
    assert_int_equal(trib_estimate_step(&e), TRIB_OK);
    assert_true(e.gain <= e.cap * (1 + 1e-9));
    return e.gain;
}

/* The figure of the paper's abstract. Over a ring, 4 bits reach it where communication
 * takes 4.4 to 9.7 times as long as computing; 8 bits never do. A pipeline compared
 * with a synchronous server reaches it without a codec, over the ring. */
TEST(test_where_5_4)
{
    trib_estimate_t server = given("server", 4), ring = given("ring", 4);

    assert_true(gain_at("ring", 7.9, 4.39) < 5.4);
    for (double r = 4.41; r <= 9.7; r += 0.1)
        assert_true(gain_at("ring", 7.9, r) > 5.4);
    for (double r = 0.1; r < 100; r *= 1.1)
        assert_true(gain_at("ring", 4, r) <= 5);
    near(gain_at("ring", 7.9, 7.9), 8.9);
    server.compute = 50e-3;
    ring.compute = 50e-3;
    ring.width = 2;
    assert_int_equal(trib_estimate_step(&server), TRIB_OK);
    ring.dense = server.step;
    assert_int_equal(trib_estimate_step(&ring), TRIB_OK);
    assert_true(ring.gain > 5.4);
}

static void refused(trib_estimate_t e, const char *word)
{
    assert_int_equal(trib_estimate_step(&e), TRIB_ERR_INVALID);
    if (!strstr(trib_trainer_error(NULL), word))
        fail_msg("\"%s\" does not say \"%s\"", trib_trainer_error(NULL), word);
}

TEST(test_refuses)
{
    trib_estimate_t e = given("star", 4);

    refused(e, "halving-doubling");
    e = given("ring", 0);
    refused(e, "ranks");
    e = given("ring", 4);
    e.width = 3;
    refused(e, "width");
    e = given("ring", 4);
    e.rate = 0;
    refused(e, "rate");
    e = given("ring", 4);
    e.ratio = (double)INFINITY;
    refused(e, "finite ratio");
    e = given("ring", 4);
    e.compute = (double)NAN;
    refused(e, "time");
    e.size = 3;
    refused(e, "trib_estimate_t");
}

/* A curve of sums gives the latency and rate that it was made of, piece by piece. */
TEST(test_link)
{
    const struct trib_train_link bucket = {{1e3, 1e5, 1e6}, {2e-4, 2e-4, 92e-4}};
    struct trib_train_link plain = {{1e3, 1e5, 1e6}, {0}};
    double latency, rate;

    for (int i = 0; i < 3; i++)
        plain.seconds[i] = 2 * 1e-4 + plain.bytes[i] / 5e7;
    for (double bytes = 10; bytes < 1e7; bytes *= 3) {
        trib_train_link_at(&plain, bytes, 2, &latency, &rate);
        near(latency, 1e-4);
        near(rate, 5e7);
    }
    trib_train_link_at(&bucket, 5e4, 2, &latency, &rate);
    near(2 * latency + 5e4 / rate, 2e-4);
    trib_train_link_at(&bucket, 5e5, 2, &latency, &rate);
    near(rate, 1e8);
    near(2 * latency + 5e5 / rate, 42e-4);
}

TEST(test_best)
{
    trib_estimate_t rows[3] = {{.step = 1}, {.step = 0.995}, {.step = 0.98}};
    bool may[3] = {true, true, false};

    assert_int_equal(trib_train_estimate_best(rows, may, 3), 0);
    may[2] = true;
    assert_int_equal(trib_train_estimate_best(rows, may, 3), 2);
    may[0] = false;
    assert_int_equal(trib_train_estimate_best(rows, may, 3), 2);
}

/* --- a trainer that chooses --- */

enum { TIMED = 16, PAUSE_NS = 1000000 };

/* Steps that compute for a while, so that a pipeline gains. */
static void slow_steps(struct quadratic *q, int steps)
{
    for (int s = 0; s < steps; s++) {
        trib_step_t step = TRIB_STEP_INIT;

        ranks_ok(q->self, trib_trainer_begin(q->trainer, &step));
        for (size_t i = 0; i < QUADRATIC_COUNT; i++)
            step.gradient[i] = step.params[i] - quadratic_target(q->self->rank, i);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        ranks_ok(q->self, trib_trainer_end(q->trainer, 0));
    }
}

/* The trainer reports the row that it has chosen. */
static void check_text(struct quadratic *q, const trib_estimate_t *row)
{
    char text[4096], says[128];

    ranks_ok(q->self, trib_trainer_explain(q->trainer, text, sizeof(text)));
    snprintf(says, sizeof(says), "width %d with codec %s", row->width, row->codec);
    if (!strstr(text, says) || !strstr(text, "at most") ||
        (strstr(text, "one step late") != NULL) != (row->width == 2))
        ranks_die(q->self, "%s, but it says: %s", says, text);
}

static void check_rows(struct quadratic *q, size_t rows)
{
    trib_estimate_t row = TRIB_ESTIMATE_INIT;
    double best = INFINITY, taken = 0;
    int chosen, count = 0;
    size_t n = 0;

    for (; trib_trainer_estimate(q->trainer, n, &row, &chosen) == TRIB_OK; n++) {
        ranks_assert(q->self, row.step > 0 && row.gain > 0 && row.ratio > 0);
        ranks_assert(q->self, n > 0 || row.width == 1);
        best = n == 0 || row.step > best ? best : row.step;
        if (!chosen)
            continue;
        taken = row.step;
        count++;
        check_text(q, &row);
    }
    ranks_assert(q->self, n == rows && count == 1);
    ranks_assert(q->self, taken <= best / 0.99);
    ranks_assert(q->self, strstr(trib_trainer_error(q->trainer), "row"));
}

/* All ranks continue alike and find the minimum, for every choice. */
static int chooses(struct ranks_self *self)
{
    static const struct {
        const char *strategy;
        size_t rows;
    } texts[] = {
        {"pipe:width=auto+none|int8|topk:ratio=0.25", 1 + 3 * 2},
        {"pipe:width=1+topk:ratio=0.25|none", 1 + 2},
    };

    for (int i = 0; i < 2; i++) {
        trib_estimate_t row = TRIB_ESTIMATE_INIT;
        struct quadratic q;

        quadratic_init(&q, self, texts[i].strategy);
        quadratic_open(&q);
        slow_steps(&q, TIMED - 1);
        ranks_expect(self, trib_trainer_estimate(q.trainer, 0, &row, NULL),
                     TRIB_ERR_BUSY, "estimate");
        slow_steps(&q, 1);
        check_rows(&q, texts[i].rows);
        quadratic_steps(&q, 240);
        quadratic_finish(&q);
        ranks_assert(self, quadratic_distance(&q) < 0.3);
        quadratic_close(&q);
    }
    return 0;
}

/* A saved state includes the choice: the loaded run has the same bits as the one that
 * continued. */
static int keeps_choice(struct ranks_self *self)
{
    struct quadratic a, b;
    unsigned char bytes[65536];
    size_t n;

    quadratic_init(&a, self, "pipe:width=auto+int8|topk:ratio=0.25");
    quadratic_open(&a);
    quadratic_steps(&a, TIMED + 4);
    quadratic_finish(&a);
    ranks_ok(self, trib_trainer_save(a.trainer, bytes, sizeof(bytes), &n));
    quadratic_steps(&a, 5);
    quadratic_finish(&a);
    quadratic_init(&b, self, "pipe:width=auto+int8|topk:ratio=0.25");
    quadratic_open(&b);
    quadratic_steps(&b, 2);
    quadratic_finish(&b);
    ranks_ok(self, trib_trainer_load(b.trainer, bytes, n));
    quadratic_steps(&b, 5);
    quadratic_finish(&b);
    ranks_assert(self, memcmp(a.x, b.x, sizeof(a.x)) == 0);
    quadratic_close(&a);
    quadratic_close(&b);
    return 0;
}

static int refuses_codecs(struct ranks_self *self)
{
    static const struct {
        const char *strategy, *word;
    } bad[] = {
        {"sync+int8|none", "does not choose"},
        {"pipe+int8|", "missing next to"},
        {"pipe:width=auto+int8|topj", "topk"},
        {"pipe+none|none|none|none|none|none|none|none|none", "more than 8"},
    };
    trib_estimate_t row = TRIB_ESTIMATE_INIT;
    struct quadratic q;
    trib_trainer_t *none;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        quadratic_init(&q, self, bad[i].strategy);
        ranks_assert(self,
                     trib_trainer_create(self->comm, &q.desc, &none) < 0 && !none);
        if (!strstr(trib_trainer_error(NULL), bad[i].word))
            ranks_die(self, "\"%s\" does not say \"%s\"", trib_trainer_error(NULL),
                      bad[i].word);
    }
    quadratic_init(&q, self, "pipe");
    quadratic_open(&q);
    ranks_expect(self, trib_trainer_estimate(q.trainer, 0, &row, NULL),
                 TRIB_ERR_UNSUPPORTED, "estimate");
    ranks_assert(self, strstr(trib_trainer_error(q.trainer), "width=auto"));
    quadratic_close(&q);
    return 0;
}

TEST(test_chooses)
{
    ranks_pass(.size = 1, .fn = chooses, .config = "transport=shm");
    ranks_pass(.size = 2, .fn = chooses, .config = "transport=tcp");
    ranks_pass(.size = 3, .fn = keeps_choice, .config = "transport=shm");
    ranks_pass(.size = 2, .fn = refuses_codecs, .config = "transport=shm");
}
