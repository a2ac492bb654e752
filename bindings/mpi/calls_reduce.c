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
#include "bindings/mpi/turn.h"
#include "bindings/mpi/wrong_calls.h"

#define BY_MPI(name) \
    TMPI_BY_MPI(name, count > INT_MAX, (send, recv, (int)count, type, op, comm), \
                (send, recv, count, type, op, comm))

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
    tmpi_report_passed(r->kind, TMPI_WRONG);
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

static int finish_generic(struct tmpi_turn *t, const struct reduction *r)
{
    int mpi;
    const trib_status_t st = tmpi_generic_reduce(t->a, r->send, r->recv, (int)r->count,
                                                 r->type, r->op, r->root, &mpi);
    const int result = tmpi_done_by_library(t, st);
    return result == MPI_SUCCESS ? mpi : result;
}

static bool to_library(struct tmpi_turn *t, const struct reduction *r, struct plan *p)
{
    t->a = t->without = NULL;
    return planned(r, p) && is_valid(r) && fits(r, p) &&
           tmpi_to_library(t, r->comm, r->kind, p->bytes);
}

static int allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
                     MPI_Op op, MPI_Comm comm)
{
    const struct reduction r = {TMPI_ALLREDUCE, send, recv, count, type, op,
                                comm,           -1,   0};
    struct tmpi_turn t;
    struct plan p;

    if (!to_library(&t, &r, &p))
        return tmpi_done_by_mpi(&t, BY_MPI(Allreduce));
    if (p.able == TMPI_GENERIC)
        return finish_generic(&t, &r);
    if (tmpi_codec_applies(&p.e, p.count))
        return tmpi_done_by_library(&t,
                                    tmpi_codec_sum(t.a, input_of(&r), recv, p.count));
    return tmpi_done_by_library(
        &t, trib_allreduce(t.a->comm, input_of(&r), recv, p.count, p.e.dtype, p.e.op));
}

static int reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
                  MPI_Op op, int root, MPI_Comm comm)
{
    const struct reduction r = {TMPI_REDUCE, send, recv, count, type,
                                op,          comm, root, 0};
    struct tmpi_turn t;
    struct plan p;

    if (!to_library(&t, &r, &p))
        return tmpi_done_by_mpi(
            &t, TMPI_BY_MPI(Reduce, count > INT_MAX,
                            (send, recv, (int)count, type, op, root, comm),
                            (send, recv, count, type, op, root, comm)));
    if (p.able == TMPI_GENERIC)
        return finish_generic(&t, &r);
    return tmpi_done_by_library(&t, trib_reduce(t.a->comm, input_of(&r), recv, p.count,
                                                p.e.dtype, p.e.op, root));
}

/* The result of an in-displ reduce-scatter is at the start of the buffer in MPI, and at
 * the rank's block in the library. */
static trib_status_t to_block(void *out, size_t bytes, void **block_out, bool in_place)
{
    *block_out = in_place || bytes == 0 ? malloc(bytes + 1) : out;
    return *block_out ? TRIB_OK : (trib_status_t)TMPI_NO_MEMORY;
}

static void from_block(void *out, size_t bytes, void *block, trib_status_t st)
{
    if (block == out)
        return;
    if (st == TRIB_OK && bytes)
        memcpy(out, block, bytes);
    free(block);
}

static int reduce_scatter_block(const void *send, void *recv, MPI_Count count,
                                MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const struct reduction r = {
        TMPI_REDUCE_SCATTER_BLOCK, send, recv, count, type, op, comm, -1, 0};
    const bool in_place = send == MPI_IN_PLACE;
    struct tmpi_turn t;
    struct plan p;
    void *block = NULL;

    if (!to_library(&t, &r, &p))
        return tmpi_done_by_mpi(&t, BY_MPI(Reduce_scatter_block));
    trib_status_t st = to_block(recv, p.bytes, &block, in_place);
    if (st == TRIB_OK)
        st = trib_reduce_scatter(t.a->comm, in_place ? recv : send, block, p.count,
                                 p.e.dtype, p.e.op);
    from_block(recv, p.bytes, block, st);
    return tmpi_done_by_library(&t, st);
}

/* Return the counts in library elements, and in *mine_out the bytes of this rank's
 * block. NULL: no memory. */
