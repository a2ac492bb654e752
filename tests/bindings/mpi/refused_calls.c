/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * refused_calls - calls that MPI rejects, with the class of the error; and calls that
 * have no elements on some ranks, with NULL for the memory there.
 *
 * It is an ordinary MPI program and does not use the library's API. Rank 0 prints a
 * line for each wrong call; plain MPI prints the same lines. Valid calls follow the
 * calls that one rank or all ranks make. "wrong N" counts wrong results.
 */
#include <limits.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

static int rank, ranks, wrong;
static int mine[MOST], got[MOST], other[MOST * MOST];
static int ones[MOST], zeros[MOST], places[MOST], bad[MOST];
static MPI_Datatype loose; /* not committed */

static void check(int good, const char *what)
{
    if (!good && wrong++ < 20)
        fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
}

/* All ranks must be in the same call again. */
static void right_calls(void)
{
    int sum = -1, root_has = rank == 1 ? 17 : 0;

    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == ranks * (ranks - 1) / 2, "a sum");
    MPI_Bcast(&root_has, 1, MPI_INT, 1, MPI_COMM_WORLD);
    check(root_has == 17, "a broadcast");
}

static void refused(const char *what, int error)
{
    int class = MPI_SUCCESS;

    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &class);
    if (rank == 0)
        printf("%s: class %d\n", what, class);
}

#define W MPI_COMM_WORLD
#define I MPI_INT
#define REFUSED(call) refused(#call, call)

static void roots(void)
{
    REFUSED(MPI_Bcast(mine, 1, I, ranks, W));
    REFUSED(MPI_Bcast(mine, 1, I, -1, W));
    REFUSED(MPI_Reduce(mine, got, 1, I, MPI_SUM, ranks, W));
    REFUSED(MPI_Gather(mine, 1, I, other, 1, I, -7, W));
    REFUSED(MPI_Scatter(other, 1, I, got, 1, I, 99, W));
    REFUSED(MPI_Gatherv(mine, 1, I, other, ones, places, I, ranks, W));
    REFUSED(MPI_Scatterv(other, ones, places, I, got, 1, I, ranks, W));
}

static void counts(void)
{
    REFUSED(MPI_Bcast(mine, -1, I, 0, W));
    REFUSED(MPI_Allgather(mine, -1, I, other, 1, I, W));
    REFUSED(MPI_Alltoall(mine, -1, I, other, 1, I, W));
    REFUSED(MPI_Allgatherv(mine, -1, I, other, ones, places, I, W));
    REFUSED(MPI_Gatherv(mine, -1, I, other, ones, places, I, 0, W));
    REFUSED(MPI_Scatterv(other, ones, places, I, got, -1, I, 0, W));
    REFUSED(MPI_Alltoallv(mine, bad, places, I, other, ones, places, I, W));
    REFUSED(MPI_Reduce_scatter(mine, got, bad, I, MPI_SUM, W));
}

static void types(void)
{
    const MPI_Datatype none = MPI_DATATYPE_NULL;

    REFUSED(MPI_Bcast(mine, 1, loose, 0, W));
    REFUSED(MPI_Allgather(mine, 1, loose, other, 1, I, W));
    REFUSED(MPI_Alltoall(mine, 1, none, other, 1, I, W));
    REFUSED(MPI_Gather(mine, 1, none, other, 1, I, 0, W));
    REFUSED(MPI_Allgatherv(mine, 1, none, other, ones, places, I, W));
    REFUSED(MPI_Scatterv(other, ones, places, I, got, 1, none, 0, W));
    REFUSED(MPI_Alltoallv(mine, ones, places, I, other, ones, places, loose, W));
    REFUSED(MPI_Allreduce(mine, got, 1, none, MPI_SUM, W));
}

