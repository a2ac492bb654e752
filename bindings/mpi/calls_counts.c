/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allgatherv, Gatherv, Scatterv and Alltoallv: a count and a displacement per rank.
 *
 * The library moves bytes. Blocks of a dense datatype are read and written in displ;
 * blocks of any other datatype are packed contiguously.
 */
#include <stdint.h>
#include <stdlib.h>

#include "bindings/mpi/call_report.h"
#include "bindings/mpi/count_list.h"
#include "bindings/mpi/entry.h"
#include "bindings/mpi/failure_class.h"
#include "bindings/mpi/next.h"
#include "bindings/mpi/packing.h"
#include "bindings/mpi/dispatch.h"
#include "bindings/mpi/argument_check.h"

/* The blocks of all ranks in one buffer of the program. */
struct blocks {
    int ranks;
    const struct tmpi_list *list; /* counts and displacements in elements */
    MPI_Datatype type;
    struct tmpi_layout layout;
    char *user;
    char *bytes; /* dense type: memory of `user`; never NULL */
    char *owned; /* memory to free */
    size_t *lengths; /* [ranks] bytes */
    size_t *offsets; /* [ranks] bytes from `bytes` */
};

static void close_blocks(struct blocks *b)
{
    free(b->owned);
    free(b->lengths);
    free(b->offsets);
    *b = (struct blocks){0};
}

/* Compute the lengths, and the offsets of contiguous blocks; return the total bytes.
 * *first_out is the smallest displacement of a block with elements; displacements of
 * empty blocks may be arbitrary. */
static size_t measure_blocks(struct blocks *b, MPI_Count *first_out)
{
    size_t total = 0;

    for (int i = 0; i < b->ranks; i++) {
        b->lengths[i] = (size_t)(tmpi_count_at(b->list, i) * b->layout.size);
        b->offsets[i] = total;
        if (!b->lengths[i])
            continue;
        const MPI_Count displ = tmpi_displ_at(b->list, i);
        *first_out = total == 0 || displ < *first_out ? displ : *first_out;
        total += b->lengths[i];
    }
    return total;
}

/* Return false if out of memory or the datatype is invalid. Offsets of dense blocks
 * count from the first block, since displacements may be negative. */
static bool open_blocks(struct blocks *b, int ranks, const void *memory,
                        const struct tmpi_list *list, MPI_Datatype type)
{
    *b = (struct blocks){ranks, list, type, .user = (char *)(uintptr_t)memory};
    b->lengths = malloc((size_t)ranks * sizeof(*b->lengths));
    b->offsets = malloc((size_t)ranks * sizeof(*b->offsets));
    if (!b->lengths || !b->offsets || !tmpi_layout_of(type, &b->layout))
        return false;
    MPI_Count first = 0;
    const size_t total = measure_blocks(b, &first);
    if (b->layout.dense && total > 0) {
        b->bytes = b->user + first * b->layout.size;
        for (int i = 0; i < ranks; i++)
            if (b->lengths[i])
                b->offsets[i] =
                    (size_t)((tmpi_displ_at(list, i) - first) * b->layout.size);
        return true;
    }
    b->bytes = b->owned = malloc(total + 1); /* the library takes NULL as in-displ */
    return b->bytes;
}

/* Describe the block of a rank for packing and unpacking. */
static struct tmpi_packed one_block(const struct blocks *b, int i)
{
    const MPI_Count displ = b->lengths[i] ? tmpi_displ_at(b->list, i) : 0;

    return (struct tmpi_packed){.type = b->type,
                                .layout = b->layout,
                                .count = b->lengths[i] ? tmpi_count_at(b->list, i) : 0,
                                .user = b->user + displ * b->layout.extent,
                                .bytes = b->bytes + b->offsets[i]};
}

static int pack_block(const struct blocks *b, int i, MPI_Comm comm)
{
    struct tmpi_packed p = one_block(b, i);
    return b->layout.dense ? MPI_SUCCESS : tmpi_pack(&p, comm);
}

static int pack_blocks(const struct blocks *b, MPI_Comm comm)
{
    int result = MPI_SUCCESS;

    for (int i = 0; i < b->ranks && result == MPI_SUCCESS; i++)
        result = pack_block(b, i, comm);
    return result;
}

