/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/schedule/schedule.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(sizeof(struct trib_step) == 16, "four steps to a cache line");

#define FIRST_CAPACITY 64u
#define FLAGS_ALL (TRIB_STEP_FINAL | TRIB_STEP_FORWARD | TRIB_STEP_STABLE)

void trib_schedule_init(struct trib_schedule *s, uint32_t n_chunks)
{
    assert(n_chunks > 0);
    *s = (struct trib_schedule){.n_chunks = n_chunks};
}

void trib_schedule_free(struct trib_schedule *s)
{
    free(s->steps);
    *s = (struct trib_schedule){0};
}

static bool grow(struct trib_schedule *s)
{
    uint32_t capacity = s->capacity == 0 ? FIRST_CAPACITY : s->capacity * 2;
    struct trib_step *steps;

    /* This also keeps every index below TRIB_STEP_NO_DEP. */
    if (capacity <= s->capacity)
        return false;
    steps = realloc(s->steps, (size_t)capacity * sizeof(*steps));
    if (!steps)
        return false;
    s->steps = steps;
    s->capacity = capacity;
    return true;
}

uint32_t trib_schedule_add(struct trib_schedule *s, struct trib_step step)
{
    if (s->failed)
        return TRIB_STEP_NO_DEP;
    if (s->n_steps == s->capacity && !grow(s)) {
        s->failed = true;
        return TRIB_STEP_NO_DEP;
    }
    s->steps[s->n_steps] = step;
    return s->n_steps++;
}

void trib_schedule_append(struct trib_schedule *s, const struct trib_schedule *other,
                          uint32_t first_chunk)
{
    uint32_t first_step = s->n_steps, end = first_chunk + other->n_chunks;

    s->failed |= other->failed;
    s->n_chunks = s->n_chunks > end ? s->n_chunks : end;
    for (uint32_t i = 0; i < other->n_steps; i++) {
        struct trib_step step = other->steps[i];
        step.chunk += first_chunk;
        if (step.dep != TRIB_STEP_NO_DEP)
            step.dep += first_step;
        (void)trib_schedule_add(s, step);
    }
}

static bool is_local(const struct trib_step *step)
{
    return step->op == TRIB_STEP_SCALE || step->op == TRIB_STEP_COPY;
}

/* Return the fault in the flags and the lane of a step, or NULL. */
static const char *flags_wrong(const struct trib_step *step)
{
    bool final = step->flags & TRIB_STEP_FINAL;

    if (step->flags & ~FLAGS_ALL)
        return "has an unknown flag";
    if (step->lane >= TRIB_LANES)
        return "has an unknown lane";
    if (is_local(step))
        return step->flags != 0 || step->lane != 0 ? "is local but has a flag or a lane"
                                                   : NULL;
    if (final != (step->lane == TRIB_LANE_DOWN))
        return "has only one of FINAL and lane DOWN";
    if (step->op == TRIB_STEP_RECV_COPY && !final)
        return "copies an unfinished value";
    if (step->op == TRIB_STEP_RECV_REDUCE && final)
        return "reduces a finished value";
    if (step->op != TRIB_STEP_SEND && (step->flags & ~TRIB_STEP_FINAL))
        return "has a flag that only sends may have";
    return NULL;
}

/* Return the fault in a step's dep, or NULL. FORWARD relays the bytes of one RECV_COPY,
 * so its dep must be that step. */
static const char *dep_wrong(const struct trib_schedule *s, uint32_t i)
{
    const struct trib_step *step = &s->steps[i];
    const struct trib_step *dep;

    if (step->dep != TRIB_STEP_NO_DEP && step->dep >= i)
        return "depends on itself or a later step";
    if (!(step->flags & TRIB_STEP_FORWARD))
        return NULL;
    if (step->dep == TRIB_STEP_NO_DEP)
        return "forwards nothing";
    dep = &s->steps[step->dep];
    if (dep->op != TRIB_STEP_RECV_COPY || dep->chunk != step->chunk)
        return "forwards data that its dep did not receive";
    return NULL;
}

static const char *step_wrong(const struct trib_schedule *s,
                              const struct trib_shape *shape, uint32_t i)
{
    const struct trib_step *step = &s->steps[i];
    const char *wrong;

    if (step->op >= TRIB_STEP_OP_COUNT)
        return "has an unknown kind";
    if (step->peer >= (uint32_t)(shape->size + shape->aggregators))
        return "names a rank that does not exist";
    if (is_local(step) != (step->peer == (uint32_t)shape->rank))
        return is_local(step) ? "is local but names a peer" : "names its own rank";
    if (step->chunk >= s->n_chunks)
        return "names a chunk that does not exist";
    if (step->op == TRIB_STEP_SCALE && shape->op != TRIB_MEAN)
        return "scales, but the operation is not a mean";
    wrong = flags_wrong(step);
    return wrong ? wrong : dep_wrong(s, i);
}

static void say(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(char *text, size_t bytes, const char *format, ...)
{
    va_list args;

    if (!text || bytes == 0)
        return;
    va_start(args, format);
    vsnprintf(text, bytes, format, args);
    va_end(args);
}

trib_status_t trib_schedule_check(const struct trib_schedule *s,
                                  const struct trib_shape *shape, char *text,
                                  size_t bytes)
{
    assert(text || bytes == 0);
    if (s->failed) {
        say(text, bytes, "out of memory after %u steps", s->n_steps);
        return TRIB_ERR_NO_MEMORY;
    }
    if (shape->size < 1 || shape->aggregators < 0 || shape->rank < 0 ||
        shape->rank >= shape->size + shape->aggregators) {
        say(text, bytes, "rank %d of %d ranks", shape->rank, shape->size);
        return TRIB_ERR_INVALID;
    }
    if (s->n_chunks < 1 ||
        (trib_coll_is_blocked(shape->coll) && s->n_chunks != (uint32_t)shape->size)) {
        say(text, bytes, "%u chunks for %d ranks", s->n_chunks, shape->size);
        return TRIB_ERR_INVALID;
    }
    for (uint32_t i = 0; i < s->n_steps; i++) {
        const char *wrong = step_wrong(s, shape, i);

        if (wrong) {
            say(text, bytes, "step %u %s", i, wrong);
            return TRIB_ERR_INVALID;
        }
    }
    say(text, bytes, "%s", "");
    return TRIB_OK;
}
