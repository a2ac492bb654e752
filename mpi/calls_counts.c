/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allgatherv, Gatherv, Scatterv and Alltoallv: a count and a place for each rank.
 *
 * The library moves bytes. Blocks of a dense datatype go from and to where they lie;
 * those of another one are packed one behind the other.
 */
#include <stdlib.h>

#include "mpi/call_report.h"
#include "mpi/entry.h"
#include "mpi/next.h"
#include "mpi/packing.h"
#include "mpi/turn.h"

/* The blocks of all ranks in one buffer of the program. */
struct blocks {
    int ranks;
    const int *counts, *places; /* as MPI has them, in elements */
    MPI_Datatype type;
    struct tmpi_layout layout;
    char *user;
    char *bytes; /* the same memory if the type is dense */
    size_t *lengths; /* [ranks] bytes */
    size_t *offsets; /* [ranks] bytes from `bytes` */
};

static void close_blocks(struct blocks *b)
{
    if (b->bytes != b->user)
        free(b->bytes);
    free(b->lengths);
    free(b->offsets);
    *b = (struct blocks){0};
}

/* False without memory, or if the datatype is not valid. Offsets of dense blocks count
 * from the first of them, as places may be negative. */
static bool open_blocks(struct blocks *b, int ranks, void *user, const int *counts,
                        const int *places, MPI_Datatype type)
{
    size_t total = 0;
    MPI_Count first = 0;

    *b = (struct blocks){ranks, counts, places, type, .user = user, .bytes = user};
    b->lengths = malloc((size_t)ranks * sizeof(*b->lengths));
    b->offsets = malloc((size_t)ranks * sizeof(*b->offsets));
    if (!b->lengths || !b->offsets || !tmpi_layout_of(type, &b->layout))
        return false;
    for (int i = 0; i < ranks; i++)
        first = places[i] < first ? places[i] : first;
    for (int i = 0; i < ranks; i++) {
        b->lengths[i] = (size_t)counts[i] * (size_t)b->layout.size;
        b->offsets[i] =
            b->layout.dense ? (size_t)((places[i] - first) * b->layout.size) : total;
        total += b->lengths[i];
    }
    if (b->layout.dense) {
        b->user += first * b->layout.size;
        b->bytes = b->user;
        return true;
    }
    b->bytes = malloc(total + 1);
    return b->bytes;
}

/* The block of a rank, to be packed or unpacked. */
static struct tmpi_packed one_block(const struct blocks *b, int i)
{
    return (struct tmpi_packed){.type = b->type,
                                .layout = b->layout,
                                .count = b->counts[i],
                                .user = b->user + b->places[i] * b->layout.extent,
                                .bytes = b->bytes + b->offsets[i]};
}

static int fill_block(const struct blocks *b, int i, MPI_Comm comm)
{
    struct tmpi_packed p = one_block(b, i);
    return b->layout.dense ? MPI_SUCCESS : tmpi_packed_fill(&p, comm);
}

static int fill_blocks(const struct blocks *b, MPI_Comm comm)
{
    int result = MPI_SUCCESS;

    for (int i = 0; i < b->ranks && result == MPI_SUCCESS; i++)
        result = fill_block(b, i, comm);
    return result;
}

