/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Bcast, Allgather, Gather, Scatter, Alltoall and Barrier. The library moves bytes.
 * Decisions depend only on their number, since the datatypes of two ranks may
 * differ. */
#include <limits.h>

#include "bindings/mpi/call_report.h"
#include "bindings/mpi/entry.h"
#include "bindings/mpi/failure_class.h"
#include "bindings/mpi/next.h"
#include "bindings/mpi/packing.h"
#include "bindings/mpi/dispatch.h"
#include "bindings/mpi/argument_check.h"

/* A call that moves blocks of equal size from each rank or to each rank. */
struct move {
    enum tmpi_kind kind;
    const void *send; /* MPI_IN_PLACE: the blocks are in recv */
    MPI_Count send_count; /* elements per block */
    MPI_Datatype send_type;
    void *recv; /* MPI_IN_PLACE (scatter): the root's block is in send */
    MPI_Count recv_count;
    MPI_Datatype recv_type;
    int root; /* -1: all */
    MPI_Comm comm;
};

/* Both sides of a move as bytes, and how many blocks this rank has on each side. */
struct ends {
    struct tmpi_packed send, recv;
    int send_blocks, recv_blocks;
    int result; /* error code of MPI */
};

static bool has_root(const struct move *m)
{
    return m->kind != TMPI_ALLGATHER && m->kind != TMPI_ALLTOALL;
}

/* Return the number of blocks that this rank sends: one per rank, 1, or none. A
 * broadcast has its block on the receiving side. */
static int sent_blocks(const struct move *m, int rank, int ranks)
{
    switch (m->kind) {
    case TMPI_BCAST:
        return 0;
    case TMPI_GATHER:
        return rank != m->root || m->send != MPI_IN_PLACE;
    case TMPI_SCATTER:
        return rank == m->root ? ranks : 0;
    case TMPI_ALLTOALL:
        return m->send != MPI_IN_PLACE ? ranks : 0;
    default:
        return m->send != MPI_IN_PLACE;
    }
}

static int received_blocks(const struct move *m, int rank, int ranks)
{
    switch (m->kind) {
    case TMPI_BCAST:
        return 1;
    case TMPI_GATHER:
        return rank == m->root ? ranks : 0;
    case TMPI_SCATTER:
        return rank != m->root || m->recv != MPI_IN_PLACE;
    default:
        return ranks;
    }
}

/* Commit the types that the other ranks may have committed: see tmpi_commit_type. */
static void commit_types(const struct move *m, bool is_root)
{
    if (m->kind == TMPI_ALLGATHER || (m->kind == TMPI_GATHER && is_root) ||
        (m->kind == TMPI_SCATTER && m->recv != MPI_IN_PLACE))
        tmpi_commit_type(m->recv_type);
    if (m->kind == TMPI_SCATTER && is_root)
        tmpi_commit_type(m->send_type);
}

/* Return the bytes of a block, on the side that this rank must have. */
static size_t block_bytes(const struct move *m, bool is_root)
{
    const bool of_send = m->kind == TMPI_GATHER    ? !is_root
                         : m->kind == TMPI_SCATTER ? is_root
                                                   : false;

    return of_send ? tmpi_bytes_of(m->send_count, m->send_type)
                   : tmpi_bytes_of(m->recv_count, m->recv_type);
}

static bool is_valid(const struct move *m, int rank)
{
    return (!has_root(m) || tmpi_root_is_valid(m->root, m->comm)) &&
           (!sent_blocks(m, rank, 1) ||
            tmpi_buffer_is_valid(m->send, m->send_count, m->send_type)) &&
           (!received_blocks(m, rank, 1) ||
            tmpi_buffer_is_valid(m->recv, m->recv_count, m->recv_type));
}

static bool to_library(struct tmpi_call *call, const struct move *m, int rank,
                       size_t bytes)
{
    if (m->comm == MPI_COMM_NULL)
        return false;
    if (bytes && is_valid(m, rank))
        return tmpi_to_library(call, m->comm, m->kind, bytes);
    tmpi_report_passed(m->kind, bytes ? TMPI_REFUSED : TMPI_SMALL);
    return false;
}

