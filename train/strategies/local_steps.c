/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local steps: each rank takes `period` local steps. The mean of their changes,
 * relative to a shared centre, is then the gradient of an outer optimizer. With a codec
 * and error feedback on the changes this is sparse local SGD.
 *
 * `fragments` splits the vector; fragments are summed in turn within a period. A mean
 * may be applied `late` steps later, so that its communication overlaps with them. The
 * rank then adds the centre's move minus its own change.
 *
 * Stich, Local SGD, ICLR 2019; Douillard et al., DiLoCo, 2023, and Streaming DiLoCo,
 * 2025; SparseLoCo, 2025.
 */
#include <stdio.h>
#include <string.h>

#include "train/trainer/trainer.h"

enum { PERIOD, RATE, MOMENTUM, NESTEROV, FRAGMENTS, LATE, KEYS };

static const struct trib_keyed_key keys[KEYS] = {
    [PERIOD] = {"period", 1, 1e6, true, "a number of steps from 1 to 1e6"},
    [RATE] = {"rate", 0, 10, false, "a number from 0 to 10"},
    [MOMENTUM] = {"momentum", 0, 0.9999999, false, "a number from 0 to below 1"},
    [NESTEROV] = {"nesterov", 0, 1, true, "0 or 1"},
    [FRAGMENTS] = {"fragments", 1, TRIB_TRAIN_SUMS, true, "a number from 1 to 64"},
    [LATE] = {"late", 0, 1e6, true, "a number of steps below the period"},
};
static const double local_defaults[KEYS] = {[PERIOD] = 16, [RATE] = 1, [FRAGMENTS] = 1};
static const double diloco_defaults[KEYS] = {
    [PERIOD] = 16, [RATE] = 0.7, [MOMENTUM] = 0.5, [NESTEROV] = 1, [FRAGMENTS] = 1};

struct fragment {
    size_t first, count;
    struct trib_train_sum *sum;
    uint64_t started; /* the step that ended with the start of its sum */
};

struct local {
    float *x; /* [count] the rank's parameters */
    float *gradient; /* [count] */
    float *centre; /* [count] the same on all ranks */
    float *velocity; /* [count] of the outer optimizer; NULL: no momentum */
    float *change; /* [count] centre - x at the start of a sum, then its mean */
    float *own; /* [count] this rank's change while its mean is pending; NULL: late=0 */
    size_t n_fragments;
    struct fragment fragments[TRIB_TRAIN_SUMS];
};

static bool has_momentum(const struct trib_trainer *t)
{
    return trib_train_number(t, MOMENTUM) > 0;
}

static bool is_late(const struct trib_trainer *t)
{
    return trib_train_number(t, LATE) > 0;
}

static const struct trib_train_vector vectors[] = {
    {.at = offsetof(struct local, x), .params = true},
    {.at = offsetof(struct local, gradient)},
    {.at = offsetof(struct local, centre), .params = true, .model = true},
    {.at = offsetof(struct local, velocity), .when = has_momentum},
    {.at = offsetof(struct local, change), .peers = true},
    {.at = offsetof(struct local, own), .when = is_late},
};

static trib_status_t make_fragments(struct trib_trainer *t, struct local *l)
{
    const size_t n = (size_t)trib_train_number(t, FRAGMENTS);
    trib_status_t st = TRIB_OK;

    for (size_t i = 0; i < n && st == TRIB_OK; i++) {
        struct fragment *f = &l->fragments[i];
        char name[32];

        f->first = t->count / n * i + (i < t->count % n ? i : t->count % n);
        f->count = t->count / n + (i < t->count % n);
        snprintf(name, sizeof(name), "change%zu", i);
        st = trib_train_make_sum(t, name, f->first, f->count, TRIB_FEED_WHOLE, &f->sum);
        l->n_fragments = i + 1;
    }
    return st;
}