static int empty_blocks(const struct blocks *b, MPI_Comm comm)
{
    int result = MPI_SUCCESS;

    for (int i = 0; i < b->ranks && !b->layout.dense && result == MPI_SUCCESS; i++) {
        struct tmpi_packed p = one_block(b, i);
        result = tmpi_packed_empty(&p, comm);
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

static size_t sum_of(const int *counts, int ranks, MPI_Datatype type)
{
    MPI_Count total = 0;

    for (int i = 0; counts && i < ranks; i++)
        total += counts[i] > 0 ? counts[i] : 0;
    return tmpi_bytes_of(total, type);
}

/* Returns the code for the program: an error of MPI's own, if there is one. */
static int finish(struct tmpi_turn *t, trib_status_t st, int result)
{
    const int done = tmpi_done_by_library(t, st);
    return done == MPI_SUCCESS ? result : done;
}

static int allgatherv(const void *send, int send_count, MPI_Datatype send_type,
                      void *recv, const int *counts, const int *places,
                      MPI_Datatype recv_type, MPI_Comm comm)
{
    int rank, ranks = ranks_of(comm, &rank), result = MPI_SUCCESS;
    const size_t bytes = sum_of(counts, ranks, recv_type);
    const bool in_place = send == MPI_IN_PLACE;
    struct tmpi_packed own = {0};
    struct tmpi_turn t = {0};
    struct blocks b = {0};
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    if (!bytes || !tmpi_to_library(&t, comm, TMPI_ALLGATHERV, bytes))
        return tmpi_done_by_mpi(&t,
                                tmpi_next.Allgatherv(send, send_count, send_type, recv,
                                                     counts, places, recv_type, comm));
    if (open_blocks(&b, ranks, recv, counts, places, recv_type) &&
        (in_place ||
         tmpi_packed_open(&own, (void *)(uintptr_t)send, send_count, send_type))) {
        result = in_place ? fill_block(&b, rank, comm) : tmpi_packed_fill(&own, comm);
        st = trib_allgatherv(t.a->comm, in_place ? NULL : own.bytes, b.bytes, b.lengths,
                             b.offsets, TRIB_I8);
        if (st == TRIB_OK && result == MPI_SUCCESS)
            result = empty_blocks(&b, comm);
    }
    tmpi_packed_close(&own);
    close_blocks(&b);
    return finish(&t, st, result);
}

static int gatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                   const int *counts, const int *places, MPI_Datatype recv_type,
                   int root, MPI_Comm comm)
{
    int rank, ranks = ranks_of(comm, &rank), result = MPI_SUCCESS;
    const bool is_root = rank == root, in_place = send == MPI_IN_PLACE;
    struct tmpi_packed own = {0};
    struct tmpi_turn t = {0};
    struct blocks b = {0};
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    if (!tmpi_to_library(&t, comm, TMPI_GATHERV, tmpi_module.settings.min))
        return tmpi_done_by_mpi(&t, tmpi_next.Gatherv(send, send_count, send_type, recv,
                                                      counts, places, recv_type, root,
                                                      comm));
    if ((!is_root || open_blocks(&b, ranks, recv, counts, places, recv_type)) &&
        (in_place ||
         tmpi_packed_open(&own, (void *)(uintptr_t)send, send_count, send_type))) {
        result = in_place ? fill_block(&b, rank, comm) : tmpi_packed_fill(&own, comm);
        st = trib_gatherv(t.a->comm, in_place ? NULL : own.bytes,
                          in_place ? 0 : tmpi_packed_bytes(&own), b.bytes, b.lengths,
                          b.offsets, TRIB_I8, root);
        if (st == TRIB_OK && result == MPI_SUCCESS && is_root)
            result = empty_blocks(&b, comm);
    }
    tmpi_packed_close(&own);
    close_blocks(&b);
    return finish(&t, st, result);
}

static int scatterv(const void *send, const int *counts, const int *places,
                    MPI_Datatype send_type, void *recv, int recv_count,
                    MPI_Datatype recv_type, int root, MPI_Comm comm)
{
    int rank, ranks = ranks_of(comm, &rank), result = MPI_SUCCESS;
    const bool is_root = rank == root, in_place = recv == MPI_IN_PLACE;
    struct tmpi_packed own = {0};
    struct tmpi_turn t = {0};
    struct blocks b = {0};
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    if (!tmpi_to_library(&t, comm, TMPI_SCATTERV, tmpi_module.settings.min))
        return tmpi_done_by_mpi(&t, tmpi_next.Scatterv(send, counts, places, send_type,
                                                       recv, recv_count, recv_type,
                                                       root, comm));
    if ((!is_root ||
         open_blocks(&b, ranks, (void *)(uintptr_t)send, counts, places, send_type)) &&
        (in_place || tmpi_packed_open(&own, recv, recv_count, recv_type))) {
        if (is_root)
            result = fill_blocks(&b, comm);
        st = trib_scatterv(
            t.a->comm, b.bytes, b.lengths, b.offsets, in_place ? NULL : own.bytes,
            in_place ? b.lengths[rank] : tmpi_packed_bytes(&own), TRIB_I8, root);
        if (st == TRIB_OK && result == MPI_SUCCESS && !in_place)
            result = tmpi_packed_empty(&own, comm);
    }
    tmpi_packed_close(&own);
    close_blocks(&b);
    return finish(&t, st, result);
}

struct alltoallv {
    const void *send;
    const int *send_counts, *send_places;
    MPI_Datatype send_type;
    void *recv;
    const int *recv_counts, *recv_places;
    MPI_Datatype recv_type;
    MPI_Comm comm;
};

/* In place it stays with MPI on all ranks: the library wants blocks of one length. */
static int alltoallv(const struct alltoallv *m)
{
    int rank, ranks = ranks_of(m->comm, &rank), result = MPI_SUCCESS;
    struct blocks from = {0}, to = {0};
    struct tmpi_turn t = {0};
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    if (m->send == MPI_IN_PLACE)
        tmpi_report_passed(TMPI_ALLTOALLV, TMPI_TYPE);
    if (m->send == MPI_IN_PLACE ||
        !tmpi_to_library(&t, m->comm, TMPI_ALLTOALLV, tmpi_module.settings.min))
        return tmpi_done_by_mpi(
            &t, tmpi_next.Alltoallv(m->send, m->send_counts, m->send_places,
                                    m->send_type, m->recv, m->recv_counts,
                                    m->recv_places, m->recv_type, m->comm));
    if (open_blocks(&from, ranks, (void *)(uintptr_t)m->send, m->send_counts,
                    m->send_places, m->send_type) &&
        open_blocks(&to, ranks, m->recv, m->recv_counts, m->recv_places,
                    m->recv_type)) {
        result = fill_blocks(&from, m->comm);
        st = trib_alltoallv(t.a->comm, from.bytes, from.lengths, from.offsets, to.bytes,
                            to.lengths, to.offsets, TRIB_I8);
        if (st == TRIB_OK && result == MPI_SUCCESS)
            result = empty_blocks(&to, m->comm);
    }
    close_blocks(&from);
    close_blocks(&to);
    return finish(&t, st, result);
}

TMPI_TAKEN(TMPI_ALLGATHERV, Allgatherv,
           (const void *send, int send_count, MPI_Datatype send_type, void *recv,
            const int *counts, const int *places, MPI_Datatype recv_type,
            MPI_Comm comm),
           (send, send_count, send_type, recv, counts, places, recv_type, comm),
           allgatherv(send, send_count, send_type, recv, counts, places, recv_type,
                      comm))
TMPI_TAKEN(TMPI_GATHERV, Gatherv,
           (const void *send, int send_count, MPI_Datatype send_type, void *recv,
            const int *counts, const int *places, MPI_Datatype recv_type, int root,
            MPI_Comm comm),
           (send, send_count, send_type, recv, counts, places, recv_type, root, comm),
           gatherv(send, send_count, send_type, recv, counts, places, recv_type, root,
                   comm))
TMPI_TAKEN(TMPI_SCATTERV, Scatterv,
           (const void *send, const int *counts, const int *places,
            MPI_Datatype send_type, void *recv, int recv_count, MPI_Datatype recv_type,
            int root, MPI_Comm comm),
           (send, counts, places, send_type, recv, recv_count, recv_type, root, comm),
           scatterv(send, counts, places, send_type, recv, recv_count, recv_type, root,
                    comm))
TMPI_TAKEN(TMPI_ALLTOALLV, Alltoallv,
           (const void *send, const int *send_counts, const int *send_places,
            MPI_Datatype send_type, void *recv, const int *recv_counts,
            const int *recv_places, MPI_Datatype recv_type, MPI_Comm comm),
           (send, send_counts, send_places, send_type, recv, recv_counts, recv_places,
            recv_type, comm),
           alltoallv(&(struct alltoallv){send, send_counts, send_places, send_type,
                                         recv, recv_counts, recv_places, recv_type,
                                         comm}))
