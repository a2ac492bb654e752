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
#include "bindings/mpi/turn.h"
#include "bindings/mpi/wrong_calls.h"

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

#define BY_MPI(name, m) \
    TMPI_BY_MPI(name, is_wide(m), \
                ((m)->send, (int)(m)->send_count, (m)->send_type, (m)->recv, \
                 (int)(m)->recv_count, (m)->recv_type, (m)->comm), \
                ((m)->send, (m)->send_count, (m)->send_type, (m)->recv, \
                 (m)->recv_count, (m)->recv_type, (m)->comm))
#define ROOTED_BY_MPI(name, m) \
    TMPI_BY_MPI(name, is_wide(m), \
                ((m)->send, (int)(m)->send_count, (m)->send_type, (m)->recv, \
                 (int)(m)->recv_count, (m)->recv_type, (m)->root, (m)->comm), \
                ((m)->send, (m)->send_count, (m)->send_type, (m)->recv, \
                 (m)->recv_count, (m)->recv_type, (m)->root, (m)->comm))

#if MPI_VERSION >= 4
/* Return true if the counts need MPI's function with MPI_Count arguments. */
static bool is_wide(const struct move *m)
{
    return m->send_count > INT_MAX || m->recv_count > INT_MAX;
}
#endif

static bool sends(const struct move *m, int rank)
{
    switch (m->kind) {
    case TMPI_BCAST:
        return false;
    case TMPI_GATHER:
        return rank != m->root || m->send != MPI_IN_PLACE;
    case TMPI_SCATTER:
        return rank == m->root;
    default:
        return m->send != MPI_IN_PLACE;
    }
}

static bool receives(const struct move *m, int rank)
{
    switch (m->kind) {
    case TMPI_GATHER:
        return rank == m->root;
    case TMPI_SCATTER:
        return rank != m->root || m->recv != MPI_IN_PLACE;
    default:
        return true;
    }
}

static bool is_valid(const struct move *m, int rank)
{
    const bool has_root = m->kind != TMPI_ALLGATHER && m->kind != TMPI_ALLTOALL;

    return (!has_root || tmpi_root_is_valid(m->root, m->comm)) &&
           (!sends(m, rank) ||
            tmpi_buffer_is_valid(m->send, m->send_count, m->send_type)) &&
           (!receives(m, rank) ||
            tmpi_buffer_is_valid(m->recv, m->recv_count, m->recv_type));
}

/* rank: of this process, if the call has a root; otherwise -1 */
static bool to_library(struct tmpi_turn *t, const struct move *m, int rank,
                       size_t bytes)
{
    *t = (struct tmpi_turn){0};
    if (m->comm == MPI_COMM_NULL)
        return false;
    if (bytes && is_valid(m, rank))
        return tmpi_to_library(t, m->comm, m->kind, bytes);
    tmpi_report_passed(m->kind, bytes ? TMPI_WRONG : TMPI_SMALL);
    return false;
}

/* Both sides of a move as bytes. */
struct ends {
    struct tmpi_packed send, recv;
    bool sends, receives;
    int result; /* error code of MPI */
};

static bool open_ends(struct ends *e, const struct move *m, size_t bytes,
                      int send_blocks, int recv_blocks)
{
    *e = (struct ends){.sends = send_blocks, .receives = recv_blocks};
    if (e->sends && (!tmpi_packed_open(&e->send, (void *)(uintptr_t)m->send,
                                       m->send_count * send_blocks, m->send_type) ||
                     !tmpi_packed_expect(&e->send, bytes * (size_t)send_blocks)))
        return false;
    if (e->receives && (!tmpi_packed_open(&e->recv, m->recv,
                                          m->recv_count * recv_blocks, m->recv_type) ||
                        !tmpi_packed_expect(&e->recv, bytes * (size_t)recv_blocks)))
        return false;
    if (e->sends)
        e->result = tmpi_pack(&e->send, m->comm);
    return true;
}

/* Unpack the result if the library has succeeded; return the program's error code. */
static int close_ends(struct ends *e, struct tmpi_turn *t, const struct move *m,
                      trib_status_t st)
{
    if (st == TRIB_OK && e->result == MPI_SUCCESS && e->receives)
        e->result = tmpi_unpack(&e->recv, m->comm);
    tmpi_packed_close(&e->send);
    tmpi_packed_close(&e->recv);
    const int result = tmpi_done_by_library(t, st);
    if (result != MPI_SUCCESS)
        return result;
    e->result = tmpi_packed_error(&e->send, m->comm, e->result);
    return tmpi_packed_error(&e->recv, m->comm, e->result);
}