static int unpack_blocks(const struct blocks *b, MPI_Comm comm)
{
    int result = MPI_SUCCESS;

    for (int i = 0; i < b->ranks && !b->layout.dense && result == MPI_SUCCESS; i++) {
        struct tmpi_packed p = one_block(b, i);
        result = tmpi_unpack(&p, comm);
    }
    return result;
}

static int ranks_of(MPI_Comm comm, int *rank_out)
{
    int ranks = 0;

    *rank_out = -1;
    if (comm == MPI_COMM_NULL || tmpi_next.Comm_size(comm, &ranks))
        return 0;
    tmpi_next.Comm_rank(comm, rank_out);
    return ranks;
}

static size_t sum_of(const struct tmpi_list *list, int ranks, MPI_Datatype type)
{
    MPI_Count total = 0;

    for (int i = 0; !tmpi_list_is_empty(list) && i < ranks; i++)
        total += tmpi_count_at(list, i) > 0 ? tmpi_count_at(list, i) : 0;
    return tmpi_bytes_of(total, type);
}

/* Return the program's error code: the library's error, or else MPI's. */
static int finish(struct tmpi_call *call, trib_status_t st,
                  const struct tmpi_packed *own, int result)
{
    const MPI_Comm comm = call->a->handle;
    const int done = tmpi_done_by_library(call, st);

    return done == MPI_SUCCESS ? tmpi_packed_error(own, comm, result) : done;
}

/* Arguments of a call. One side has a list of counts: the send side of a scatter, else
 * the receive side. The other side has a count and a type, or for alltoallv also a
 * list. */
struct counted {
    enum tmpi_kind kind;
    const void *send;
    void *recv;
    const struct tmpi_list *list;
    MPI_Datatype list_type;
    MPI_Count count;
    MPI_Datatype type;
    int root; /* -1: all */
    MPI_Comm comm;
    bool wide; /* called through a function MPI_X_c */
    const struct tmpi_list *from_list; /* alltoallv: of the send side */
};

/* The roles of this rank in a call, and the memory of both sides. */
struct sides {
    int rank, ranks;
    bool has_many; /* the blocks of all ranks are here */
    bool in_place; /* this rank's block is among them */
    const void *many, *one; /* buffers of the program */
    struct blocks blocks;
    struct tmpi_packed own;
};

static struct sides sides_of(const struct counted *m)
{
    const bool scatters = m->kind == TMPI_SCATTERV;
    struct sides s = {.many = scatters ? m->send : m->recv,
                      .one = scatters ? m->recv : m->send};

    s.ranks = ranks_of(m->comm, &s.rank);
    s.has_many = m->kind == TMPI_ALLGATHERV || s.rank == m->root;
    s.in_place = s.has_many && s.one == MPI_IN_PLACE;
    return s;
}

static bool is_valid(const struct counted *m, const struct sides *s)
{
    if (m->kind == TMPI_SCATTERV ? !s->in_place : s->has_many)
        tmpi_commit_type(m->kind == TMPI_SCATTERV ? m->type : m->list_type);
    return (m->kind == TMPI_ALLGATHERV || (m->root >= 0 && m->root < s->ranks)) &&
           (!s->has_many ||
            tmpi_list_is_valid(s->many, m->list, s->ranks, m->list_type)) &&
           (s->in_place || tmpi_buffer_is_valid(s->one, m->count, m->type));
}

/* Only in an all-gather do all ranks know the number of bytes; other calls count as
 * TRIB_MPI_MIN bytes. */
static bool to_library(struct tmpi_call *call, const struct counted *m,
                       const struct sides *s)
{
    const bool valid = is_valid(m, s);
    const size_t bytes = !valid ? 0
                         : m->kind == TMPI_ALLGATHERV
                             ? sum_of(m->list, s->ranks, m->list_type)
                             : tmpi_module.settings.min;

    if (valid && (bytes || m->kind != TMPI_ALLGATHERV))
        return tmpi_to_library(call, m->comm, m->kind, bytes);
    tmpi_report_passed(m->kind, valid ? TMPI_SMALL : TMPI_REFUSED);
    return false;
}

/* Open the blocks, and this rank's block unless it is among them. Where the list is
 * given, list[rank] is the size of that block. */
static bool open_sides(struct sides *s, const struct counted *m)
{
    struct blocks *b = &s->blocks;

    return (!s->has_many || open_blocks(b, s->ranks, s->many, m->list, m->list_type)) &&
           (s->in_place ||
            (tmpi_packed_open(&s->own, (void *)(uintptr_t)s->one, m->count, m->type) &&
             (!b->lengths || tmpi_packed_expect(&s->own, b->lengths[s->rank]))));
}

