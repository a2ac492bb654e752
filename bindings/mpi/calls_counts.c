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
#include "bindings/mpi/turn.h"
#include "bindings/mpi/wrong_calls.h"

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
static int finish(struct tmpi_turn *t, trib_status_t st, const struct tmpi_packed *own,
                  int result)
{
    const MPI_Comm comm = t->a->handle;
    const int done = tmpi_done_by_library(t, st);

    return done == MPI_SUCCESS ? tmpi_packed_error(own, comm, result) : done;
}

/* Arguments of a call. One side has a list of counts; the other has a count and a type,
 * or for alltoallv also a list. */
struct counted {
    const void *send;
    void *recv;
    const struct tmpi_list *list;
    MPI_Datatype list_type;
    MPI_Count count;
    MPI_Datatype type;
    int root;
    MPI_Comm comm;
    bool wide; /* called through a function MPI_X_c */
};

/* Check the arguments. `many` has the blocks of all ranks; `one` has this rank's block,
 * unless it is in displ in `many`. */
static bool is_valid(const struct counted *m, enum tmpi_kind kind, int rank, int ranks)
{
    const void *many = kind == TMPI_SCATTERV ? m->send : m->recv;
    const void *one = kind == TMPI_SCATTERV ? m->recv : m->send;
    const bool has_root = kind != TMPI_ALLGATHERV;
    const bool has_many = !has_root || rank == m->root;
    const bool in_place = has_many && one == MPI_IN_PLACE;

    if (kind == TMPI_SCATTERV ? !in_place : has_many)
        tmpi_commit_type(kind == TMPI_SCATTERV ? m->type : m->list_type);
    const bool valid =
        (!has_root || (m->root >= 0 && m->root < ranks)) &&
        (!has_many || tmpi_list_is_valid(many, m->list, ranks, m->list_type)) &&
        (in_place || tmpi_buffer_is_valid(one, m->count, m->type));

    if (!valid)
        tmpi_report_passed(kind, TMPI_WRONG);
    return valid;
}

/* Open this rank's elements unless they are in displ. If `list` is given, list[rank] is
 * their size in bytes. */
static bool open_own(struct tmpi_packed *own, const void *user, const struct counted *m,
                     const size_t *list, int rank)
{
    return user == MPI_IN_PLACE ||
           (tmpi_packed_open(own, (void *)(uintptr_t)user, m->count, m->type) &&
            (!list || tmpi_packed_expect(own, list[rank])));
}

#define NARROW(l) (l)->counts, (l)->displs
#define WIDE(l) (l)->wide_counts, (l)->wide_displs

static int allgatherv(const struct counted *m)
{
    int rank, ranks = ranks_of(m->comm, &rank), result = MPI_SUCCESS;
    const bool valid = is_valid(m, TMPI_ALLGATHERV, rank, ranks);
    const size_t bytes = valid ? sum_of(m->list, ranks, m->list_type) : 0;
    const bool in_place = m->send == MPI_IN_PLACE;
    struct tmpi_packed own = {0};
    struct tmpi_turn t = {0};
    struct blocks b = {0};
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;

    if (valid && !bytes)
        tmpi_report_passed(TMPI_ALLGATHERV, TMPI_SMALL);
    if (!bytes || !tmpi_to_library(&t, m->comm, TMPI_ALLGATHERV, bytes))
        return tmpi_done_by_mpi(&t,
                                TMPI_BY_MPI(Allgatherv, m->wide,
                                            (m->send, (int)m->count, m->type, m->recv,
                                             NARROW(m->list), m->list_type, m->comm),
                                            (m->send, m->count, m->type, m->recv,
                                             WIDE(m->list), m->list_type, m->comm)));
    if (open_blocks(&b, ranks, m->recv, m->list, m->list_type) &&
        open_own(&own, m->send, m, b.lengths, rank)) {
        result = in_place ? pack_block(&b, rank, m->comm) : tmpi_pack(&own, m->comm);
        st = trib_allgatherv(t.a->comm, in_place ? NULL : own.bytes, b.bytes, b.lengths,
                             b.offsets, TRIB_I8);
        if (st == TRIB_OK && result == MPI_SUCCESS)
            result = unpack_blocks(&b, m->comm);
    }
    tmpi_packed_close(&own);
    close_blocks(&b);
    return finish(&t, st, &own, result);
}

