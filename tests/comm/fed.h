/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans with feedback, their input of each step, and access to their state.
 */
#ifndef TESTS_COMM_FED_H
#define TESTS_COMM_FED_H

#include "comm/core/communicator.h"
#include "pipeline/payload/error_feedback.h"
#include "tests/comm/oracle.h"
#include "tests/harness/ranks.h"

struct fed_scene {
    const char *codec;
    const char *feedback;
    const char *algorithm;
    trib_dtype_t dtype;
    trib_op_t op;
};

/* A plan with separate buffers. */
struct fed {
    struct ranks_self *self;
    const struct fed_scene *scene;
    struct oracle inputs;
    size_t count;
    size_t element;
    char *send;
    char *recv;
    trib_plan_t *plan;
};

/* fed_close, or the end of the process, frees everything it allocates. */
static inline void fed_open(struct fed *f, struct ranks_self *self,
                            const struct fed_scene *s, size_t count)
{
    trib_desc_t d = TRIB_DESC_INIT;

    *f = (struct fed){.self = self, .scene = s, .count = count};
    f->element = trib_dtype_size(s->dtype);
    f->inputs = (struct oracle){
        .kind = ORACLE_REALS, .dtype = s->dtype, .op = s->op, .size = self->size};
    f->send = calloc(count + 1, f->element);
    f->recv = calloc(count + 1, f->element);
    ranks_assert(self, f->send && f->recv);
    d.send = f->send;
    d.recv = f->recv;
    d.count = count;
    d.dtype = s->dtype;
    d.op = s->op;
    d.codec = s->codec;
    d.feedback = s->feedback;
    d.algorithm = s->algorithm;
    d.chunk = 4096;
    d.name = "fed"; /* so that plans with equal input round in the same way */
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &f->plan));
}

static inline void fed_close(struct fed *f)
{
    ranks_ok(f->self, trib_plan_free(f->plan));
    free(f->send);
    free(f->recv);
}

static inline void fed_run(struct fed *f)
{
    ranks_step(f->self, f->plan);
}

/* Return the vector of this name that the rule of a plan keeps, or NULL. */
static inline float *fed_kept(const struct trib_run *run, const char *name)
{
    const struct trib_feedback_ops *ops = trib_feedback_of(run)->ops;

    for (int i = 0; ops && ops->states[i].name; i++)
        if (strcmp(ops->states[i].name, name) == 0)
            return trib_feedback_of(run)->state[i];
    return NULL;
}

/* Fill in the input of a step: other numbers in each. */
static inline void fed_fill(struct fed *f, uint64_t step)
{
    f->inputs.seed = step;
    oracle_fill(&f->inputs, f->self->rank, 0, f->count, f->send);
}

static inline double fed_input(const struct fed *f, int rank, size_t i)
{
    return oracle_input(&f->inputs, rank, i).f;
}

static inline double fed_result(const struct fed *f, size_t i)
{
    return perf_number_load(f->scene->dtype, f->recv, i).f;
}

/* Sum a vector of the state of the plan over the ranks, without a codec. */
static inline void fed_summed(struct fed *f, const float *x, double *sum_out)
{
    for (size_t i = 0; i < f->count; i++)
        sum_out[i] = x ? (double)x[i] : 0;
    trib_plan_t *plan =
        ranks_plan(f->self, TRIB_ALLREDUCE, .recv = sum_out, .count = f->count,
                   .dtype = TRIB_F64, .codec = "none");
    ranks_step(f->self, plan);
    ranks_ok(f->self, trib_plan_free(plan));
}

static inline bool fed_was_sent(struct fed *f, size_t i)
{
    const unsigned char *mask;

    ranks_ok(f->self, trib_plan_sent(f->plan, &mask, NULL));
    return mask[i / 8] >> i % 8 & 1;
}

/* Check that all ranks have the same bytes of the result. */
static inline void fed_same_bits(struct fed *f)
{
    uint64_t mine = oracle_hash(f->recv, f->count * f->element), all[RANKS_MAX];

    ranks_ok(f->self, trib_allgather(f->self->comm, &mine, all, sizeof(mine), TRIB_I8));
    for (int r = 0; r < f->self->size; r++)
        if (all[r] != mine)
            ranks_die(f->self, "%s %s: rank %d has other bits", f->scene->codec,
                      f->scene->feedback, r);
}

#endif