static void in_place(void)
{
    REFUSED(MPI_Allreduce(mine, MPI_IN_PLACE, 1, I, MPI_SUM, W));
    REFUSED(MPI_Scan(mine, MPI_IN_PLACE, 1, I, MPI_SUM, W));
    REFUSED(MPI_Allgather(mine, 1, I, MPI_IN_PLACE, 1, I, W));
    REFUSED(MPI_Alltoall(mine, 1, I, MPI_IN_PLACE, 1, I, W));
    REFUSED(MPI_Allgatherv(mine, 1, I, MPI_IN_PLACE, ones, places, I, W));
}

static int of_one, of_world; /* errors that handlers have got */

static void on_one(MPI_Comm *comm, int *code, ...)
{
    of_one += *comm != MPI_COMM_WORLD && *code != MPI_SUCCESS;
}

static void on_world(MPI_Comm *comm, int *code, ...)
{
    of_world += *comm == MPI_COMM_WORLD && *code != MPI_SUCCESS;
}

/* An error invokes the handler of the call's communicator, and no other. */
static void handlers(void)
{
    MPI_Errhandler of[2];
    MPI_Datatype pair;
    MPI_Comm one;

    MPI_Comm_dup(W, &one);
    MPI_Comm_create_errhandler(on_one, &of[0]);
    MPI_Comm_create_errhandler(on_world, &of[1]);
    MPI_Comm_set_errhandler(one, of[0]);
    MPI_Comm_set_errhandler(W, of[1]);
    MPI_Type_contiguous(2, I, &pair);
    MPI_Type_commit(&pair);
    REFUSED(MPI_Allreduce(mine, got, 1, pair, MPI_SUM, one));
    REFUSED(MPI_Reduce(mine, got, 1, pair, MPI_MAX, 0, one));
    REFUSED(MPI_Allreduce(mine, got, 1, MPI_WCHAR, MPI_SUM, one));
    REFUSED(MPI_Reduce(mine, got, 1, MPI_LONG_DOUBLE, MPI_BAND, 0, one));
    REFUSED(MPI_Allreduce(mine, got, 1, MPI_SHORT_INT, MPI_SUM, one));
    check(of_one == 5 && of_world == 0, "the handler that gets a wrong operator");
#ifdef MPICH_VERSION /* handles of another MPI are addresses: it crashes */
    REFUSED(MPI_Bcast(mine, 1, (MPI_Datatype)0x77777777, 0, one));
    check(of_one == 6 && of_world == 0, "the handler that gets a handle of nothing");
#endif
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&of[0]);
    MPI_Errhandler_free(&of[1]);
    MPI_Type_free(&pair);
    MPI_Comm_free(&one);
}

static int heard;

static void on_any(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    heard += *code != MPI_SUCCESS;
}

/* Each invalid handle invokes one error handler, once. */
static void no_communicator(MPI_Comm none)
{
    MPI_Request request;
    int calls = 8;

    heard = 0;
    REFUSED(MPI_Bcast(mine, 1, I, 0, none));
    REFUSED(MPI_Allreduce(mine, got, 1, I, MPI_SUM, none));
    REFUSED(MPI_Reduce(mine, got, 1, I, MPI_SUM, 0, none));
    REFUSED(MPI_Exscan(mine, got, 1, I, MPI_SUM, none));
    REFUSED(MPI_Reduce_scatter(mine, got, ones, I, MPI_SUM, none));
    REFUSED(MPI_Barrier(none));
    REFUSED(MPI_Gather(mine, 1, I, other, 1, I, 0, none));
    REFUSED(MPI_Ibarrier(none, &request));
#ifdef MPICH_VERSION /* another MPI crashes */
    calls = 13;
    REFUSED(MPI_Allgather(mine, 1, I, other, 1, I, none));
    REFUSED(MPI_Gatherv(mine, 1, I, other, ones, places, I, 0, none));
    REFUSED(MPI_Alltoallv(mine, ones, places, I, other, ones, places, I, none));
    REFUSED(MPI_Ibcast(mine, 1, I, 0, none, &request));
    REFUSED(MPI_Iallreduce(mine, got, 1, I, MPI_SUM, none, &request));
#endif
    check(heard == calls, "the number of errors that a handler gets");
}

