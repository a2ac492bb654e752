/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/train/quadratic.h"

#include <math.h>

#include "base/digest.h"

void quadratic_init(struct quadratic *q, struct ranks_self *self, const char *strategy)
{
    memset(q, 0, sizeof(*q));
    q->self = self;
    q->desc = (trib_trainer_desc_t)TRIB_TRAINER_DESC_INIT;
    q->desc.params = q->x;
    q->desc.count = QUADRATIC_COUNT;
    q->desc.strategy = strategy;
    q->desc.rate = "0.1";
    q->desc.seed = 7;
    for (size_t i = 0; i < QUADRATIC_COUNT; i++)
        q->x[i] = (float)self->rank + (float)(i % 5); /* rank 0's count */
}

void quadratic_cut(struct quadratic *q)
{
    static const size_t counts[QUADRATIC_PARTS] = {600, 400, 3};
    const char *codec = strchr(q->desc.strategy, '+');

    for (int p = 0; p < QUADRATIC_PARTS; p++) {
        q->parts[p] = (trib_part_t)TRIB_PART_INIT;
        q->parts[p].count = counts[p];
        q->parts[p].dims = p < 2 ? 2 : 1;
        q->parts[p].codec = p == 2 ? "none" : codec ? codec + 1 : q->desc.codec;
    }
    q->desc.parts = q->parts;
    q->desc.n_parts = QUADRATIC_PARTS;
}

void quadratic_open(struct quadratic *q)
{
    const trib_status_t st = trib_trainer_create(q->self->comm, &q->desc, &q->trainer);

    if (st != TRIB_OK)
        ranks_die(q->self, "%s: %s: %s", q->desc.strategy, trib_status_name(st),
                  trib_trainer_error(NULL));
}

void quadratic_close(struct quadratic *q)
{
    ranks_ok(q->self, trib_trainer_free(q->trainer));
}

float quadratic_target(int rank, size_t i)
{
    return (float)(i % 7) + (float)rank;
}

static void must(const struct quadratic *q, trib_status_t st, const char *what)
{
    if (st != TRIB_OK)
        ranks_die(q->self, "%s: %s: %s", q->desc.strategy, what,
                  trib_trainer_error(q->trainer));
}

void quadratic_steps(struct quadratic *q, int steps)
{
    for (int s = 0; s < steps; s++) {
        trib_step_t step = TRIB_STEP_INIT;
        double loss = 0;

        must(q, trib_trainer_begin(q->trainer, &step), "begin");
        for (size_t i = QUADRATIC_COUNT; i-- > 0;) {
            step.gradient[i] = step.params[i] - quadratic_target(q->self->rank, i);
            loss += 0.5 * (double)step.gradient[i] * (double)step.gradient[i];
            if (q->desc.feed != TRIB_FEED_WHOLE && i % 50 == 0)
                must(q,
                     trib_trainer_ready(q->trainer, i,
                                        i == 1000 ? QUADRATIC_COUNT - 1000 : 50),
                     "ready");
        }
        must(q, trib_trainer_end(q->trainer, loss), "end");
    }
}

void quadratic_finish(struct quadratic *q)
{
    int64_t digest, all[RANKS_MAX];

    must(q, trib_trainer_settle(q->trainer, NULL), "settle");
    digest = (int64_t)trib_digest(q->x, sizeof(q->x));
    ranks_ok(q->self, trib_allgather(q->self->comm, &digest, all, 1, TRIB_I64));
    for (int r = 0; r < q->self->size; r++)
        if (all[r] != digest)
            ranks_die(q->self, "%s: rank %d has other bits", q->desc.strategy, r);
}

void quadratic_train(struct quadratic *q, int steps)
{
    const int most = strcmp(q->desc.strategy, "agp") == 0 ? 2 : steps;

    for (int k = 0; k < steps; k += most) {
        quadratic_steps(q, most);
        quadratic_finish(q);
    }
}

double quadratic_distance(const struct quadratic *q)
{
    double most = 0;

    for (size_t i = 0; i < QUADRATIC_COUNT; i++) {
        double optimum = 0;

        for (int r = 0; r < q->self->size; r++)
            optimum += (double)quadratic_target(r, i) / q->self->size;
        most = fmax(most, fabs((double)q->x[i] - optimum));
    }
    return most;
}
