/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One collective of one size: its buffers, its plan, its call.
 */
#include "perf/coll/operation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "perf/coll/arguments.h"
#include "perf/coll/colls.h"
#include "perf/coll/perf_oracle.h"
#include "perf/common/perf_op.h"

/* Guard bytes after each buffer that must not change. */
#define GUARD_BYTES 64
#define GUARD_VALUE 0xa5

static trib_status_t block_open(struct perf_operation *op, int which, size_t bytes,
                                void **out)
{
    void *block = NULL;
    enum perf_memory memory = op->args->memory;
    trib_status_t status = TRIB_OK;

    if (memory == PERF_MEMORY_ALLOC)
        status = trib_alloc(op->comm, bytes + GUARD_BYTES, &block);
    else if (posix_memalign(&block, 4096, bytes + GUARD_BYTES) != 0)
        status = TRIB_ERR_NO_MEMORY;
    if (status != TRIB_OK)
        return status;
    memset(block, 0, bytes);
    memset((char *)block + bytes, GUARD_VALUE, GUARD_BYTES);
    if (memory == PERF_MEMORY_REGISTER) {
        status = trib_register(op->comm, block, bytes + GUARD_BYTES);
        if (status != TRIB_OK) {
            free(block);
            return status;
        }
    }
    op->blocks[which] = block;
    op->block_bytes[which] = bytes;
    *out = block;
    return TRIB_OK;
}

static void block_close(struct perf_operation *op, int which)
{
    void *block = op->blocks[which];
    if (block == NULL)
        return;
    op->blocks[which] = NULL;
    if (op->args->memory == PERF_MEMORY_ALLOC) {
        trib_free(op->comm, block);
        return;
    }
    if (op->args->memory == PERF_MEMORY_REGISTER)
        trib_deregister(op->comm, block);
    free(block);
}

static struct perf_loss loss_of(const struct perf_args *args, size_t count)
{
    struct perf_loss loss = perf_loss_of(perf_codec_text_of(args, count));

    if (perf_coll_sums(args->coll))
        perf_loss_feed(&loss, perf_feedback_text(args));
    return loss;
}

/* --- memory of this host --- */

struct memory {
    double bytes; /* -1: unknown */
    bool of_group; /* the limit is the control group's, not the host's */
};

static void note_free(void *arg, const trib_item_t *item)
{
    struct memory *memory = arg;
    if (strcmp(item->name, "memory free") != 0 || !item->value[0])
        return;
    memory->bytes = 1024 * strtod(item->value, NULL);
    memory->of_group = strstr(item->detail, "control group") != NULL;
}

/* Return the memory of a rank, in vectors of the reported size; blocks count as
 * fractions. */
static double vectors(const struct perf_args *args)
{
    bool keeps = args->in_place && loss_of(args, SIZE_MAX).kind != PERF_LOSS_NONE;
    double share = args->ranks > 0 ? 1.0 / args->ranks : 0;
    double second = args->in_place ? 0 : 1;
    if (perf_coll_spans(args->coll) && args->coll != TRIB_ALLTOALL)
        second *= share;
    return 1 + second + keeps;
}

bool perf_memory_fits(const struct perf_args *args, FILE *err)
{
    size_t most = 0;
    for (size_t i = 0; i < args->sizes.n; i++)
        most = args->sizes.bytes[i] > most ? args->sizes.bytes[i] : most;
    int ranks = args->ranks > 0 ? args->ranks : 1;
    double need = vectors(args) * (double)most * ranks;
    struct memory free = {.bytes = -1};
    trib_list_each(TRIB_LIST_MEMORY, note_free, &free);
    const double gib = 1 << 30;
    if (free.bytes < 0 || need <= free.bytes)
        return true;
    fprintf(err,
            "trib-perf: %d rank%s %.1f GiB for vectors of %.1f GiB, and %s has "
            "%.1f GiB of memory %s: choose smaller --sizes%s.\n",
            ranks, ranks > 1 ? "s need" : " needs", need / gib, (double)most / gib,
            free.of_group ? "the control group of this process" : "this host",
            free.bytes / gib, free.of_group ? "left" : "free",
            free.of_group ? ", or raise its limit (trib-info --memory shows it)" : "");
    return false;
}

