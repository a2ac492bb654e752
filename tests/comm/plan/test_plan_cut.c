/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How plans cut a vector: every element is in one chunk, chunks fit into slots, and all
 * ranks cut in the same way.
 */
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "pipeline/run/run.h"
#include "tests/harness/ranks.h"

static const size_t counts[] = {0, 1, 15, 16, 17, 1000, 4096, 65537, 1000003};
static const char *const codecs[] = {"none", "bf16", "qsgd:bits=4,bucket=128"};

static void check(struct ranks_self *self, const struct trib_plan *plan, size_t chunk)
{
    const struct trib_run_desc *d = &plan->run.desc;
    const size_t chunks = (size_t)trib_run_rounds(&plan->run) * d->n_chunks;

    ranks_assert(self, d->total == d->count && d->rounds > 0 && d->n_chunks > 0);
    ranks_assert(self, chunks * d->piece >= d->total);
    ranks_assert(self, d->piece * d->element <= chunk);
    if (d->total)
        ranks_assert(self, ((size_t)d->rounds - 1) * d->n_chunks * d->piece < d->total);
}

static int cuts(struct ranks_self *self)
{
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (size_t c = 0; c < sizeof(codecs) / sizeof(codecs[0]); c++) {
            for (size_t chunk = 0; chunk <= 8192; chunk += 4096) {
                trib_plan_t *plan;
                plan = ranks_plan(self, TRIB_ALLREDUCE, .count = counts[i],
                                  .codec = codecs[c], .chunk = chunk);
                check(self, plan, chunk ? chunk : self->comm->cfg.chunk);
                size_t piece = plan->run.desc.piece, all[RANKS_MAX];
                ranks_ok(self, trib_plan_free(plan));
                ranks_ok(self, trib_allgather(self->comm, &piece, all, sizeof(piece),
                                              TRIB_I8));
                for (int r = 0; r < self->size; r++)
                    ranks_assert(self, all[r] == piece);
            }
        }
    }
    return 0;
}

TEST(test_cuts)
{
    for (int size = 1; size <= 4; size++)
        ranks_pass(.size = size, .fn = cuts, .config = "transport=shm");
}

/* Chunks of a selecting codec are longer, as far as the encoded chunk always fits into
 * a slot, and unless a length is configured. */
RANKS_TEST(test_selections, .size = 3, .config = "transport=shm")
{
    static const struct {
        const char *codec, *feedback;
        size_t chunk, least, most; /* elements of a chunk */
    } rows[] = {
        {"topk:ratio=0.001", NULL, 0, 100000, 131072},
        {"topk:ratio=0.001", NULL, 65536, 1, 16384},
        {"topk:ratio=0.001", "ef14:warmup=8,stages=4", 0, 1, 65536},
        {"topk:ratio=0.2", NULL, 0, 1, 16384},
        {"qsgd", NULL, 0, 1, 16384},
    };
    const size_t n = 1 << 20;
    float *x = calloc(n, sizeof(*x));

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        trib_desc_t d = TRIB_DESC_INIT;
        trib_plan_t *plan;
        d.send = d.recv = x;
        d.count = n;
        d.codec = rows[i].codec;
        d.feedback = rows[i].feedback;
        d.chunk = rows[i].chunk;
        ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
        ranks_assert(self, plan->run.desc.piece >= rows[i].least);
        ranks_assert(self, plan->run.desc.piece <= rows[i].most);
        for (size_t k = 0; k < n; k++)
            x[k] = (float)(k % 97) - 48;
        for (int start = 0; start < 3; start++) {
            ranks_step(self, plan);
        }
        ranks_ok(self, trib_plan_free(plan));
    }
    free(x);
    return 0;
}