static trib_status_t local_create(struct trib_trainer *t)
{
    if (trib_train_number(t, LATE) >= trib_train_number(t, PERIOD))
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "strategy %s: late=%g must be below period=%g",
                         t->choice.row->name, trib_train_number(t, LATE),
                         trib_train_number(t, PERIOD));
    if (t->choice.given & 1u << NESTEROV && trib_train_number(t, NESTEROV) != 0 &&
        !has_momentum(t))
        return trib_fail(
            &t->err, TRIB_ERR_INVALID,
            "strategy %s: nesterov=1 needs momentum=", t->choice.row->name);
    return make_fragments(t, t->strategy);
}

static trib_status_t start(struct trib_trainer *t, struct local *l, struct fragment *f)
{
    const size_t end = f->first + f->count;

    for (size_t i = f->first; i < end; i++)
        l->change[i] = l->centre[i] - l->x[i];
    if (l->own)
        memcpy(l->own + f->first, l->change + f->first, f->count * sizeof(float));
    f->started = t->number;
    return trib_train_start(t, f->sum, l->change);
}

/* The outer optimizer. */
struct outer {
    float rate, momentum;
    bool nesterov;
};

static struct outer outer_of(const struct trib_trainer *t)
{
    return (struct outer){(float)trib_train_number(t, RATE),
                          (float)trib_train_number(t, MOMENTUM),
                          trib_train_number(t, NESTEROV) != 0};
}

/* Return the decrease of the centre, and update *velocity. */
static float outer_step(const struct outer *o, float change, float *velocity)
{
    *velocity = o->momentum * *velocity + change;
    return o->rate * (o->nesterov ? change + o->momentum * *velocity : *velocity);
}

/* Apply the outer step. With a late mean the rank keeps the steps it took since the sum
 * started. */
static void apply(const struct trib_trainer *t, struct local *l,
                  const struct fragment *f)
{
    const struct outer o = outer_of(t);

    for (size_t i = f->first; i < f->first + f->count; i++) {
        float none = 0;
        const float step =
            outer_step(&o, l->change[i], l->velocity ? &l->velocity[i] : &none);

        l->centre[i] -= step;
        if (l->own)
            l->x[i] += l->own[i] - step;
        else
            l->x[i] = l->centre[i];
    }
}

static trib_status_t finish(struct trib_trainer *t, struct local *l, struct fragment *f)
{
    if (!trib_train_sum_runs(f->sum))
        return TRIB_OK;
    const trib_status_t st = trib_train_wait(t, f->sum, NULL, NULL);
    if (st == TRIB_OK)
        apply(t, l, f);
    return st;
}

/* Return how many of the first n steps follow the last turn of fragment i. Turns are
 * evenly spaced within a period. */
static uint64_t steps_since(const struct trib_trainer *t, const struct local *l,
                            size_t i, uint64_t n)
{
    const uint64_t period = (uint64_t)trib_train_number(t, PERIOD);

    return (n + period * i / l->n_fragments) % period;
}

static trib_status_t local_end(struct trib_trainer *t, double loss)
{
    struct local *l = t->strategy;
    const uint64_t late = (uint64_t)trib_train_number(t, LATE);
    trib_status_t st = TRIB_OK;

    (void)loss;
    trib_train_update(t, l->x, l->gradient, trib_train_rate_at(&t->rate, t->number));
    for (size_t i = 0; i < l->n_fragments && st == TRIB_OK; i++) {
        struct fragment *f = &l->fragments[i];

        if (trib_train_sum_runs(f->sum) && t->number >= f->started + late)
            st = finish(t, l, f);
        if (st == TRIB_OK && steps_since(t, l, i, t->number + 1) == 0)
            st = start(t, l, f);
        if (st == TRIB_OK && late == 0)
            st = finish(t, l, f);
    }
    return st;
}

/* Apply one more round of fragment f to model_out, which holds the centre. */
static void add_round(const struct trib_trainer *t, const struct local *l,
                      const struct fragment *f, float *model_out)
{
    const struct outer o = outer_of(t);

    for (size_t i = f->first; i < f->first + f->count; i++) {
        float velocity = l->velocity ? l->velocity[i] : 0;

        model_out[i] -= outer_step(&o, l->change[i], &velocity);
    }
}

/* Include steps since the last round in the model, as an additional round without a
 * codec would. Centre, velocity and x do not change, so this call does not influence
 * the run. */