static bool open_end(struct tmpi_packed *p, const void *user, MPI_Count count,
                     MPI_Datatype type, int blocks, size_t bytes)
{
    return blocks == 0 ||
           (tmpi_packed_open(p, (void *)(uintptr_t)user, count * blocks, type) &&
            tmpi_packed_expect(p, bytes * (size_t)blocks));
}

/* In-place gather: pack the local block, which is in recv, at its place in the packed
 * buffer; the other blocks are overwritten. */
static void pack_own(struct ends *e, const struct move *m, int rank)
{
    struct tmpi_packed own = e->recv;

    if (e->recv.bytes == e->recv.user)
        return;
    own.count = m->recv_count;
    own.user = (char *)m->recv + (MPI_Count)rank * m->recv_count * own.layout.extent;
    own.bytes = (char *)e->recv.bytes + (size_t)rank * tmpi_packed_bytes(&own);
    e->result = tmpi_pack(&own, m->comm);
}

/* Open both sides, and pack what this rank sends. False: no memory. */
static bool open_ends(struct ends *e, const struct move *m, size_t bytes, int rank)
{
    if (!open_end(&e->send, m->send, m->send_count, m->send_type, e->send_blocks,
                  bytes) ||
        !open_end(&e->recv, m->recv, m->recv_count, m->recv_type, e->recv_blocks,
                  bytes))
        return false;
    if (e->send_blocks)
        e->result = tmpi_pack(&e->send, m->comm);
    else if (m->kind == TMPI_ALLTOALL || (m->kind == TMPI_BCAST && rank == m->root))
        e->result = tmpi_pack(&e->recv, m->comm);
    else if (m->kind == TMPI_ALLGATHER || m->kind == TMPI_GATHER)
        pack_own(e, m, rank);
    return true;
}

/* Unpack the result if the library has succeeded; return the program's error code. */
static int close_ends(struct ends *e, struct tmpi_call *call, const struct move *m,
                      int rank, trib_status_t st)
{
    const bool has_result =
        e->recv_blocks && (m->kind != TMPI_BCAST || rank != m->root);

    if (st == TRIB_OK && e->result == MPI_SUCCESS && has_result)
        e->result = tmpi_unpack(&e->recv, m->comm);
    tmpi_packed_close(&e->send);
    tmpi_packed_close(&e->recv);
    const int result = tmpi_done_by_library(call, st);
    if (result != MPI_SUCCESS)
        return result;
    e->result = tmpi_packed_error(&e->send, m->comm, e->result);
    return tmpi_packed_error(&e->recv, m->comm, e->result);
}

static trib_status_t run(const struct move *m, trib_comm_t *comm, struct ends *e,
                         size_t bytes)
{
    const void *send = e->send.bytes;
    void *recv = e->recv.bytes;

    switch (m->kind) {
    case TMPI_BCAST:
        return trib_broadcast(comm, recv, bytes, TRIB_I8, m->root);
    case TMPI_ALLGATHER:
        return trib_allgather(comm, send, recv, bytes, TRIB_I8);
    case TMPI_ALLTOALL:
        return trib_alltoall(comm, send, recv, bytes, TRIB_I8);
    case TMPI_GATHER:
        return trib_gather(comm, send, recv, bytes, TRIB_I8, m->root);
    default:
        return trib_scatter(comm, send, recv, bytes, TRIB_I8, m->root);
    }
}

/* Through the function with MPI_Count arguments if a count needs it. */
#define BY_MPI(name, ...) \
    TMPI_BY_MPI(name, m->send_count > INT_MAX || m->recv_count > INT_MAX, \
                (m->send, (int)m->send_count, m->send_type, m->recv, \
                 (int)m->recv_count, m->recv_type, __VA_ARGS__), \
                (m->send, m->send_count, m->send_type, m->recv, m->recv_count, \
                 m->recv_type, __VA_ARGS__))

