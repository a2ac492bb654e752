/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce, Reduce, Reduce_scatter, Reduce_scatter_block, Scan and Exscan. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/mpi/call_report.h"
#include "bindings/mpi/codec_plans.h"
#include "bindings/mpi/count_list.h"
#include "bindings/mpi/element.h"
#include "bindings/mpi/entry.h"
#include "bindings/mpi/failure_class.h"
#include "bindings/mpi/generic_reduce.h"
#include "bindings/mpi/next.h"
#include "bindings/mpi/packing.h"
#include "bindings/mpi/dispatch.h"
#include "bindings/mpi/argument_check.h"

/* Arguments of a reduction. */
struct reduction {
    enum tmpi_kind kind;
    const void *send;
    void *recv;
    MPI_Count count; /* elements of a rank's result or block */
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
    int root; /* -1: none */
    MPI_Count mine; /* elements of this rank's block, if block sizes differ */
    const struct tmpi_list *list; /* of block sizes that differ */
};

/* The same reduction in the library's terms. */
struct plan {
    enum tmpi_able able;
    struct tmpi_element e;
    size_t count; /* in elements of `e` */
    size_t bytes;
};

static const void *input_of(const struct reduction *r)
{
    return r->send == MPI_IN_PLACE ? NULL : r->send;
}

static bool refuses_alias(enum tmpi_kind kind)
{
#ifdef MPICH_VERSION
    (void)kind;
    return true;
#else
    return kind == TMPI_REDUCE;
#endif
}

/* Rank 0 of an exscan has no result, but MPICH refuses NULL there. */
static bool has_result(const struct reduction *r, int rank)
{
    switch (r->kind) {
    case TMPI_REDUCE:
        return rank == r->root;
    case TMPI_REDUCE_SCATTER:
        return r->mine > 0 || r->send == MPI_IN_PLACE;
#ifndef MPICH_VERSION
    case TMPI_EXSCAN:
        return rank > 0 || r->send == MPI_IN_PLACE || r->recv == MPI_IN_PLACE;
#endif
    default:
        return true;
    }
}

/* Return true if MPI accepts the buffers on this rank. */
static bool buffers_are_valid(const struct reduction *r, int rank)
{
    const bool result = has_result(r, rank);

    if (result && !tmpi_buffer_is_valid(r->recv, r->count, r->type))
        return false;
    if (r->send == MPI_IN_PLACE)
        return r->kind != TMPI_REDUCE || rank == r->root;
    return tmpi_buffer_is_valid(r->send, r->count, r->type) &&
           !(result && r->send && r->send == r->recv && refuses_alias(r->kind));
}

static bool is_valid(const struct reduction *r)
{
    int rank = 0;

    if (r->comm == MPI_COMM_NULL)
        return false;
    if (r->kind == TMPI_REDUCE || r->kind == TMPI_EXSCAN)
        tmpi_next.Comm_rank(r->comm, &rank);
    if (buffers_are_valid(r, rank) &&
        (r->kind != TMPI_REDUCE || tmpi_root_is_valid(r->root, r->comm)))
        return true;
    tmpi_report_passed(r->kind, TMPI_REFUSED);
    return false;
}

/* Describe the reduction for the library. If it cannot do the reduction, report the
 * reason and return false. */
static bool planned(const struct reduction *r, struct plan *p)
{
    p->able = r->count > 0 ? tmpi_element_of(r->type, r->op, &p->e) : TMPI_UNABLE;
    if (p->able == TMPI_ABLE) {
        p->count = (size_t)r->count * (size_t)p->e.times;
        p->bytes = p->count * trib_dtype_size(p->e.dtype);
    } else if (p->able == TMPI_GENERIC &&
               (r->kind == TMPI_ALLREDUCE || r->kind == TMPI_REDUCE)) {
        p->bytes = tmpi_bytes_of(r->count, r->type);
    } else {
        tmpi_report_passed(r->kind, r->count > 0 ? TMPI_TYPE : TMPI_SMALL);
        return false;
    }
    return p->bytes > 0;
}

/* Return false if a generic reduction is too long: it sends all elements to all
 * ranks. */
static bool fits(const struct reduction *r, const struct plan *p)
{
    int ranks = 1;

    if (p->able == TMPI_ABLE)
        return true;
    tmpi_next.Comm_size(r->comm, &ranks);
    if (p->bytes * (size_t)ranks <= TMPI_GENERIC_BYTES)
        return true;
    tmpi_report_passed(r->kind, TMPI_LONG);
    return false;
}