/* --- calls --- */

static trib_status_t run_plan(struct perf_operation *op)
{
    trib_status_t status = trib_plan_start(op->plan);
    return status == TRIB_OK ? trib_plan_wait(op->plan) : status;
}

static trib_status_t run_sendrecv(struct perf_operation *op)
{
    const trib_desc_t *d = &op->desc;
    const int rank = op->oracle.rank, ranks = op->oracle.ranks;
    trib_request_t *request;

    trib_status_t status = trib_irecv(op->comm, d->recv, d->count, d->dtype,
                                      (rank + ranks - 1) % ranks, 0, &request);
    if (status != TRIB_OK)
        return status;
    const trib_status_t sent =
        trib_send(op->comm, d->send, d->count, d->dtype, (rank + 1) % ranks, 0);
    status = trib_request_wait(request);
    trib_request_free(request);
    return sent == TRIB_OK ? status : sent;
}

static trib_status_t run_blocking(struct perf_operation *op)
{
    const trib_desc_t *d = &op->desc;
    const void *in = d->send;
    void *out = d->recv;

    switch (op->args->coll) {
    case TRIB_ALLREDUCE:
        return trib_allreduce(op->comm, in, out, d->count, d->dtype, d->op);
    case TRIB_REDUCE:
        return trib_reduce(op->comm, in, out, d->count, d->dtype, d->op, d->root);
    case TRIB_BROADCAST:
        return trib_broadcast(op->comm, out, d->count, d->dtype, d->root);
    case TRIB_ALLGATHER:
        return trib_allgather(op->comm, in, out, d->count, d->dtype);
    case TRIB_REDUCE_SCATTER:
        return trib_reduce_scatter(op->comm, in, out, d->count, d->dtype, d->op);
    case TRIB_BARRIER:
        return trib_barrier(op->comm);
    case TRIB_GATHER:
        return trib_gather(op->comm, in, out, d->count, d->dtype, d->root);
    case TRIB_SCATTER:
        return trib_scatter(op->comm, in, out, d->count, d->dtype, d->root);
    case TRIB_ALLTOALL:
        return trib_alltoall(op->comm, in, out, d->count, d->dtype);
    case TRIB_SCAN:
        return trib_scan(op->comm, in, out, d->count, d->dtype, d->op);
    case TRIB_EXSCAN:
        return trib_exscan(op->comm, in, out, d->count, d->dtype, d->op);
    default:
        return run_sendrecv(op);
    }
}

/* Run both plans of sendrecv; op->plan receives. */
static trib_status_t run_messages(struct perf_operation *op)
{
    trib_status_t status = trib_plan_start(op->plan);
    const bool receives = status == TRIB_OK;

    if (receives)
        status = trib_plan_start(op->send_plan);
    if (status == TRIB_OK)
        status = trib_plan_wait(op->send_plan);
    if (!receives)
        return status;
    const trib_status_t received = trib_plan_wait(op->plan);
    return status == TRIB_OK ? received : status;
}

static trib_status_t open_messages(struct perf_operation *op)
{
    const trib_desc_t *d = &op->desc;
    const int rank = op->oracle.rank, ranks = op->oracle.ranks;

    op->run = run_messages;
    trib_status_t status = trib_plan_recv(op->comm, d->recv, d->count, d->dtype,
                                          (rank + ranks - 1) % ranks, 0, &op->plan);
    if (status == TRIB_OK)
        status = trib_plan_send(op->comm, d->send, d->count, d->dtype,
                                (rank + 1) % ranks, 0, &op->send_plan);
    return status;
}

static trib_status_t open_plan(struct perf_operation *op)
{
    if (op->args->coll == PERF_SENDRECV)
        return open_messages(op);
    op->run = run_plan;
    return trib_plan_create(op->comm, op->args->coll, &op->desc, &op->plan);
}