static void no_communicators(void)
{
    MPI_Errhandler handler;
#ifdef MPICH_VERSION
    MPI_Comm freed, copy;
#endif

    MPI_Comm_create_errhandler(on_any, &handler);
    MPI_Comm_set_errhandler(W, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    no_communicator(MPI_COMM_NULL);
#ifdef MPICH_VERSION /* handles of another MPI are addresses: it crashes */
    MPI_Comm_dup(W, &freed);
    MPI_Barrier(freed);
    copy = freed;
    MPI_Comm_free(&freed);
    no_communicator(copy);
    no_communicator((MPI_Comm)0x77777777);
#endif
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

#ifdef MPICH_VERSION /* another MPI accepts them, or crashes */
static void of_mpich(void)
{
    REFUSED(MPI_Allgather(mine, 1, I, other, 1, loose, W));
    REFUSED(MPI_Exscan(mine, mine, 1, I, MPI_SUM, W));
    REFUSED(MPI_Bcast(NULL, 1, I, 0, W));
    REFUSED(MPI_Allreduce(NULL, got, 1, I, MPI_SUM, W));
    REFUSED(MPI_Allreduce(mine, NULL, 1, I, MPI_SUM, W));
    REFUSED(MPI_Allreduce(mine, mine, 1, I, MPI_SUM, W));
    REFUSED(MPI_Scan(mine, mine, 1, I, MPI_SUM, W));
    REFUSED(MPI_Allgather(NULL, 1, I, other, 1, I, W));
}
#endif

static void one_by_one(void (*calls)(void))
{
    calls();
    right_calls();
}

/* One rank alone makes a wrong call, while the others are in the next right one. */
static void alone(void)
{
    if (rank == 0)
        roots();
    right_calls();
    if (rank == 0)
        types();
    right_calls();
}

/* From rank 0 to only the last rank; zero counts have invalid displacements. */
static void empty(void)
{
    int to[MOST] = {0}, from[MOST] = {0}, last_has[MOST] = {0}, nowhere[MOST];
    const int is_first = rank == 0, is_last = rank == ranks - 1;
    int *const input = is_first ? mine : NULL, *const output = is_last ? got : NULL;

    to[ranks - 1] = is_first;
    from[0] = is_last;
    last_has[ranks - 1] = 1;
    for (int i = 0; i < ranks; i++)
        nowhere[i] = to[i] || from[i] ? 0 : INT_MIN;
    mine[0] = 40 + rank;
    got[0] = -1;
    MPI_Alltoallv(input, to, nowhere, I, output, from, nowhere, I, W);
    check(!is_last || got[0] == 40, "alltoallv");
    MPI_Alltoallv(input, to, zeros, I, got, from, zeros, I, W);
    check(!is_last || got[0] == 40, "alltoallv with memory for nothing");
    MPI_Reduce_scatter(mine, output, last_has, I, MPI_SUM, W);
    check(!is_last || got[0] == 40 * ranks + ranks * (ranks - 1) / 2, "reduce_scatter");
    MPI_Gatherv(is_last ? mine : NULL, is_last, I, is_first ? got : NULL,
                is_first ? last_has : NULL, is_first ? nowhere : NULL, I, 0, W);
    check(!is_first || got[0] == 39 + ranks, "gatherv");
    MPI_Scatterv(is_first ? mine : NULL, is_first ? last_has : NULL,
                 is_first ? nowhere : NULL, I, output, is_last, I, 0, W);
    check(!is_last || got[0] == 40, "scatterv");
    memset(nowhere, 0, sizeof(nowhere));
    nowhere[0] = INT_MAX;
    MPI_Allgatherv(is_last ? mine : NULL, is_last, I, got, last_has, nowhere, I, W);
    check(got[0] == 39 + ranks, "allgatherv");
    MPI_Reduce(mine, is_first ? got : NULL, 1, I, MPI_SUM, 0, W);
    MPI_Gather(mine, 1, I, is_first ? other : NULL, 1, I, 0, W);
    MPI_Scatter(is_first ? other : NULL, 1, I, got, 1, I, 0, W);
    check(got[0] == 40 + rank, "scatter of what was gathered");
}

/* One rank forgets to commit the receive datatype: MPICH rejects that. */
static void loose_at_root(void)
{
#ifndef MPICH_VERSION
    MPI_Datatype forgotten;

    MPI_Type_contiguous(1, I, &forgotten);
    memset(other, 0, sizeof(other));
    MPI_Gather(mine, 1, I, other, 1, rank == 0 ? forgotten : I, 0, W);
    check(rank || other[ranks - 1] == 39 + ranks, "gather to a loose datatype");
    MPI_Type_free(&forgotten);
    MPI_Type_contiguous(1, I, &forgotten);
    MPI_Gatherv(mine, 1, I, other, ones, places, rank == 0 ? forgotten : I, 0, W);
    MPI_Type_free(&forgotten);
    MPI_Type_contiguous(1, I, &forgotten);
    MPI_Scatter(other, 1, rank == 0 ? forgotten : I, got, 1, I, 0, W);
    check(got[0] == 40 + rank, "scatter from a loose datatype");
    MPI_Type_free(&forgotten);
#endif
}

/* A rank sends more than the others receive: an error, and no hang. */
static void too_much(void)
{
    int class = MPI_SUCCESS;
    const int error = MPI_Allgather(mine, rank == 0 ? 2 : 1, I, other, 1, I, W);

    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &class);
    check(rank != 0 || class == MPI_ERR_TRUNCATE, "the class of a block that is long");
}

enum { LONG = 30000, KINDS = 6 };

static int unlike_call(int kind, int n, int *x, MPI_Comm comm)
{
    static int y[LONG];
    MPI_Request request;
    int error;

    switch (kind) {
    case 0:
        return MPI_Bcast(x, n, I, 0, comm);
    case 1:
        return MPI_Reduce(y, x, n, I, MPI_SUM, 0, comm);
    case 2:
        return MPI_Exscan(y, x, n, I, MPI_SUM, comm);
    case 3:
        return MPI_Scatter(rank == 0 ? other : NULL, 1, I, x, n, I, 0, comm);
    case 4:
        return MPI_Gather(x, n, I, other, 1, I, 0, comm);
    default:
        error = MPI_Ibcast(x, n, I, 0, comm, &request);
        return error ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* One rank passes another length than the others. Some rank gets an error, no rank
 * hangs, and nothing is written past the expected length. */
static void unlike(int kind, int one, int n)
{
    enum { MARK = 0x5a5a5a5a };
    static int x[LONG + 1];
    int error, errors = 0;
    MPI_Comm comm;

    MPI_Comm_dup(W, &comm);
    MPI_Barrier(comm);
    for (int i = n; i <= LONG; i++)
        x[i] = MARK;
    error = unlike_call(kind, n, x, comm) != MPI_SUCCESS;
    for (int i = n; i <= LONG; i++)
        check(x[i] == MARK, "memory behind a buffer");
    MPI_Allreduce(&error, &errors, 1, I, MPI_SUM, W);
    check(errors > 0, "a call with unlike lengths");
    if (errors == 0 && rank == 0)
        fprintf(stderr, "kind %d, rank %d has another length\n", kind, one);
    MPI_Comm_free(&comm);
}

static void unlike_lengths(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        unlike(kind, 0, rank == 0 ? 1 : kind == 4 ? 2 : LONG);
        if (kind == 0)
            unlike(kind, ranks - 1, rank == ranks - 1 ? LONG : 1);
    }
}

enum { FORMS = 6 };

static int class_in(int error, const MPI_Status *statuses)
{
    int class = MPI_SUCCESS;

    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &class);
    if (class == MPI_ERR_IN_STATUS)
        MPI_Error_class(statuses[1].MPI_ERROR, &class);
    return class;
}

/* Completes the second request; returns the class of its error. */
static int completed(int form, MPI_Request *requests)
{
    MPI_Status statuses[2];
    int error = MPI_SUCCESS, done = 0, at[2];

    switch (form) {
    case 0:
        error = MPI_Waitall(2, requests, statuses);
        check(!error || error == MPI_ERR_IN_STATUS, "the error of MPI_Waitall");
        check(!error || statuses[0].MPI_ERROR == MPI_SUCCESS,
              "another request's error");
        break;
    case 1:
        while (!done && !error)
            error = MPI_Testany(2, requests, at, &done, &statuses[0]);
        break;
    case 2:
        error = MPI_Waitsome(2, requests, &done, at, &statuses[1]);
        break;
    case 3:
        while (!done && !error)
            error = MPI_Request_get_status(requests[1], &done, MPI_STATUS_IGNORE);
        check(!error && !of_one, "an error of a request that stays");
        error = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        break;
    default:
        error = MPI_Wait(&requests[1], &statuses[0]);
    }
    check(requests[1] == MPI_REQUEST_NULL, "a request that has failed");
    return class_in(error, statuses);
}

static jmp_buf back;
static int jumps;

static void on_failure(MPI_Comm *comm, int *code, ...)
{
    on_one(comm, code);
    if (jumps)
        longjmp(back, 1);
}

/* A request that fails is an error of its communicator, once; the last handler jumps,
 * as an exception does. */
static void failed_request(int form)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Errhandler handler;
    MPI_Comm comm;
    volatile int class = MPI_SUCCESS;
    int failed, failures;

    MPI_Comm_dup(W, &comm);
    MPI_Barrier(comm);
    MPI_Comm_create_errhandler(on_failure, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    of_one = 0;
    jumps = form == FORMS - 1;
    if (!setjmp(back)) {
        MPI_Ibcast(other, rank == 0 ? MOST : 1, I, 0, comm, &requests[1]);
        class = completed(form, requests);
    } else {
        class = MPI_ERR_TRUNCATE;
    }
    check(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE, "the class of a failure");
    check(of_one == (class != MPI_SUCCESS), "the handler of a request that failed");
    failed = class != MPI_SUCCESS;
    MPI_Allreduce(&failed, &failures, 1, I, MPI_SUM, W);
    check(failures > 0, "a request with unlike lengths");
    MPI_Comm_free(&comm);
}

static void failed_requests(void)
{
    MPI_Errhandler handler;

    MPI_Comm_create_errhandler(on_world, &handler);
    MPI_Comm_set_errhandler(W, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    for (int form = 0; form < FORMS; form++)
        failed_request(form);
    check(of_world == 0, "the handler of MPI_COMM_WORLD");
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(W, &rank);
    MPI_Comm_size(W, &ranks);
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(1, I, &loose);
    for (int i = 0; i < MOST; i++) {
        ones[i] = 1;
        places[i] = i;
        bad[i] = i == 1 ? -1 : 1;
    }
    right_calls();
    one_by_one(roots);
    one_by_one(counts);
    one_by_one(types);
    one_by_one(in_place);
    one_by_one(handlers);
    one_by_one(no_communicators);
#ifdef MPICH_VERSION
    one_by_one(of_mpich);
#endif
    alone();
    empty();
    loose_at_root();
    right_calls();
    if (argc > 1) {
        failed_requests();
        unlike_lengths();
        too_much();
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, I, MPI_SUM, W);
    if (rank == 0)
        printf("wrong %d\n", wrong);
    MPI_Finalize();
    return wrong != 0;
}