/* The library's scans support four operators. */
static bool scans(const struct plan *p)
{
    return p->able == TMPI_ABLE && (p->e.op == TRIB_SUM || p->e.op == TRIB_MIN ||
                                    p->e.op == TRIB_MAX || p->e.op == TRIB_PROD);
}

static bool to_library(struct tmpi_call *call, const struct reduction *r,
                       struct plan *p)
{
    const bool is_scan = r->kind == TMPI_SCAN || r->kind == TMPI_EXSCAN;

    call->a = call->without = NULL;
    if (!planned(r, p) || !is_valid(r) || (!is_scan && !fits(r, p)))
        return false;
    if (!is_scan || scans(p))
        return tmpi_to_library(call, r->comm, r->kind, p->bytes);
    tmpi_report_passed(r->kind, TMPI_TYPE);
    return false;
}

/* Reduce-scatter. `counts` has the elements of each rank's block; NULL: all blocks are
 * equal. This rank's block has `bytes` bytes. MPI expects the result of an in-place
 * call at the start of the buffer, the library writes it to the rank's block. */
static trib_status_t scatter(const struct reduction *r, const struct plan *p,
                             trib_comm_t *comm, const size_t *counts, size_t bytes)
{
    const bool in_place = r->send == MPI_IN_PLACE, copies = in_place || bytes == 0;
    const void *send = in_place ? r->recv : r->send;
    void *block = copies ? malloc(bytes + 1) : r->recv;

    if (!block)
        return (trib_status_t)TMPI_NO_MEMORY;
    const trib_status_t st =
        counts
            ? trib_reduce_scatterv(comm, send, block, counts, NULL, p->e.dtype, p->e.op)
            : trib_reduce_scatter(comm, send, block, p->count, p->e.dtype, p->e.op);
    if (copies && st == TRIB_OK && bytes)
        memcpy(r->recv, block, bytes);
    if (copies)
        free(block);
    return st;
}

static trib_status_t scatter_list(const struct reduction *r, const struct plan *p,
                                  const struct tmpi_attached *a)
{
    size_t *counts = malloc((size_t)a->ranks * sizeof(*counts));
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;

    for (int i = 0; counts && i < a->ranks; i++)
        counts[i] = (size_t)(tmpi_count_at(r->list, i) * p->e.times);
    if (counts)
        st = scatter(r, p, a->comm, counts,
                     counts[a->rank] * trib_dtype_size(p->e.dtype));
    free(counts);
    return st;
}

/* Rank 0 may pass NULL as its result. */
static trib_status_t exscan(const struct reduction *r, const struct plan *p,
                            trib_comm_t *comm)
{
    void *unused = r->recv ? NULL : malloc(p->bytes);
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;

    if (r->recv || unused)
        st = trib_exscan(comm, input_of(r), r->recv ? r->recv : unused, p->count,
                         p->e.dtype, p->e.op);
    free(unused);
    return st;
}

static trib_status_t run(const struct reduction *r, const struct plan *p,
                         struct tmpi_attached *a)
{
    const void *send = input_of(r);

    switch (r->kind) {
    case TMPI_ALLREDUCE:
        return tmpi_codec_applies(&p->e, p->count)
                   ? tmpi_codec_sum(a, send, r->recv, p->count)
                   : trib_allreduce(a->comm, send, r->recv, p->count, p->e.dtype,
                                    p->e.op);
    case TMPI_REDUCE:
        return trib_reduce(a->comm, send, r->recv, p->count, p->e.dtype, p->e.op,
                           r->root);
    case TMPI_REDUCE_SCATTER_BLOCK:
        return scatter(r, p, a->comm, NULL, p->bytes);
    case TMPI_REDUCE_SCATTER:
        return scatter_list(r, p, a);
    case TMPI_SCAN:
        return trib_scan(a->comm, send, r->recv, p->count, p->e.dtype, p->e.op);
    default:
        return exscan(r, p, a->comm);
    }
}

#define BY_MPI(name, ...) \
    TMPI_BY_MPI(name, r->count > INT_MAX, \
                (r->send, r->recv, (int)r->count, r->type, r->op, __VA_ARGS__), \
                (r->send, r->recv, r->count, r->type, r->op, __VA_ARGS__))