void perf_operation_judge_later(struct perf_operation *op)
{
    if (op->oracle.loss.feedback)
        op->oracle.loss.kind = PERF_LOSS_UNKNOWN;
}

trib_status_t perf_operation_judge_absent(struct perf_operation *op)
{
    const size_t ranks = (size_t)trib_size(op->comm);
    trib_status_t status = TRIB_OK;

    if (op->plan == NULL)
        return TRIB_OK;
    size_t *absent = calloc(ranks, sizeof(*absent));
    status = absent == NULL ? TRIB_ERR_NO_MEMORY : trib_plan_absent(op->plan, absent);
    for (size_t r = 0; status == TRIB_OK && r < ranks; r++)
        if (absent[r] > 0)
            op->oracle.loss.kind = PERF_LOSS_UNKNOWN;
    free(absent);
    return status;
}

static void describe(struct perf_operation *op, size_t bytes)
{
    const struct perf_args *args = op->args;
    size_t element = trib_dtype_size(args->dtype);
    size_t ranks = (size_t)trib_size(op->comm);
    size_t count = bytes / element;

    if (perf_coll_spans(args->coll))
        count = (count + ranks - 1) / ranks;
    if (perf_op_is_located(args->op))
        count += count % 2;
    op->bytes = perf_coll_spans(args->coll) ? count * ranks * element : count * element;
    op->desc = (trib_desc_t)TRIB_DESC_INIT;
    op->desc.count = count;
    op->desc.dtype = args->dtype;
    op->desc.op = args->op;
    op->desc.parameter = args->parameter;
    op->desc.root = args->root;
    op->desc.codec = args->codec;
    op->desc.feedback = args->feedback;
    op->desc.quorum = args->quorum;
    op->desc.algorithm = args->algorithm;
    op->desc.chunk = args->chunk;
    op->oracle = (struct perf_oracle){
        .coll = args->coll,
        .dtype = args->dtype,
        .op = args->op,
        .parameter = args->parameter,
        .count = count,
        .rank = trib_rank(op->comm),
        .ranks = trib_size(op->comm),
        .root = args->root,
        .loss = loss_of(args, count),
        .seed = bytes + 1,
        .empty = 1 - args->density,
        .same_blocks = args->same_blocks,
        .smooth = args->input == PERF_INPUT_SMOOTH,
    };
    op->oracle.loss.feedback |= /* a late input is part of a later result */
        args->quorum != NULL || strcmp(args->configured_quorum, "all") != 0;
}

/* In place, the longer buffer is the only one, and this rank's block of it is the other
 * buffer. For collectives with a root, only the root has the longer buffer. */
static trib_status_t open_blocks(struct perf_operation *op)
{
    const unsigned does = perf_coll_does(op->args->coll);
    const bool all = !(does & PERF_ROOT) || !perf_coll_spans(op->args->coll) ||
                     op->oracle.rank == op->oracle.root;
    size_t block = op->desc.count * trib_dtype_size(op->desc.dtype);
    size_t mine = (size_t)op->oracle.rank * block;
    bool in_place = op->args->in_place;
    bool gather = does & PERF_RECV_BLOCKS && !(does & PERF_SEND_BLOCKS);
    bool scatter = does & PERF_SEND_BLOCKS && !(does & PERF_RECV_BLOCKS);
    size_t whole = perf_coll_spans(op->args->coll) ? op->bytes : block;
    size_t recv_bytes = scatter && !in_place ? block : whole;

    trib_status_t status = block_open(op, 0, recv_bytes, &op->desc.recv);
    if (status != TRIB_OK)
        return status;
    op->output = (char *)op->desc.recv + (scatter && in_place && all ? mine : 0);
    op->input = (char *)op->desc.recv + (gather && all ? mine : 0);
    if (in_place)
        return TRIB_OK;
    status = block_open(op, 1, gather ? block : whole, &op->input);
    op->desc.send = op->input;
    return status;
}

