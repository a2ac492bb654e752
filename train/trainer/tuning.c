/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tributary/info.h>

#include "train/trainer/trainer.h"

enum {
    SHORT = 64, /* elements of the shortest sum */
    PIECE = 8, /* the medium sum has 1/PIECE of the vector */
    STARTS = 7, /* starts per timed sum; the first is a warm-up */
    WARM = 4, /* warm-up steps: connections are made, TCP finds its rate */
    CROWD_FLOATS = 4096,
    DIRECT_HOPS = 2,
};
#define CROWD_SECONDS 4e-3 /* of processor time */
#define PAUSE_MOST 0.02 /* seconds; bounds the pauses between timed sums */

static double clock_seconds(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static double now(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

static double processor(void)
{
    return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

static double sent_bytes(const struct trib_trainer *t)
{
    trib_stats_t stats = {.size = sizeof(stats)};

    return trib_stats(t->comm, &stats) == TRIB_OK ? (double)stats.wire_bytes : 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_size);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* --- codecs --- */

static trib_status_t split_codecs(struct trib_trainer *t, const char *codecs,
                                  struct trib_train_tuning *tuning)
{
    char *rest = tuning->texts = strdup(codecs ? codecs : "none");
    char *text;

    if (!rest)
        return trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for a text");
    while ((text = strsep(&rest, "|")) != NULL) {
        if (tuning->n_codecs == TRIB_TRAIN_CODECS)
            return trib_fail(&t->err, TRIB_ERR_INVALID,
                             "codecs \"%s\": more than %d to choose from", codecs,
                             TRIB_TRAIN_CODECS);
        if (text[0] == '\0')
            return trib_fail(&t->err, TRIB_ERR_INVALID,
                             "codecs \"%s\": a codec is missing next to a |", codecs);
        tuning->codecs[tuning->n_codecs++] = text;
    }
    return TRIB_OK;
}

/* Make a sum with the given codec; parts keep their own. NULL: everything is dense. */
static trib_status_t make_sum(struct trib_trainer *t, const char *name, size_t count,
                              const char *codec, struct trib_train_sum **out)
{
    struct trib_train_part whole = {.count = t->count, .name = "all"};
    const bool dense = !codec || strcmp(codec, "none") == 0;
    char none[] = "none";
    const struct trib_train_parts plain = {.n = 1, .part = &whole, .codec = none};
    struct trib_train_parts coded = t->parts;
    const struct trib_train_sum_desc desc = {.name = name,
                                             .parts = codec ? &coded : &plain,
                                             .count = count,
                                             .feed = TRIB_FEED_WHOLE,
                                             .seed = t->seed};
    char *text = codec ? strdup(codec) : NULL;

    if (codec && !text)
        return trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for a text");
    coded.codec = text;
    coded.feedback = dense ? NULL : t->parts.feedback;
    const trib_status_t st = trib_train_sum_create(t->comm, &desc, &t->err, out);
    free(text);
    return st;
}

trib_status_t trib_train_tuning_sum(struct trib_trainer *t,
                                    const struct trib_train_tuning *tuning, int codec,
                                    struct trib_train_sum **out)
{
    return make_sum(t, "gradient", t->count, codec < 0 ? NULL : tuning->codecs[codec],
                    out);
}

static trib_status_t try_codecs(struct trib_trainer *t,
                                const struct trib_train_tuning *tuning)
{
    trib_status_t st = TRIB_OK;

    for (int c = 0; c < tuning->n_codecs && st == TRIB_OK; c++) {
        struct trib_train_sum *sum = NULL;

        st = trib_train_tuning_sum(t, tuning, c, &sum);
        trib_train_sum_free(sum);
    }
    return st;
}

trib_status_t trib_train_tuning_create(struct trib_trainer *t, const char *codecs,
                                       int width, struct trib_train_tuning **out)
{
    struct trib_train_tuning *tuning = *out = calloc(1, sizeof(*tuning));

    if (!tuning)
        return trib_fail(&t->err, TRIB_ERR_NO_MEMORY, "no memory for timings");
    tuning->width = width;
    trib_status_t st = split_codecs(t, codecs, tuning);
    if (st == TRIB_OK)
        st = try_codecs(t, tuning);
    return st == TRIB_OK ? trib_train_calloc(t, t->count, &tuning->sample) : st;
}

void trib_train_tuning_free(struct trib_train_tuning *tuning)
{
    if (!tuning)
        return;
    free(tuning->sample);
    free(tuning->texts);
    free(tuning);
}

/* --- timed steps: a field holds its mark's time until the next mark - */

void trib_train_tuning_begin(struct trib_trainer *t, struct trib_train_tuning *tuning)
{
    struct trib_train_timing *timing = &tuning->timing[tuning->timed];

    timing->bytes = sent_bytes(t);
    timing->load = processor();
    timing->compute = now();
}

void trib_train_tuning_computed(struct trib_trainer *t,
                                struct trib_train_tuning *tuning, const float *gradient)
{
    struct trib_train_timing *timing = &tuning->timing[tuning->timed];

    timing->compute = now() - timing->compute;
    timing->load = processor() - timing->load;
    if (tuning->timed == TRIB_TRAIN_TIMED - 1)
        memcpy(tuning->sample, gradient, t->count * sizeof(*gradient));
    timing->busy = processor();
    timing->sum = now();
}

void trib_train_tuning_summed(struct trib_trainer *t, struct trib_train_tuning *tuning)
{
    struct trib_train_timing *timing = &tuning->timing[tuning->timed];

    timing->sum = now() - timing->sum;
    timing->busy = processor() - timing->busy;
    timing->bytes = sent_bytes(t) - timing->bytes;
    timing->update = now();
}

void trib_train_tuning_updated(struct trib_train_tuning *tuning)
{
    struct trib_train_timing *timing = &tuning->timing[tuning->timed];

    timing->update = now() - timing->update;
    tuning->timed++;
}

bool trib_train_tuning_due(const struct trib_train_tuning *tuning)
{
    return tuning->timed == TRIB_TRAIN_TIMED && !tuning->choice.made;
}

/* --- measured after the timed steps --- */

struct measured {
    struct trib_train_timing step; /* medians */
    /* of three lengths, with pauses */
    struct trib_train_timing dense[TRIB_TRAIN_LINK_POINTS];
    struct trib_train_timing busy_link; /* the medium length, without a pause */
    double crowd;
    struct trib_train_timing codec[TRIB_TRAIN_CODECS]; /* busy and bytes of a sum */
};

static struct trib_train_timing step_of(const struct trib_train_tuning *tuning)
{
    enum { N = TRIB_TRAIN_TIMED - WARM, FIELDS = sizeof(struct trib_train_timing) / 8 };
    struct trib_train_timing out;
    double field[FIELDS];

    _Static_assert(sizeof(out) == sizeof(field), "a timing is an array of doubles");
    for (size_t f = 0; f < FIELDS; f++) {
        double values[N];

        for (int i = 0; i < N; i++) {
            double all[FIELDS];

            memcpy(all, &tuning->timing[WARM + i], sizeof(all));
            values[i] = all[f];
        }
        field[f] = median(values, N);
    }
    memcpy(&out, field, sizeof(out));
    return out;
}

/* Return how many times longer a busy rank takes when all ranks compute at once: wall
 * time over processor time, at least 1. */
static double crowd_of(struct trib_trainer *t)
{
    float x[CROWD_FLOATS] = {0};
    volatile float keep;

    if (trib_barrier(t->comm) != TRIB_OK)
        return 1;
    const double began = now(), had = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    double worked;

    do {
        for (int i = 0; i < CROWD_FLOATS; i++)
            x[i] = 0.5f * x[i] + (float)i;
        keep = x[CROWD_FLOATS - 1];
        worked = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - had;
    } while (worked < CROWD_SECONDS);
    (void)keep;
    if (trib_barrier(t->comm) != TRIB_OK)
        return 1;
    return fmax((now() - began) / worked, 1);
}

struct timed_sum {
    size_t count;
    const char *codec; /* NULL: dense */
    double pause; /* seconds before each start */
    float *scratch; /* [count] memory that peers can access */
};

static void pause_for(double seconds)
{
    const long ns = (long)(1e9 * fmin(seconds, PAUSE_MOST));

    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static trib_status_t time_start(struct trib_trainer *t, struct trib_train_sum *sum,
                                float *vector, struct trib_train_timing *out)
{
    const double bytes = sent_bytes(t), busy = processor(), began = now();
    trib_status_t st = trib_train_sum_start(sum, vector);
    const double started = now();

    if (st == TRIB_OK)
        st = trib_train_sum_wait(sum, NULL, NULL);
    *out = (struct trib_train_timing){.sum = now() - began,
                                      .busy = processor() - busy,
                                      .start = started - began,
                                      .bytes = sent_bytes(t) - bytes};
    return trib_train_set_comm_error(t, st);
}

/* Time some starts of a sum of the first elements of the sample; return medians. */
static trib_status_t time_sum(struct trib_trainer *t,
                              const struct trib_train_tuning *tuning,
                              const struct timed_sum *what,
                              struct trib_train_timing *out)
{
    double seconds[STARTS], busy[STARTS], start[STARTS];
    struct trib_train_sum *sum = NULL;
    trib_status_t st = make_sum(t, "timed", what->count, what->codec, &sum);

    for (int i = 0; i < STARTS && st == TRIB_OK; i++) {
        memcpy(what->scratch, tuning->sample, what->count * sizeof(*what->scratch));
        if (what->pause > 0)
            pause_for(what->pause);
        st = time_start(t, sum, what->scratch, out);
        seconds[i] = out->sum;
        busy[i] = out->busy;
        start[i] = out->start;
    }
    trib_train_sum_free(sum);
    if (st != TRIB_OK)
        return st;
    out->sum = median(seconds + 1, STARTS - 1);
    out->start = median(start + 1, STARTS - 1);
    qsort(busy + 1, STARTS - 1, sizeof(*busy), by_size);
    /* lower third: other processes on this host only add to it */
    out->busy = busy[1 + STARTS / 3];
    return TRIB_OK;
}

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

static trib_status_t measure_link(struct trib_trainer *t,
                                  const struct trib_train_tuning *tuning,
                                  float *scratch, struct measured *out)
{
    struct timed_sum what = {.count = at_most(SHORT, t->count),
                             .pause = out->step.compute,
                             .scratch = scratch};
    trib_status_t st = time_sum(t, tuning, &what, &out->dense[0]);

    what.count = (t->count + PIECE - 1) / PIECE;
    if (st == TRIB_OK)
        st = time_sum(t, tuning, &what, &out->dense[1]);
    what.pause = 0;
    if (st == TRIB_OK)
        st = time_sum(t, tuning, &what, &out->busy_link);
    out->dense[2] = out->step;
    return st;
}

static trib_status_t measure(struct trib_trainer *t,
                             const struct trib_train_tuning *tuning, float *scratch,
                             struct measured *out)
{
    trib_status_t st;

    out->step = step_of(tuning);
    out->crowd = crowd_of(t);
    st = measure_link(t, tuning, scratch, out);
    for (int c = 0; c < tuning->n_codecs && st == TRIB_OK; c++) {
        const struct timed_sum what = {.count = t->count,
                                       .codec = tuning->codecs[c],
                                       .pause = out->step.compute,
                                       .scratch = scratch};

        st = time_sum(t, tuning, &what, &out->codec[c]);
    }
    return st;
}

/* Take the maximum over ranks: the slowest and busiest rank sets the pace. */
static trib_status_t slowest(struct trib_trainer *t, struct measured *m)
{
    enum { N = sizeof(*m) / sizeof(double) };
    double all[N];

    memcpy(all, m, sizeof(all));
    const trib_status_t st = trib_allreduce(t->comm, NULL, all, N, TRIB_F64, TRIB_MAX);
    memcpy(m, all, sizeof(all));
    return trib_train_set_comm_error(t, st);
}

/* --- rows --- */

struct link {
    struct trib_train_link curve; /* measured with pauses, as in a synchronous step */
    /* Extra time of the medium sum without a pause: a link's token bucket refills in
     * pauses. */
    double refill;
    double crowd;
};

static void note_agreement(void *arg, const trib_codec_sheet_t *sheet)
{
    int *agreements = arg;

    *agreements = sheet->shared[0] != '\0';
}

/* Derive the link's own time. Processor time cannot exceed the time of a sum, which
 * bounds `crowd`. */
static void take_link(const struct measured *m, struct link *out)
{
    const struct trib_train_timing *whole = &m->dense[TRIB_TRAIN_LINK_POINTS - 1];
    const double most = whole->busy > 0 ? whole->sum / whole->busy : 1;

    out->crowd = fmax(fmin(m->crowd, most), 1);
    for (int i = 0; i < TRIB_TRAIN_LINK_POINTS; i++) {
        const struct trib_train_timing *sum = &m->dense[i];

        out->curve.bytes[i] = sum->bytes;
        out->curve.seconds[i] = trib_train_remainder(sum->sum, out->crowd * sum->busy);
    }
    out->refill = fmax(m->busy_link.sum - m->dense[1].sum, 0);
}

static trib_status_t add_row(struct trib_trainer *t, struct trib_train_tuning *tuning,
                             const struct measured *m, int codec, int width)
{
    struct link link;
    const struct trib_train_timing *sum = codec < 0 ? &m->step : &m->codec[codec];
    const double dense = t->ranks > 1 ? 2.0 * (t->ranks - 1) / t->ranks * 4 : 0;
    trib_estimate_t *row = &tuning->row[tuning->n_rows];

    *row = (trib_estimate_t)TRIB_ESTIMATE_INIT;
    row->codec = codec < 0 ? "none" : tuning->codecs[codec];
    row->ranks = t->ranks;
    row->count = t->count;
    row->width = width;
    row->compute = m->step.compute;
    row->update = m->step.update;
    row->start = sum->start;
    row->ratio =
        dense > 0 && sum->bytes > 0 ? dense * (double)t->count / sum->bytes : 1;
    take_link(m, &link);
    trib_train_link_at(&link.curve, sum->bytes, DIRECT_HOPS, &row->latency, &row->rate);
    if (width > 1 && link.curve.bytes[1] > 0)
        row->latency +=
            link.refill * fmin(sum->bytes / link.curve.bytes[1], 1) / DIRECT_HOPS;
    if (codec >= 0)
        trib_codec_describe(row->codec, note_agreement, &row->agreements);
    row->busy = sum->busy;
    row->load = m->step.load + m->step.update / link.crowd;
    row->crowd = link.crowd;
    row->dense = m->step.compute + m->step.sum + m->step.update;
    tuning->may[tuning->n_rows] = codec >= 0;
    tuning->codec_of[tuning->n_rows] = codec;
    tuning->n_rows++;
    return trib_train_estimate(row, &t->err);
}

static trib_status_t add_rows(struct trib_trainer *t, struct trib_train_tuning *tuning,
                              const struct measured *m)
{
    trib_status_t st = add_row(t, tuning, m, -1, 1);

    for (int c = 0; c < tuning->n_codecs; c++)
        for (int width = 1; width <= 2 && st == TRIB_OK; width++)
            if (tuning->width == 0 || tuning->width == width)
                st = add_row(t, tuning, m, c, width);
    return st;
}

trib_status_t trib_train_tuning_choose(struct trib_trainer *t,
                                       struct trib_train_tuning *tuning, float *scratch)
{
    struct measured m = {0};
    int32_t chosen;
    trib_status_t st = measure(t, tuning, scratch, &m);

    if (st == TRIB_OK)
        st = slowest(t, &m);
    if (st == TRIB_OK)
        st = add_rows(t, tuning, &m);
    if (st != TRIB_OK)
        return st;
    chosen = (int32_t)trib_train_estimate_best(tuning->row, tuning->may,
                                               (size_t)tuning->n_rows);
    /* Ranks on other processors may round a tie differently, so rank 0 decides. */
    st = trib_train_set_comm_error(t, trib_broadcast(t->comm, &chosen, 1, TRIB_I32, 0));
    if (st != TRIB_OK)
        return st;
    tuning->chosen = chosen;
    tuning->choice =
        (struct trib_train_choice){.made = 1,
                                   .codec = (uint32_t)tuning->codec_of[chosen],
                                   .width = (uint32_t)tuning->row[chosen].width};
    free(tuning->sample);
    tuning->sample = NULL;
    return TRIB_OK;
}

/* --- text --- */

void trib_train_tuning_print(const struct trib_train_tuning *tuning, char *text,
                             size_t bytes)
{
    size_t at;

    if (!tuning->choice.made) {
        snprintf(text, bytes, "width and codec are chosen after %d timed steps",
                 TRIB_TRAIN_TIMED);
        return;
    }
    snprintf(text, bytes, "width %u with codec %s, as estimated after %d timed steps",
             tuning->choice.width, tuning->codecs[tuning->choice.codec],
             TRIB_TRAIN_TIMED);
    if (tuning->n_rows == 0)
        return; /* restored from a checkpoint */
    at = strlen(text);
    at += (size_t)snprintf(text + at, bytes - at, "\n  %-32s %5s %8s %6s %8s", "codec",
                           "width", "ms", "gain", "at most");
    for (int i = 0; i < tuning->n_rows && at < bytes; i++) {
        const trib_estimate_t *e = &tuning->row[i];

        at +=
            (size_t)snprintf(text + at, bytes - at, "\n%c %-32s %5d %8.2f %6.2f %8.2f",
                             i == tuning->chosen ? '*' : ' ', e->codec, e->width,
                             1e3 * e->step, e->gain, e->cap);
    }
}