static size_t *counts_of(const struct tmpi_attached *a, const struct tmpi_list *l,
                         const struct plan *p, size_t *mine_out)
{
    size_t *of = malloc((size_t)a->ranks * sizeof(*of));

    for (int i = 0; of && i < a->ranks; i++)
        of[i] = (size_t)(tmpi_count_at(l, i) * p->e.times);
    *mine_out = of ? of[a->rank] * trib_dtype_size(p->e.dtype) : 0;
    return of;
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
    const struct reduction r = {
        TMPI_REDUCE_SCATTER, send, recv, total, type, op, comm, -1, own};
    const bool in_place = send == MPI_IN_PLACE;
    struct tmpi_turn t;
    struct plan p;
    void *block = NULL;
    size_t mine;

    if (!to_library(&t, &r, &p))
        return tmpi_done_by_mpi(
            &t, TMPI_BY_MPI(Reduce_scatter, l->wide_counts != NULL,
                            (send, recv, l->counts, type, op, comm),
                            (send, recv, l->wide_counts, type, op, comm)));
    size_t *of = counts_of(t.a, l, &p, &mine);
    trib_status_t st =
        of ? to_block(recv, mine, &block, in_place) : (trib_status_t)TMPI_NO_MEMORY;
    if (st == TRIB_OK)
        st = trib_reduce_scatterv(t.a->comm, in_place ? recv : send, block, of, NULL,
                                  p.e.dtype, p.e.op);
    from_block(recv, mine, block, st);
    free(of);
    return tmpi_done_by_library(&t, st);
}

/* The library's scans support four operators. */
static bool scans(const struct plan *p)
{
    return p->able == TMPI_ABLE && (p->e.op == TRIB_SUM || p->e.op == TRIB_MIN ||
                                    p->e.op == TRIB_MAX || p->e.op == TRIB_PROD);
}

static bool scan_to_library(struct tmpi_turn *t, const struct reduction *r,
                            struct plan *p)
{
    t->a = t->without = NULL;
    if (!planned(r, p) || !is_valid(r))
        return false;
    if (scans(p))
        return tmpi_to_library(t, r->comm, r->kind, p->bytes);
    tmpi_report_passed(r->kind, TMPI_TYPE);
    return false;
}

static int scan(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
                MPI_Op op, MPI_Comm comm)
{
    const struct reduction r = {TMPI_SCAN, send, recv, count, type, op, comm, -1, 0};
    struct tmpi_turn t;
    struct plan p;

    if (!scan_to_library(&t, &r, &p))
        return tmpi_done_by_mpi(&t, BY_MPI(Scan));
    return tmpi_done_by_library(
        &t, trib_scan(t.a->comm, input_of(&r), recv, p.count, p.e.dtype, p.e.op));
}

static int exscan(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
                  MPI_Op op, MPI_Comm comm)
{
    const struct reduction r = {TMPI_EXSCAN, send, recv, count, type, op, comm, -1, 0};
    struct tmpi_turn t;
    struct plan p;

    if (!scan_to_library(&t, &r, &p))
        return tmpi_done_by_mpi(&t, BY_MPI(Exscan));
    void *unused = recv ? NULL : malloc(p.bytes); /* rank 0 may pass NULL */
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;
    if (recv || unused)
        st = trib_exscan(t.a->comm, input_of(&r), recv ? recv : unused, p.count,
                         p.e.dtype, p.e.op);
    free(unused);
    return tmpi_done_by_library(&t, st);
}

#define REDUCTION(number) \
    (const void *send, void *recv, number count, MPI_Datatype type, MPI_Op op, \
     MPI_Comm comm)
#define REDUCED (send, recv, count, type, op, comm)
#define BOTH(kind, name, function) \
    TMPI_INTERCEPT(kind, name, REDUCTION(int), REDUCED, function REDUCED) \
    TMPI_WIDE(kind, name, REDUCTION(MPI_Count), REDUCED, function REDUCED)
#define ROOTED(number) \
    (const void *send, void *recv, number count, MPI_Datatype type, MPI_Op op, \
     int root, MPI_Comm comm)
#define TO_ROOT (send, recv, count, type, op, root, comm)

BOTH(TMPI_ALLREDUCE, Allreduce, allreduce)
BOTH(TMPI_REDUCE_SCATTER_BLOCK, Reduce_scatter_block, reduce_scatter_block)
BOTH(TMPI_SCAN, Scan, scan)
BOTH(TMPI_EXSCAN, Exscan, exscan)
TMPI_INTERCEPT(TMPI_REDUCE, Reduce, ROOTED(int), TO_ROOT, reduce TO_ROOT)
TMPI_WIDE(TMPI_REDUCE, Reduce, ROOTED(MPI_Count), TO_ROOT, reduce TO_ROOT)
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