static int by_mpi(const struct move *m)
{
    switch (m->kind) {
    case TMPI_BCAST:
        return TMPI_BY_MPI(
            Bcast, m->recv_count > INT_MAX,
            (m->recv, (int)m->recv_count, m->recv_type, m->root, m->comm),
            (m->recv, m->recv_count, m->recv_type, m->root, m->comm));
    case TMPI_ALLGATHER:
        return BY_MPI(Allgather, m->comm);
    case TMPI_ALLTOALL:
        return BY_MPI(Alltoall, m->comm);
    case TMPI_GATHER:
        return BY_MPI(Gather, m->root, m->comm);
    default:
        return BY_MPI(Scatter, m->root, m->comm);
    }
}

static int move(const struct move *m)
{
    int rank = -1;
    struct tmpi_call call = {0};

    if (has_root(m) && m->kind != TMPI_BCAST && m->comm != MPI_COMM_NULL)
        tmpi_next.Comm_rank(m->comm, &rank);
    const bool is_root = rank == m->root;
    commit_types(m, is_root);
    const size_t bytes = block_bytes(m, is_root);
    if (!to_library(&call, m, rank, bytes))
        return tmpi_done_by_mpi(&call, by_mpi(m));
    rank = call.a->rank;
    struct ends e = {.send_blocks = sent_blocks(m, rank, call.a->ranks),
                     .recv_blocks = received_blocks(m, rank, call.a->ranks)};
    const trib_status_t st = open_ends(&e, m, bytes, rank)
                                 ? run(m, call.a->comm, &e, bytes)
                                 : (trib_status_t)TMPI_NO_MEMORY;
    return close_ends(&e, &call, m, rank, st);
}

/* A barrier counts as TRIB_MPI_MIN bytes, so that this setting does not exclude it. */
static int barrier(MPI_Comm comm)
{
    struct tmpi_call call;

    if (!tmpi_to_library(&call, comm, TMPI_BARRIER, tmpi_module.settings.min))
        return tmpi_done_by_mpi(&call, tmpi_next.Barrier(comm));
    return tmpi_done_by_library(&call, trib_barrier(call.a->comm));
}

#define MOVED(number) \
    (const void *send, number send_count, MPI_Datatype send_type, void *recv, \
     number recv_count, MPI_Datatype recv_type, MPI_Comm comm)
#define ROOTED(number) \
    (const void *send, number send_count, MPI_Datatype send_type, void *recv, \
     number recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
#define MOVE(kind, root) \
    move(&(struct move){kind, send, send_count, send_type, recv, recv_count, \
                        recv_type, root, comm})
#define TO_ALL (send, send_count, send_type, recv, recv_count, recv_type, comm)
#define TO_ONE (send, send_count, send_type, recv, recv_count, recv_type, root, comm)
#define BOTH(kind, name, parameters, arguments, call) \
    TMPI_INTERCEPT(kind, name, parameters(int), arguments, call) \
    TMPI_WIDE(kind, name, parameters(MPI_Count), arguments, call)
#define BROADCAST(number) \
    (void *buffer, number count, MPI_Datatype type, int root, MPI_Comm comm)
#define FROM_ROOT (buffer, count, type, root, comm)
#define BROADCAST_MOVE \
    move(&(struct move){.kind = TMPI_BCAST, \
                        .recv = buffer, \
                        .recv_count = count, \
                        .recv_type = type, \
                        .root = root, \
                        .comm = comm})

TMPI_INTERCEPT(TMPI_BARRIER, Barrier, (MPI_Comm comm), (comm), barrier(comm))
BOTH(TMPI_BCAST, Bcast, BROADCAST, FROM_ROOT, BROADCAST_MOVE)
BOTH(TMPI_ALLGATHER, Allgather, MOVED, TO_ALL, MOVE(TMPI_ALLGATHER, -1))
BOTH(TMPI_ALLTOALL, Alltoall, MOVED, TO_ALL, MOVE(TMPI_ALLTOALL, -1))
BOTH(TMPI_GATHER, Gather, ROOTED, TO_ONE, MOVE(TMPI_GATHER, root))
BOTH(TMPI_SCATTER, Scatter, ROOTED, TO_ONE, MOVE(TMPI_SCATTER, root))