static int pack_sides(struct sides *s, const struct counted *m)
{
    if (m->kind == TMPI_SCATTERV)
        return s->has_many ? pack_blocks(&s->blocks, m->comm) : MPI_SUCCESS;
    return s->in_place ? pack_block(&s->blocks, s->rank, m->comm)
                       : tmpi_pack(&s->own, m->comm);
}

static int unpack_sides(struct sides *s, const struct counted *m)
{
    if (m->kind == TMPI_SCATTERV)
        return s->in_place ? MPI_SUCCESS : tmpi_unpack(&s->own, m->comm);
    return s->has_many ? unpack_blocks(&s->blocks, m->comm) : MPI_SUCCESS;
}

static trib_status_t run(const struct counted *m, trib_comm_t *comm, struct sides *s)
{
    const struct blocks *b = &s->blocks;
    const size_t own = b->lengths ? b->lengths[s->rank] : tmpi_packed_bytes(&s->own);

    switch (m->kind) {
    case TMPI_ALLGATHERV:
        return trib_allgatherv(comm, s->own.bytes, b->bytes, b->lengths, b->offsets,
                               TRIB_I8);
    case TMPI_GATHERV:
        return trib_gatherv(comm, s->own.bytes, s->in_place ? 0 : own, b->bytes,
                            b->lengths, b->offsets, TRIB_I8, m->root);
    default:
        return trib_scatterv(comm, b->bytes, b->lengths, b->offsets, s->own.bytes, own,
                             TRIB_I8, m->root);
    }
}

#define NARROW(l) (l)->counts, (l)->displs
#define WIDE(l) (l)->wide_counts, (l)->wide_displs

static int by_mpi(const struct counted *m)
{
    switch (m->kind) {
    case TMPI_ALLGATHERV:
        return TMPI_BY_MPI(Allgatherv, m->wide,
                           (m->send, (int)m->count, m->type, m->recv, NARROW(m->list),
                            m->list_type, m->comm),
                           (m->send, m->count, m->type, m->recv, WIDE(m->list),
                            m->list_type, m->comm));
    case TMPI_GATHERV:
        return TMPI_BY_MPI(Gatherv, m->wide,
                           (m->send, (int)m->count, m->type, m->recv, NARROW(m->list),
                            m->list_type, m->root, m->comm),
                           (m->send, m->count, m->type, m->recv, WIDE(m->list),
                            m->list_type, m->root, m->comm));
    case TMPI_SCATTERV:
        return TMPI_BY_MPI(Scatterv, m->wide,
                           (m->send, NARROW(m->list), m->list_type, m->recv,
                            (int)m->count, m->type, m->root, m->comm),
                           (m->send, WIDE(m->list), m->list_type, m->recv, m->count,
                            m->type, m->root, m->comm));
    default:
        return TMPI_BY_MPI(Alltoallv, m->wide,
                           (m->send, NARROW(m->from_list), m->type, m->recv,
                            NARROW(m->list), m->list_type, m->comm),
                           (m->send, WIDE(m->from_list), m->type, m->recv,
                            WIDE(m->list), m->list_type, m->comm));
    }
}

static int move(const struct counted *m)
{
    struct sides s = sides_of(m);
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;
    struct tmpi_call call = {0};
    int result = MPI_SUCCESS;

    if (!to_library(&call, m, &s))
        return tmpi_done_by_mpi(&call, by_mpi(m));
    if (open_sides(&s, m)) {
        result = pack_sides(&s, m);
        st = run(m, call.a->comm, &s);
        if (st == TRIB_OK && result == MPI_SUCCESS)
            result = unpack_sides(&s, m);
    }
    tmpi_packed_close(&s.own);
    close_blocks(&s.blocks);
    return finish(&call, st, &s.own, result);
}

/* In-place calls stay with MPI on all ranks: the library needs blocks of equal length
 * for them. */
