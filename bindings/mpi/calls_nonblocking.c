/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Iallreduce, Ibarrier and Ibcast. */
#include <limits.h>

#include "bindings/mpi/call_report.h"
#include "bindings/mpi/element.h"
#include "bindings/mpi/entry.h"
#include "bindings/mpi/failure_class.h"
#include "bindings/mpi/next.h"
#include "bindings/mpi/pending.h"
#include "bindings/mpi/argument_check.h"

#define IALLREDUCE_BY_MPI \
    TMPI_BY_MPI(Iallreduce, count > INT_MAX, \
                (send, recv, (int)count, type, op, comm, request), \
                (send, recv, count, type, op, comm, request))

static int iallreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
                      MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct tmpi_pending p = {0};
    struct tmpi_element e;
    struct tmpi_call call = {0};

    if (count <= 0 || tmpi_element_of(type, op, &e) != TMPI_ABLE) {
        tmpi_report_passed(TMPI_IALLREDUCE, count > 0 ? TMPI_TYPE : TMPI_SMALL);
        return IALLREDUCE_BY_MPI;
    }
    if (!send || !tmpi_buffer_is_valid(recv, count, type)) {
        tmpi_report_passed(TMPI_IALLREDUCE, TMPI_REFUSED);
        return IALLREDUCE_BY_MPI;
    }
    const size_t n = (size_t)count * (size_t)e.times;
    if (!tmpi_to_library(&call, comm, TMPI_IALLREDUCE, n * trib_dtype_size(e.dtype)))
        return tmpi_done_by_mpi(&call, IALLREDUCE_BY_MPI);
    return tmpi_pending_start(&call, &p,
                              trib_iallreduce(call.a->comm,
                                              send == MPI_IN_PLACE ? NULL : send, recv,
                                              n, e.dtype, e.op, &p.request),
                              request);
}

static int ibarrier(MPI_Comm comm, MPI_Request *request)
{
    struct tmpi_pending p = {0};
    struct tmpi_call call = {0};

    if (!tmpi_to_library(&call, comm, TMPI_IBARRIER, tmpi_module.settings.min))
        return tmpi_done_by_mpi(&call, tmpi_next.Ibarrier(comm, request));
    return tmpi_pending_start(&call, &p, trib_ibarrier(call.a->comm, &p.request),
                              request);
}

static int ibroadcast(void *buffer, MPI_Count count, MPI_Datatype type, int root,
                      MPI_Comm comm, MPI_Request *request)
{
    const size_t bytes = tmpi_bytes_of(count, type);
    struct tmpi_pending p = {0};
    struct tmpi_call call = {0};
    trib_status_t st = (trib_status_t)TMPI_NO_MEMORY;

    const bool is_valid = bytes && comm != MPI_COMM_NULL &&
                          tmpi_root_is_valid(root, comm) &&
                          tmpi_buffer_is_valid(buffer, count, type);

    if (!is_valid)
        tmpi_report_passed(TMPI_IBCAST, bytes ? TMPI_REFUSED : TMPI_SMALL);
    if (!is_valid || !tmpi_to_library(&call, comm, TMPI_IBCAST, bytes))
        return tmpi_done_by_mpi(
            &call, TMPI_BY_MPI(Ibcast, count > INT_MAX,
                               (buffer, (int)count, type, root, comm, request),
                               (buffer, count, type, root, comm, request)));
    if (tmpi_packed_open(&p.packed, buffer, count, type)) {
        if (call.a->rank == root)
            tmpi_pack(&p.packed, comm);
        p.unpack = call.a->rank != root;
        st = trib_ibroadcast(call.a->comm, p.packed.bytes, bytes, TRIB_I8, root,
                             &p.request);
    }
    if (st != TRIB_OK)
        tmpi_packed_close(&p.packed);
    return tmpi_pending_start(&call, &p, st, request);
}

#define SUM(number) \
    (const void *send, void *recv, number count, MPI_Datatype type, MPI_Op op, \
     MPI_Comm comm, MPI_Request *request)
#define SUMMED (send, recv, count, type, op, comm, request)
#define BROADCAST(number) \
    (void *buffer, number count, MPI_Datatype type, int root, MPI_Comm comm, \
     MPI_Request *request)
#define FROM_ROOT (buffer, count, type, root, comm, request)

TMPI_INTERCEPT(TMPI_IALLREDUCE, Iallreduce, SUM(int), SUMMED, iallreduce SUMMED)
TMPI_WIDE(TMPI_IALLREDUCE, Iallreduce, SUM(MPI_Count), SUMMED, iallreduce SUMMED)
TMPI_INTERCEPT(TMPI_IBARRIER, Ibarrier, (MPI_Comm comm, MPI_Request *request),
               (comm, request), ibarrier(comm, request))
TMPI_INTERCEPT(TMPI_IBCAST, Ibcast, BROADCAST(int), FROM_ROOT, ibroadcast FROM_ROOT)
TMPI_WIDE(TMPI_IBCAST, Ibcast, BROADCAST(MPI_Count), FROM_ROOT, ibroadcast FROM_ROOT)