/* Inputs are the same in all calls. */
static trib_status_t open_pairs(struct perf_operation *op)
{
    trib_status_t status = perf_pairs_open(op);
    double most = 0;

    if (status != TRIB_OK)
        return status;
    perf_operation_fill(op);
    most = (double)perf_pairs_given(op);
    status = perf_combine(op->comm, TRIB_MAX, &most, 1);
    return status == TRIB_OK ? perf_pairs_plan(op, (size_t)most) : status;
}

trib_status_t perf_operation_open(trib_comm_t *comm, const struct perf_args *args,
                                  size_t bytes, struct perf_operation *op)
{
    trib_status_t status = TRIB_OK;
    memset(op, 0, sizeof(*op));
    op->comm = comm;
    op->args = args;
    describe(op, bytes);
    op->run = run_blocking;
    if (args->coll != TRIB_BARRIER)
        status = open_blocks(op);
    if (status == TRIB_OK && args->call == PERF_CALL_PLAN)
        status = open_plan(op);
    if (status == TRIB_OK && args->call == PERF_CALL_PAIRS)
        status = open_pairs(op);
    if (status != TRIB_OK)
        perf_operation_close(op);
    return status;
}

void perf_operation_close(struct perf_operation *op)
{
    trib_plan_free(op->send_plan);
    trib_plan_free(op->plan);
    op->send_plan = op->plan = NULL;
    perf_pairs_close(op);
    free(op->pristine);
    op->pristine = NULL;
    block_close(op, 1);
    block_close(op, 0);
}

static size_t input_bytes(const struct perf_operation *op)
{
    return perf_oracle_inputs(&op->oracle) * trib_dtype_size(op->desc.dtype);
}

void perf_operation_fill(struct perf_operation *op)
{
    if (op->input != NULL)
        perf_oracle_fill(&op->oracle, op->oracle.rank, 0,
                         perf_oracle_inputs(&op->oracle), op->input);
    if (op->pairs != NULL)
        perf_pairs_take(op);
}

trib_status_t perf_operation_dense(struct perf_operation *op)
{
    return op->pairs == NULL ? TRIB_OK : trib_plan_sparse_dense(op->plan, op->output);
}

void perf_operation_zero(struct perf_operation *op)
{
    if (op->input != NULL)
        memset(op->input, 0, input_bytes(op));
}

trib_status_t perf_operation_keep(struct perf_operation *op)
{
    op->pristine = malloc(input_bytes(op) + 1); /* + 1: the input may be empty */
    if (op->pristine == NULL)
        return TRIB_ERR_NO_MEMORY;
    memcpy(op->pristine, op->input, input_bytes(op));
    return TRIB_OK;
}

void perf_operation_rewrite(struct perf_operation *op)
{
    if (op->pristine != NULL)
        memcpy(op->input, op->pristine, input_bytes(op));
    else
        perf_operation_zero(op);
}

size_t perf_operation_guards(const struct perf_operation *op)
{
    size_t damaged = 0;
    for (int which = 0; which < 2; which++) {
        const unsigned char *block = op->blocks[which];
        for (size_t i = 0; block != NULL && i < GUARD_BYTES; i++)
            damaged += block[op->block_bytes[which] + i] != GUARD_VALUE;
    }
    return damaged;
}

trib_status_t perf_combine(trib_comm_t *comm, trib_op_t op, double *values, size_t n)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_plan_t *plan;
    desc.recv = values;
    desc.count = n;
    desc.dtype = TRIB_F64;
    desc.op = op;
    desc.codec = "none";
    trib_status_t status = trib_plan_allreduce(comm, &desc, &plan);
    if (status != TRIB_OK)
        return status;
    status = trib_plan_start(plan);
    if (status == TRIB_OK)
        status = trib_plan_wait(plan);
    trib_status_t freed = trib_plan_free(plan);
    return status == TRIB_OK ? freed : status;
}