static int broadcast(void *buffer, MPI_Count count, MPI_Datatype type, int root,
                     MPI_Comm comm)
{
    const struct move m = {.kind = TMPI_BCAST,
                           .recv = buffer,
                           .recv_count = count,
                           .recv_type = type,
                           .root = root,
                           .comm = comm};
    const size_t bytes = tmpi_bytes_of(count, type);
    struct tmpi_packed p;
    struct tmpi_turn t;
    int result = MPI_SUCCESS;

    if (!to_library(&t, &m, -1, bytes))
        return tmpi_done_by_mpi(&t, TMPI_BY_MPI(Bcast, count > INT_MAX,
                                                (buffer, (int)count, type, root, comm),
                                                (buffer, count, type, root, comm)));
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;
    if (tmpi_packed_open(&p, buffer, count, type)) {
        if (t.a->rank == root)
            result = tmpi_pack(&p, comm);
        st = trib_broadcast(t.a->comm, p.bytes, bytes, TRIB_I8, root);
        if (st == TRIB_OK && t.a->rank != root && result == MPI_SUCCESS)
            result = tmpi_unpack(&p, comm);
    }
    tmpi_packed_close(&p);
    const int done = tmpi_done_by_library(&t, st);
    return done == MPI_SUCCESS ? result : done;
}

/* In-place gather: pack the local block, which is in recv, at its place in the packed
 * buffer; the other blocks are overwritten. */
static void fill_own(struct ends *e, const struct move *m, int rank)
{
    struct tmpi_packed own = e->recv;

    if (e->recv.bytes == e->recv.user)
        return;
    own.count = m->recv_count;
    own.user = (char *)m->recv + (MPI_Count)rank * m->recv_count * own.layout.extent;
    own.bytes = (char *)e->recv.bytes + (size_t)rank * tmpi_packed_bytes(&own);
    e->result = tmpi_pack(&own, m->comm);
}

static bool open_gather(struct ends *e, const struct move *m, size_t bytes, int rank,
                        int blocks)
{
    const bool in_place = m->send == MPI_IN_PLACE;

    if (!open_ends(e, m, bytes, !in_place, blocks))
        return false;
    if (in_place)
        fill_own(e, m, rank);
    return true;
}

static int allgather(const struct move *m)
{
    tmpi_commit_type(m->recv_type);
    const bool in_place = m->send == MPI_IN_PLACE;
    const size_t bytes = tmpi_bytes_of(m->recv_count, m->recv_type);
    struct tmpi_turn t;
    struct ends e;

    if (!to_library(&t, m, -1, bytes))
        return tmpi_done_by_mpi(&t, BY_MPI(Allgather, m));
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;
    if (open_gather(&e, m, bytes, t.a->rank, t.a->ranks))
        st = trib_allgather(t.a->comm, in_place ? NULL : e.send.bytes, e.recv.bytes,
                            bytes, TRIB_I8);
    return close_ends(&e, &t, m, st);
}

static int gather(const struct move *m)
{
    int rank = -1;
    struct tmpi_turn t;
    struct ends e;

    if (m->comm != MPI_COMM_NULL)
        tmpi_next.Comm_rank(m->comm, &rank);
    const bool is_root = rank == m->root, in_place = m->send == MPI_IN_PLACE;
    if (is_root)
        tmpi_commit_type(m->recv_type);
    const size_t bytes = is_root ? tmpi_bytes_of(m->recv_count, m->recv_type)
                                 : tmpi_bytes_of(m->send_count, m->send_type);
    if (!to_library(&t, m, rank, bytes))
        return tmpi_done_by_mpi(&t, ROOTED_BY_MPI(Gather, m));
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;
    if (open_gather(&e, m, bytes, rank, is_root ? t.a->ranks : 0))
        st = trib_gather(t.a->comm, in_place ? NULL : e.send.bytes,
                         is_root ? e.recv.bytes : NULL, bytes, TRIB_I8, m->root);
    return close_ends(&e, &t, m, st);
}

