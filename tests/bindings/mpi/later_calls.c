/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that polls requests with calls of MPI 4.1, and with those of MPICH 5.0.
 * With -DLIBRARY it is a library that adds these calls to an earlier MPI, based on that
 * MPI's functions. With -DALONE it is a program that finds only the module's
 * implementations.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int MPI_Request_get_status_all(int, const MPI_Request *, int *, MPI_Status *);
int MPI_Request_get_status_any(int, const MPI_Request *, int *, int *, MPI_Status *);
int MPI_Request_get_status_some(int, const MPI_Request *, int *, int *, MPI_Status *);
int MPIX_Request_is_complete(MPI_Request);
int MPIX_Stream_progress(int);

#ifdef LIBRARY
static int is_done(MPI_Request request)
{
    static int (*of_mpi)(MPI_Request, int *, MPI_Status *);
    int done = 0;

    if (!of_mpi)
        *(void **)&of_mpi = dlsym(RTLD_NEXT, "PMPI_Request_get_status");
    of_mpi(request, &done, MPI_STATUS_IGNORE);
    return done;
}

int PMPIX_Request_is_complete(MPI_Request request)
{
    return is_done(request);
}

int MPIX_Request_is_complete(MPI_Request request)
{
    return PMPIX_Request_is_complete(request);
}

int PMPIX_Stream_progress(int stream)
{
    return stream;
}

int MPIX_Stream_progress(int stream)
{
    return PMPIX_Stream_progress(stream);
}

int PMPI_Request_get_status_some(int count, const MPI_Request *requests, int *done,
                                 int *indices, MPI_Status *statuses)
{
    (void)statuses;
    *done = 0;
    for (int i = 0; i < count; i++)
        if (is_done(requests[i]))
            indices[(*done)++] = i;
    return MPI_SUCCESS;
}

int PMPI_Request_get_status_any(int count, const MPI_Request *requests, int *index,
                                int *done, MPI_Status *status)
{
    (void)status;
    *done = 0;
    for (int i = 0; i < count && !*done; i++)
        if ((*done = is_done(requests[i])))
            *index = i;
    return MPI_SUCCESS;
}

int PMPI_Request_get_status_all(int count, const MPI_Request *requests, int *done,
                                MPI_Status *statuses)
{
    (void)statuses;
    *done = 1;
    for (int i = 0; i < count; i++)
        *done &= is_done(requests[i]);
    return MPI_SUCCESS;
}

int MPI_Request_get_status_some(int count, const MPI_Request *requests, int *done,
                                int *indices, MPI_Status *statuses)
{
    return PMPI_Request_get_status_some(count, requests, done, indices, statuses);
}

int MPI_Request_get_status_any(int count, const MPI_Request *requests, int *index,
                               int *done, MPI_Status *status)
{
    return PMPI_Request_get_status_any(count, requests, index, done, status);
}

int MPI_Request_get_status_all(int count, const MPI_Request *requests, int *done,
                               MPI_Status *statuses)
{
    return PMPI_Request_get_status_all(count, requests, done, statuses);
}
#elif defined(ALONE)
int main(int argc, char **argv)
{
    int (*all)(int, const MPI_Request *, int *, MPI_Status *) = NULL;
    int done, class = MPI_ERR_UNSUPPORTED_OPERATION;

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    *(void **)&all = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_all");
    if (all)
        MPI_Error_class(all(0, NULL, &done, MPI_STATUSES_IGNORE), &class);
    printf("wrong %d\n",
           class != MPI_ERR_UNSUPPORTED_OPERATION && class != MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
#else
enum { SUM, BARRIER, REQUESTS };

static void poll_by(int form, const MPI_Request *requests)
{
    int done = 0, at[REQUESTS];

    while (!done) {
        if (form == 0)
            MPI_Request_get_status_all(REQUESTS, requests, &done, MPI_STATUSES_IGNORE);
        else if (form == 1)
            MPI_Request_get_status_any(REQUESTS, requests, at, &done,
                                       MPI_STATUS_IGNORE);
        else if (form == 2)
            MPI_Request_get_status_some(REQUESTS, requests, &done, at,
                                        MPI_STATUSES_IGNORE);
#ifdef MPICH_VERSION
        else if (form == 3)
            done = MPIX_Request_is_complete(requests[SUM]);
#endif
        else
            MPI_Request_get_status(requests[SUM], &done, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int ranks, x = 1, y, wrong = 0;
    MPI_Request requests[REQUESTS];

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < 12; turn++) {
        y = 0;
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[SUM]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[BARRIER]);
        poll_by(turn % 4, requests);
        MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
        wrong += y != ranks;
    }
    MPI_Reduce(&wrong, &y, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &x);
    if (x == 0)
        printf("wrong %d\n", y);
    MPI_Finalize();
    return wrong != 0;
}
#endif