static trib_status_t add_steps(struct trib_trainer *t, struct local *l,
                               float *model_out)
{
    int32_t since[TRIB_TRAIN_SUMS + 1] = {0};
    trib_status_t st;

    for (size_t i = 0; i < l->n_fragments; i++) {
        since[i] = steps_since(t, l, i, t->number) > 0;
        since[l->n_fragments] |= since[i];
    }
    st = trib_train_set_comm_error(
        t,
        trib_allreduce(t->comm, NULL, since, l->n_fragments + 1, TRIB_I32, TRIB_MAX));
    if (st != TRIB_OK || !since[l->n_fragments])
        return st;
    for (size_t i = 0; i < t->count; i++)
        l->change[i] = l->centre[i] - l->x[i];
    st = trib_train_mean(t, l->change, l->change);
    for (size_t i = 0; i < l->n_fragments && st == TRIB_OK; i++)
        if (since[i])
            add_round(t, l, &l->fragments[i], model_out);
    return st;
}

static trib_status_t local_finish(struct trib_trainer *t, float *model_out)
{
    struct local *l = t->strategy;
    trib_status_t st = TRIB_OK;

    for (size_t i = 0; i < l->n_fragments && st == TRIB_OK; i++)
        st = finish(t, l, &l->fragments[i]);
    if (st != TRIB_OK)
        return st;
    memcpy(model_out, l->centre, t->count * sizeof(float));
    return add_steps(t, l, model_out);
}

static bool local_busy(const struct trib_trainer *t)
{
    const struct local *l = t->strategy;

    for (size_t i = 0; i < l->n_fragments; i++)
        if (trib_train_sum_runs(l->fragments[i].sum))
            return true;
    return false;
}

static int local_fields(struct trib_trainer *t,
                        struct trib_train_field out[TRIB_TRAIN_FIELDS])
{
    const struct local *l = t->strategy;
    const size_t bytes = t->count * sizeof(float);
    int n = 0;

    out[n++] = (struct trib_train_field){"own", l->x, bytes, false};
    out[n++] = (struct trib_train_field){"centre", l->centre, bytes, true};
    if (l->velocity)
        out[n++] = (struct trib_train_field){"velocity", l->velocity, bytes, true};
    return n;
}

/* A rank that sent its change but did not receive the mean continues from the centre.
 * Otherwise its change would be sent twice. */
static trib_status_t local_moved(struct trib_trainer *t,
                                 const struct trib_train_move *m)
{
    const struct local *l = t->strategy;

    (void)m;
    for (size_t i = 0; i < l->n_fragments; i++) {
        const struct fragment *f = &l->fragments[i];
        const enum trib_train_fate fate = trib_train_sum_fate(f->sum);

        if (fate == TRIB_TRAIN_BEHIND || fate == TRIB_TRAIN_DROPPED)
            memcpy(l->x + f->first, l->centre + f->first, f->count * sizeof(float));
    }
    return TRIB_OK;
}

static void local_explain(const struct trib_trainer *t, char *text, size_t bytes)
{
    snprintf(
        text, bytes,
        "%g local steps, then the mean of the changes%s; outer rate %g, momentum %g%s",
        trib_train_number(t, PERIOD), is_late(t) ? ", late" : "",
        trib_train_number(t, RATE), trib_train_number(t, MOMENTUM),
        trib_train_number(t, NESTEROV) != 0 ? " (Nesterov)" : "");
}

#define LOCAL(starts) \
    { \
        .apart = true, .sums_changes = true, .keys = keys, .defaults = starts, \
        .n_keys = KEYS, .state_bytes = sizeof(struct local), .vectors = vectors, \
        .n_vectors = sizeof(vectors) / sizeof(*vectors), .create = local_create, \
        .end = local_end, .finish = local_finish, .busy = local_busy, \
        .fields = local_fields, .moved = local_moved, .explain = local_explain \
    }

const struct trib_strategy_ops trib_strategy_local = LOCAL(local_defaults);
const struct trib_strategy_ops trib_strategy_diloco = LOCAL(diloco_defaults);