static int gatherv(const struct counted *m)
{
    int rank, ranks = ranks_of(m->comm, &rank), result = MPI_SUCCESS;
    const bool is_root = rank == m->root, in_place = m->send == MPI_IN_PLACE;
    struct tmpi_packed own = {0};
    struct tmpi_turn t = {0};
    struct blocks b = {0};
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;

    if (!is_valid(m, TMPI_GATHERV, rank, ranks) ||
        !tmpi_to_library(&t, m->comm, TMPI_GATHERV, tmpi_module.settings.min))
        return tmpi_done_by_mpi(
            &t, TMPI_BY_MPI(Gatherv, m->wide,
                            (m->send, (int)m->count, m->type, m->recv, NARROW(m->list),
                             m->list_type, m->root, m->comm),
                            (m->send, m->count, m->type, m->recv, WIDE(m->list),
                             m->list_type, m->root, m->comm)));
    if ((!is_root || open_blocks(&b, ranks, m->recv, m->list, m->list_type)) &&
        open_own(&own, m->send, m, b.lengths, rank)) {
        result = in_place ? pack_block(&b, rank, m->comm) : tmpi_pack(&own, m->comm);
        st = trib_gatherv(t.a->comm, in_place ? NULL : own.bytes,
                          in_place  ? 0
                          : is_root ? b.lengths[rank]
                                    : tmpi_packed_bytes(&own),
                          b.bytes, b.lengths, b.offsets, TRIB_I8, m->root);
        if (st == TRIB_OK && result == MPI_SUCCESS && is_root)
            result = unpack_blocks(&b, m->comm);
    }
    tmpi_packed_close(&own);
    close_blocks(&b);
    return finish(&t, st, &own, result);
}

static int scatterv(const struct counted *m)
{
    int rank, ranks = ranks_of(m->comm, &rank), result = MPI_SUCCESS;
    const bool is_root = rank == m->root, in_place = m->recv == MPI_IN_PLACE;
    struct tmpi_packed own = {0};
    struct tmpi_turn t = {0};
    struct blocks b = {0};
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;

    if (!is_valid(m, TMPI_SCATTERV, rank, ranks) ||
        !tmpi_to_library(&t, m->comm, TMPI_SCATTERV, tmpi_module.settings.min))
        return tmpi_done_by_mpi(
            &t, TMPI_BY_MPI(Scatterv, m->wide,
                            (m->send, NARROW(m->list), m->list_type, m->recv,
                             (int)m->count, m->type, m->root, m->comm),
                            (m->send, WIDE(m->list), m->list_type, m->recv, m->count,
                             m->type, m->root, m->comm)));
    if ((!is_root || open_blocks(&b, ranks, m->send, m->list, m->list_type)) &&
        open_own(&own, m->recv, m, b.lengths, rank)) {
        if (is_root)
            result = pack_blocks(&b, m->comm);
        st = trib_scatterv(
            t.a->comm, b.bytes, b.lengths, b.offsets, in_place ? NULL : own.bytes,
            is_root ? b.lengths[rank] : tmpi_packed_bytes(&own), TRIB_I8, m->root);
        if (st == TRIB_OK && result == MPI_SUCCESS && !in_place)
            result = tmpi_unpack(&own, m->comm);
    }
    tmpi_packed_close(&own);
    close_blocks(&b);
    return finish(&t, st, &own, result);
}

/* m describes the receive side, from_list and from_type the send side. In-displ calls
 * stay with MPI on all ranks: the library needs blocks of equal length for them. */