static int by_mpi(const struct reduction *r)
{
    switch (r->kind) {
    case TMPI_ALLREDUCE:
        return BY_MPI(Allreduce, r->comm);
    case TMPI_REDUCE:
        return BY_MPI(Reduce, r->root, r->comm);
    case TMPI_REDUCE_SCATTER_BLOCK:
        return BY_MPI(Reduce_scatter_block, r->comm);
    case TMPI_REDUCE_SCATTER:
        return TMPI_BY_MPI(
            Reduce_scatter, r->list->wide_counts != NULL,
            (r->send, r->recv, r->list->counts, r->type, r->op, r->comm),
            (r->send, r->recv, r->list->wide_counts, r->type, r->op, r->comm));
    case TMPI_SCAN:
        return BY_MPI(Scan, r->comm);
    default:
        return BY_MPI(Exscan, r->comm);
    }
}

static int reduce(const struct reduction *r)
{
    int mpi = MPI_SUCCESS;
    struct tmpi_call call;
    struct plan p;

    if (!to_library(&call, r, &p))
        return tmpi_done_by_mpi(&call, by_mpi(r));
    const trib_status_t st =
        p.able == TMPI_GENERIC
            ? tmpi_generic_reduce(call.a, r->send, r->recv, (int)r->count, r->type,
                                  r->op, r->root, &mpi)
            : run(r, &p, call.a);
    const int result = tmpi_done_by_library(&call, st);
    return result == MPI_SUCCESS ? mpi : result;
}

static MPI_Count total_of(MPI_Comm comm, const struct tmpi_list *l, MPI_Count *mine_out)
{
    MPI_Count total = 0;
    int rank = 0, ranks = 0;

    *mine_out = 0;
    if (tmpi_list_is_empty(l) || comm == MPI_COMM_NULL ||
        tmpi_next.Comm_size(comm, &ranks) || tmpi_next.Comm_rank(comm, &rank))
        return 0;
    *mine_out = tmpi_count_at(l, rank);
    for (int i = 0; i < ranks; i++) {
        if (tmpi_count_at(l, i) < 0)
            return 0;
        total += tmpi_count_at(l, i);
    }
    return total;
}

static int reduce_scatter(const void *send, void *recv, const struct tmpi_list *l,
                          MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Count own;
    const MPI_Count total = total_of(comm, l, &own);

    return reduce(&(struct reduction){TMPI_REDUCE_SCATTER, send, recv, total, type, op,
                                      comm, -1, own, l});
}

#define REDUCTION(number) \
    (const void *send, void *recv, number count, MPI_Datatype type, MPI_Op op, \
     MPI_Comm comm)
#define REDUCED (send, recv, count, type, op, comm)
#define REDUCE(kind, root) \
    reduce(&(struct reduction){kind, send, recv, count, type, op, comm, root, 0, NULL})
#define BOTH(kind, name) \
    TMPI_INTERCEPT(kind, name, REDUCTION(int), REDUCED, REDUCE(kind, -1)) \
    TMPI_WIDE(kind, name, REDUCTION(MPI_Count), REDUCED, REDUCE(kind, -1))
#define ROOTED(number) \
    (const void *send, void *recv, number count, MPI_Datatype type, MPI_Op op, \
     int root, MPI_Comm comm)
#define TO_ROOT (send, recv, count, type, op, root, comm)

BOTH(TMPI_ALLREDUCE, Allreduce)
BOTH(TMPI_REDUCE_SCATTER_BLOCK, Reduce_scatter_block)
BOTH(TMPI_SCAN, Scan)
BOTH(TMPI_EXSCAN, Exscan)
TMPI_INTERCEPT(TMPI_REDUCE, Reduce, ROOTED(int), TO_ROOT, REDUCE(TMPI_REDUCE, root))
TMPI_WIDE(TMPI_REDUCE, Reduce, ROOTED(MPI_Count), TO_ROOT, REDUCE(TMPI_REDUCE, root))
TMPI_INTERCEPT(TMPI_REDUCE_SCATTER, Reduce_scatter,
               (const void *send, void *recv, const int *counts, MPI_Datatype type,
                MPI_Op op, MPI_Comm comm),
               (send, recv, counts, type, op, comm),
               reduce_scatter(send, recv, &(struct tmpi_list){.counts = counts}, type,
                              op, comm))
TMPI_WIDE(TMPI_REDUCE_SCATTER, Reduce_scatter,
          (const void *send, void *recv, const MPI_Count *counts, MPI_Datatype type,
           MPI_Op op, MPI_Comm comm),
          (send, recv, counts, type, op, comm),
          reduce_scatter(send, recv, &(struct tmpi_list){.wide_counts = counts}, type,
                         op, comm))
