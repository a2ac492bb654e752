/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptions at the limits of a plan.
 */
#include <math.h>

#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/harness/ranks.h"

static trib_status_t make(struct ranks_self *self, trib_coll_t coll,
                          const trib_desc_t *d)
{
    trib_plan_t *plan;
    const trib_status_t st = trib_plan_create(self->comm, coll, d, &plan);

    if (st == TRIB_OK)
        ranks_ok(self, trib_plan_free(plan));
    return st;
}

static const struct {
    trib_coll_t coll;
    trib_desc_t d;
    trib_status_t st;
} rows[] = {
    {TRIB_ALLREDUCE, {.count = 8, .chunk = 64}, TRIB_OK},
    {TRIB_ALLREDUCE, {.count = 8, .chunk = 63}, TRIB_ERR_INVALID},
    {TRIB_ALLREDUCE, {.count = 8, .chunk = 4096}, TRIB_OK},
    {TRIB_ALLREDUCE, {.count = 8, .chunk = 4097}, TRIB_ERR_INVALID},
    {TRIB_REDUCE, {.count = 8, .root = 1}, TRIB_OK},
    {TRIB_REDUCE, {.count = 8, .root = 2}, TRIB_ERR_INVALID},
    {TRIB_REDUCE, {.count = 8, .root = -1}, TRIB_ERR_INVALID},
    {TRIB_ALLREDUCE, {.count = 8, .root = 2}, TRIB_OK}, /* has no root */
    {TRIB_BARRIER, {.codec = "topk"}, TRIB_ERR_INVALID},
    {TRIB_BARRIER, {.codec = "none"}, TRIB_OK},
    {TRIB_ALLREDUCE,
     {.count = 8, .send_counts = (const size_t[]){4, 4}},
     TRIB_ERR_INVALID},
    {TRIB_BROADCAST,
     {.count = 8, .recv_offsets = (const size_t[]){0, 4}},
     TRIB_ERR_INVALID},
    {TRIB_BROADCAST, {.count = 8, .parameter = 0.2}, TRIB_ERR_INVALID},
    {TRIB_ALLGATHER, {.count = 8, .parameter = NAN}, TRIB_ERR_INVALID},
    {TRIB_BROADCAST, {.count = 8, .op = TRIB_OP_COUNT}, TRIB_ERR_INVALID},
    {TRIB_ALLREDUCE, {.count = 8, .feed = TRIB_FEED_BACKWARD}, TRIB_OK},
    {TRIB_ALLGATHER, {.count = 8, .feed = TRIB_FEED_FORWARD}, TRIB_ERR_INVALID},
    {TRIB_ALLREDUCE, {.count = SIZE_MAX / 2}, TRIB_ERR_OVERFLOW},
    {TRIB_ALLREDUCE, {.count = 8, .op = TRIB_OP_COUNT}, TRIB_ERR_INVALID},
    {TRIB_ALLREDUCE, {.count = 8, .dtype = TRIB_DTYPE_COUNT}, TRIB_ERR_INVALID},
    {TRIB_ALLREDUCE,
     {.count = 8, .dtype = TRIB_F32, .op = TRIB_BAND},
     TRIB_ERR_INVALID},
    {TRIB_ALLREDUCE,
     {.count = 8, .dtype = TRIB_F8_E5M2, .op = TRIB_LOR},
     TRIB_ERR_INVALID},
    {TRIB_ALLREDUCE,
     {.count = 8, .dtype = TRIB_F8_E4M3, .op = TRIB_MEDIAN},
     TRIB_ERR_INVALID},
    {TRIB_REDUCE, {.count = 8, .dtype = TRIB_BOOL, .op = TRIB_MEAN}, TRIB_ERR_INVALID},
    {TRIB_BROADCAST, {.count = 8, .dtype = TRIB_BOOL, .op = TRIB_MEAN}, TRIB_OK},
    {TRIB_REDUCE, {.count = 8, .dtype = TRIB_BOOL, .op = TRIB_LXOR}, TRIB_OK},
    {TRIB_REDUCE, {.count = 8, .op = TRIB_MINLOC}, TRIB_OK},
    {TRIB_REDUCE, {.count = 9, .op = TRIB_MINLOC}, TRIB_ERR_INVALID},
    {TRIB_SCAN, {.count = 8, .dtype = TRIB_I16, .op = TRIB_MAXLOC}, TRIB_ERR_INVALID},
    {TRIB_REDUCE_SCATTER,
     {.count = 8, .op = TRIB_MAXLOC, .send_counts = (const size_t[]){4, 3}},
     TRIB_ERR_INVALID},
    {TRIB_ALLREDUCE,
     {.count = 8, .op = TRIB_MINLOC, .codec = "bf16"},
     TRIB_ERR_UNSUPPORTED},
    {TRIB_COLL_COUNT, {.count = 8}, TRIB_ERR_INVALID},
};

static int borders(struct ranks_self *self)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        trib_desc_t d = TRIB_DESC_INIT;
        d.count = rows[i].d.count;
        d.chunk = rows[i].d.chunk;
        d.root = rows[i].d.root;
        d.feed = rows[i].d.feed;
        d.op = rows[i].d.op;
        d.codec = rows[i].d.codec;
        d.send_counts = rows[i].d.send_counts;
        d.recv_offsets = rows[i].d.recv_offsets;
        d.parameter = rows[i].d.parameter;
        d.dtype = rows[i].d.dtype;
        const trib_status_t st = make(self, rows[i].coll, &d);
        if (st != rows[i].st)
            ranks_die(self, "row %zu: %s: %s", i, trib_status_name(st),
                      trib_last_error(self->comm));
    }
    return 0;
}

TEST(test_borders)
{
    ranks_pass(.size = 2, .fn = borders, .config = "transport=shm;chunk=4096");
}