static int alltoallv(const struct counted *m, const struct tmpi_list *from_list,
                     MPI_Datatype from_type)
{
    int rank, ranks = ranks_of(m->comm, &rank), result = MPI_SUCCESS;
    struct tmpi_packed none = {0};
    struct blocks from = {0}, to = {0};
    struct tmpi_turn t = {0};
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;

    const bool valid = m->send != MPI_IN_PLACE &&
                       tmpi_list_is_valid(m->send, from_list, ranks, from_type) &&
                       tmpi_list_is_valid(m->recv, m->list, ranks, m->list_type);

    if (!valid)
        tmpi_report_passed(TMPI_ALLTOALLV,
                           m->send == MPI_IN_PLACE ? TMPI_TYPE : TMPI_WRONG);
    if (!valid ||
        !tmpi_to_library(&t, m->comm, TMPI_ALLTOALLV, tmpi_module.settings.min))
        return tmpi_done_by_mpi(
            &t, TMPI_BY_MPI(Alltoallv, m->wide,
                            (m->send, NARROW(from_list), from_type, m->recv,
                             NARROW(m->list), m->list_type, m->comm),
                            (m->send, WIDE(from_list), from_type, m->recv,
                             WIDE(m->list), m->list_type, m->comm)));
    if (open_blocks(&from, ranks, m->send, from_list, from_type) &&
        open_blocks(&to, ranks, m->recv, m->list, m->list_type)) {
        result = pack_blocks(&from, m->comm);
        st = trib_alltoallv(t.a->comm, from.bytes, from.lengths, from.offsets, to.bytes,
                            to.lengths, to.offsets, TRIB_I8);
        if (st == TRIB_OK && result == MPI_SUCCESS)
            result = unpack_blocks(&to, m->comm);
    }
    close_blocks(&from);
    close_blocks(&to);
    return finish(&t, st, &none, result);
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
    allgatherv(&(struct counted){send, recv, LIST_##number(counts, displs), recv_type, \
                                 send_count, send_type, -1, comm, wide})
BOTH(TMPI_ALLGATHERV, Allgatherv, TO_ALL,
     (send, send_count, send_type, recv, counts, displs, recv_type, comm), ALLGATHERV)

#define TO_ROOT(number, displ) \
    (const void *send, number send_count, MPI_Datatype send_type, void *recv, \
     const number *counts, const displ *displs, MPI_Datatype recv_type, int root, \
     MPI_Comm comm)
#define GATHERV(number, wide) \
    gatherv(&(struct counted){send, recv, LIST_##number(counts, displs), recv_type, \
                              send_count, send_type, root, comm, wide})
BOTH(TMPI_GATHERV, Gatherv, TO_ROOT,
     (send, send_count, send_type, recv, counts, displs, recv_type, root, comm),
     GATHERV)

#define FROM_ROOT(number, displ) \
    (const void *send, const number *counts, const displ *displs, \
     MPI_Datatype send_type, void *recv, number recv_count, MPI_Datatype recv_type, \
     int root, MPI_Comm comm)
#define SCATTERV(number, wide) \
    scatterv(&(struct counted){send, recv, LIST_##number(counts, displs), send_type, \
                               recv_count, recv_type, root, comm, wide})
BOTH(TMPI_SCATTERV, Scatterv, FROM_ROOT,
     (send, counts, displs, send_type, recv, recv_count, recv_type, root, comm),
     SCATTERV)

#define FROM_ALL(number, displ) \
    (const void *send, const number *send_counts, const displ *send_displs, \
     MPI_Datatype send_type, void *recv, const number *recv_counts, \
     const displ *recv_displs, MPI_Datatype recv_type, MPI_Comm comm)
#define ALLTOALLV(number, wide) \
    alltoallv(&(struct counted){send, recv, LIST_##number(recv_counts, recv_displs), \
                                recv_type, 0, send_type, -1, comm, wide}, \
              LIST_##number(send_counts, send_displs), send_type)
BOTH(TMPI_ALLTOALLV, Alltoallv, FROM_ALL,
     (send, send_counts, send_displs, send_type, recv, recv_counts, recv_displs,
      recv_type, comm),
     ALLTOALLV)