static int scatter(const struct move *m)
{
    int rank = -1;
    struct tmpi_turn t;
    struct ends e;

    if (m->comm != MPI_COMM_NULL)
        tmpi_next.Comm_rank(m->comm, &rank);
    const bool is_root = rank == m->root, in_place = m->recv == MPI_IN_PLACE;
    if (is_root)
        tmpi_commit_type(m->send_type);
    if (!in_place)
        tmpi_commit_type(m->recv_type);
    const size_t bytes = is_root ? tmpi_bytes_of(m->send_count, m->send_type)
                                 : tmpi_bytes_of(m->recv_count, m->recv_type);
    if (!to_library(&t, m, rank, bytes))
        return tmpi_done_by_mpi(&t, ROOTED_BY_MPI(Scatter, m));
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;
    if (open_ends(&e, m, bytes, is_root ? t.a->ranks : 0, !in_place))
        st = trib_scatter(t.a->comm, is_root ? e.send.bytes : NULL,
                          in_place ? NULL : e.recv.bytes, bytes, TRIB_I8, m->root);
    return close_ends(&e, &t, m, st);
}

static int alltoall(const struct move *m)
{
    const bool in_place = m->send == MPI_IN_PLACE;
    const size_t bytes = tmpi_bytes_of(m->recv_count, m->recv_type);
    struct tmpi_turn t;
    struct ends e;

    if (!to_library(&t, m, -1, bytes))
        return tmpi_done_by_mpi(&t, BY_MPI(Alltoall, m));
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;
    if (open_ends(&e, m, bytes, in_place ? 0 : t.a->ranks, t.a->ranks)) {
        if (in_place)
            e.result = tmpi_pack(&e.recv, m->comm);
        st = trib_alltoall(t.a->comm, in_place ? NULL : e.send.bytes, e.recv.bytes,
                           bytes, TRIB_I8);
    }
    return close_ends(&e, &t, m, st);
}

/* A barrier counts as TRIB_MPI_MIN bytes, so that this setting does not exclude it. */
static int barrier(MPI_Comm comm)
{
    struct tmpi_turn t;

    if (!tmpi_to_library(&t, comm, TMPI_BARRIER, tmpi_module.settings.min))
        return tmpi_done_by_mpi(&t, tmpi_next.Barrier(comm));
    return tmpi_done_by_library(&t, trib_barrier(t.a->comm));
}

#define MOVED(number) \
    (const void *send, number send_count, MPI_Datatype send_type, void *recv, \
     number recv_count, MPI_Datatype recv_type, MPI_Comm comm)
#define ROOTED(number) \
    (const void *send, number send_count, MPI_Datatype send_type, void *recv, \
     number recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
#define MOVE(function, kind, root) \
    function(&(struct move){kind, send, send_count, send_type, recv, recv_count, \
                            recv_type, root, comm})
#define TO_ALL (send, send_count, send_type, recv, recv_count, recv_type, comm)
#define TO_ONE (send, send_count, send_type, recv, recv_count, recv_type, root, comm)
#define BOTH(kind, name, parameters, arguments, call) \
    TMPI_INTERCEPT(kind, name, parameters(int), arguments, call) \
    TMPI_WIDE(kind, name, parameters(MPI_Count), arguments, call)
#define BROADCAST(number) \
    (void *buffer, number count, MPI_Datatype type, int root, MPI_Comm comm)
#define FROM_ROOT (buffer, count, type, root, comm)

TMPI_INTERCEPT(TMPI_BARRIER, Barrier, (MPI_Comm comm), (comm), barrier(comm))
BOTH(TMPI_BCAST, Bcast, BROADCAST, FROM_ROOT, broadcast FROM_ROOT)
BOTH(TMPI_ALLGATHER, Allgather, MOVED, TO_ALL, MOVE(allgather, TMPI_ALLGATHER, -1))
BOTH(TMPI_ALLTOALL, Alltoall, MOVED, TO_ALL, MOVE(alltoall, TMPI_ALLTOALL, -1))
BOTH(TMPI_GATHER, Gather, ROOTED, TO_ONE, MOVE(gather, TMPI_GATHER, root))
BOTH(TMPI_SCATTER, Scatter, ROOTED, TO_ONE, MOVE(scatter, TMPI_SCATTER, root))