static int alltoallv(const struct counted *m)
{
    int rank, ranks = ranks_of(m->comm, &rank), result = MPI_SUCCESS;
    struct tmpi_packed none = {0};
    struct blocks from = {0}, to = {0};
    struct tmpi_call call = {0};
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;

    const bool valid = m->send != MPI_IN_PLACE &&
                       tmpi_list_is_valid(m->send, m->from_list, ranks, m->type) &&
                       tmpi_list_is_valid(m->recv, m->list, ranks, m->list_type);

    if (!valid)
        tmpi_report_passed(TMPI_ALLTOALLV,
                           m->send == MPI_IN_PLACE ? TMPI_TYPE : TMPI_REFUSED);
    if (!valid ||
        !tmpi_to_library(&call, m->comm, TMPI_ALLTOALLV, tmpi_module.settings.min))
        return tmpi_done_by_mpi(&call, by_mpi(m));
    if (open_blocks(&from, ranks, m->send, m->from_list, m->type) &&
        open_blocks(&to, ranks, m->recv, m->list, m->list_type)) {
        result = pack_blocks(&from, m->comm);
        st = trib_alltoallv(call.a->comm, from.bytes, from.lengths, from.offsets,
                            to.bytes, to.lengths, to.offsets, TRIB_I8);
        if (st == TRIB_OK && result == MPI_SUCCESS)
            result = unpack_blocks(&to, m->comm);
    }
    close_blocks(&from);
    close_blocks(&to);
    return finish(&call, st, &none, result);
}

/* Each function in two variants: int counts; MPI_Count counts with MPI_Aint
 * displacements. */
#define LIST_int(counts, displs) \
    &(struct tmpi_list) \
    { \
        counts, displs, NULL, NULL \
    }
#define LIST_MPI_Count(counts, displs) \
    &(struct tmpi_list) \
    { \
        NULL, NULL, counts, displs \
    }
#define BOTH(kind, name, parameters, arguments, call) \
    TMPI_INTERCEPT(kind, name, parameters(int, int), arguments, call(int, false)) \
    TMPI_WIDE(kind, name, parameters(MPI_Count, MPI_Aint), arguments, \
              call(MPI_Count, true))

#define TO_ALL(number, displ) \
    (const void *send, number send_count, MPI_Datatype send_type, void *recv, \
     const number *counts, const displ *displs, MPI_Datatype recv_type, MPI_Comm comm)
#define ALLGATHERV(number, wide) \
    move(&(struct counted){TMPI_ALLGATHERV, send, recv, LIST_##number(counts, displs), \
                           recv_type, send_count, send_type, -1, comm, wide, NULL})
BOTH(TMPI_ALLGATHERV, Allgatherv, TO_ALL,
     (send, send_count, send_type, recv, counts, displs, recv_type, comm), ALLGATHERV)

#define TO_ROOT(number, displ) \
    (const void *send, number send_count, MPI_Datatype send_type, void *recv, \
     const number *counts, const displ *displs, MPI_Datatype recv_type, int root, \
     MPI_Comm comm)
#define GATHERV(number, wide) \
    move(&(struct counted){TMPI_GATHERV, send, recv, LIST_##number(counts, displs), \
                           recv_type, send_count, send_type, root, comm, wide, NULL})
BOTH(TMPI_GATHERV, Gatherv, TO_ROOT,
     (send, send_count, send_type, recv, counts, displs, recv_type, root, comm),
     GATHERV)

#define FROM_ROOT(number, displ) \
    (const void *send, const number *counts, const displ *displs, \
     MPI_Datatype send_type, void *recv, number recv_count, MPI_Datatype recv_type, \
     int root, MPI_Comm comm)
#define SCATTERV(number, wide) \
    move(&(struct counted){TMPI_SCATTERV, send, recv, LIST_##number(counts, displs), \
                           send_type, recv_count, recv_type, root, comm, wide, NULL})
BOTH(TMPI_SCATTERV, Scatterv, FROM_ROOT,
     (send, counts, displs, send_type, recv, recv_count, recv_type, root, comm),
     SCATTERV)

#define FROM_ALL(number, displ) \
    (const void *send, const number *send_counts, const displ *send_displs, \
     MPI_Datatype send_type, void *recv, const number *recv_counts, \
     const displ *recv_displs, MPI_Datatype recv_type, MPI_Comm comm)
#define ALLTOALLV(number, wide) \
    alltoallv(&(struct counted){TMPI_ALLTOALLV, send, recv, \
                                LIST_##number(recv_counts, recv_displs), recv_type, 0, \
                                send_type, -1, comm, wide, \
                                LIST_##number(send_counts, send_displs)})
BOTH(TMPI_ALLTOALLV, Alltoallv, FROM_ALL,
     (send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs,
      recv_type, comm),
     ALLTOALLV)
