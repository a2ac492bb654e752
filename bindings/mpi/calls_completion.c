/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Wait, MPI_Test and related functions. MPICH has no progress hook that could
 * complete this module's requests. A wait is therefore a loop of tests while any of
 * them is in flight. */
#include <sched.h>

#include "bindings/mpi/entry.h"
#include "bindings/mpi/idle_progress.h"
#include "bindings/mpi/next.h"
#include "bindings/mpi/pending.h"
#include "bindings/mpi/request_error.h"

static int wait_one(MPI_Request *request, MPI_Status *status)
{
    int done = 0;

    while (tmpi_pending_poll()) {
        const int result = tmpi_next.Test(request, &done, status);
        if (done || result != MPI_SUCCESS)
            return result;
        sched_yield();
    }
    return tmpi_next.Wait(request, status);
}

static int wait_all(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int done = 0;

    while (tmpi_pending_poll()) {
        const int result = tmpi_next.Testall(count, requests, &done, statuses);
        if (done || result != MPI_SUCCESS)
            return result;
        sched_yield();
    }
    return tmpi_next.Waitall(count, requests, statuses);
}

static int wait_any(int count, MPI_Request *requests, int *index, MPI_Status *status)
{
    int done = 0;

    while (tmpi_pending_poll()) {
        const int result = tmpi_next.Testany(count, requests, index, &done, status);
        if (done || result != MPI_SUCCESS)
            return result;
        sched_yield();
    }
    return tmpi_next.Waitany(count, requests, index, status);
}

static int wait_some(int count, MPI_Request *requests, int *done, int *indices,
                     MPI_Status *statuses)
{
    while (tmpi_pending_poll()) {
        const int result = tmpi_next.Testsome(count, requests, done, indices, statuses);
        if (result != MPI_SUCCESS || *done) /* MPI_UNDEFINED: no active request */
            return result;
        sched_yield();
    }
    return tmpi_next.Waitsome(count, requests, done, indices, statuses);
}

#define ONE (request, status)
#define ALL (count, requests, statuses)
#define ANY (count, requests, index, status)
#define SOME (count, requests, done, indices, statuses)
#define TEST_ONE (request, done, status)
#define TEST_ALL (count, requests, done, statuses)
#define TEST_ANY (count, requests, index, done, status)

/* Results of calls that complete one request, or several. */
#define OF_ONE(call) (tmpi_completion_begins(), tmpi_completed_one(call, status))
#define OF_SOME(call, n) \
    (tmpi_completion_begins(), tmpi_completed_some(call, n, statuses))
#define TESTED(name, arguments) (tmpi_pending_poll(), tmpi_next.name arguments)

/* Define test_X: MPI_X, repeated while MPI makes progress that the library has put
 * off. */
#define TEST(name, parameters, arguments) \
    static int test_##name parameters \
    { \
        int result, turns = 0; \
        do \
            result = TESTED(name, arguments); \
        while (result == MPI_SUCCESS && !*done && tmpi_idle_catch_up(&turns)); \
        return result; \
    }

TEST(Test, (MPI_Request * request, int *done, MPI_Status *status), TEST_ONE)
TEST(Testall, (int count, MPI_Request *requests, int *done, MPI_Status *statuses),
     TEST_ALL)
TEST(Testany,
     (int count, MPI_Request *requests, int *index, int *done, MPI_Status *status),
     TEST_ANY)
TEST(Testsome,
     (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
     SOME)

TMPI_ENTRY(Wait, (MPI_Request * request, MPI_Status *status), ONE, OF_ONE(wait_one ONE))
TMPI_ENTRY(Waitall, (int count, MPI_Request *requests, MPI_Status *statuses), ALL,
           OF_SOME(wait_all ALL, &count))
TMPI_ENTRY(Waitany, (int count, MPI_Request *requests, int *index, MPI_Status *status),
           ANY, OF_ONE(wait_any ANY))
TMPI_ENTRY(Waitsome,
           (int count, MPI_Request *requests, int *done, int *indices,
            MPI_Status *statuses),
           SOME, OF_SOME(wait_some SOME, done))
TMPI_ENTRY(Test, (MPI_Request * request, int *done, MPI_Status *status), TEST_ONE,
           OF_ONE(test_Test TEST_ONE))
TMPI_ENTRY(Testall, (int count, MPI_Request *requests, int *done, MPI_Status *statuses),
           TEST_ALL, OF_SOME(test_Testall TEST_ALL, &count))
TMPI_ENTRY(Testany,
           (int count, MPI_Request *requests, int *index, int *done,
            MPI_Status *status),
           TEST_ANY, OF_ONE(test_Testany TEST_ANY))
TMPI_ENTRY(Testsome,
           (int count, MPI_Request *requests, int *done, int *indices,
            MPI_Status *statuses),
           SOME, OF_SOME(test_Testsome SOME, done))

/* Result of a call that only queries requests. */
#define SEEN(call, n, statuses) \
    (tmpi_completion_begins(), tmpi_completion_seen(call, n, statuses))

TEST(Request_get_status, (MPI_Request request, int *done, MPI_Status *status), TEST_ONE)
TMPI_ENTRY(Request_get_status, (MPI_Request request, int *done, MPI_Status *status),
           TEST_ONE, SEEN(test_Request_get_status TEST_ONE, &(const int){1}, status))

/* Added in MPI 4. Headers of an earlier MPI do not declare them, but the program may
 * run with a later MPI. */
#define PART (MPI_Request request, int part, int *done)
#define ALL_LATER \
    (int count, const MPI_Request *requests, int *done, MPI_Status *statuses)
#define ANY_LATER \
    (int count, const MPI_Request *requests, int *index, int *done, MPI_Status *status)
#define SOME_LATER \
    (int count, const MPI_Request *requests, int *done, int *indices, \
     MPI_Status *statuses)

int MPI_Request_get_status_all ALL_LATER;
int PMPI_Request_get_status_all ALL_LATER;
int MPI_Request_get_status_any ANY_LATER;
int PMPI_Request_get_status_any ANY_LATER;
int MPI_Request_get_status_some SOME_LATER;
int PMPI_Request_get_status_some SOME_LATER;
int MPI_Parrived PART;
int PMPI_Parrived PART;

TEST(Request_get_status_all, ALL_LATER, TEST_ALL)
TEST(Request_get_status_any, ANY_LATER, TEST_ANY)
TEST(Request_get_status_some, SOME_LATER, SOME)
TMPI_LATER(Request_get_status_all, ALL_LATER, TEST_ALL,
           SEEN(test_Request_get_status_all TEST_ALL, &count, statuses))
TMPI_LATER(Request_get_status_any, ANY_LATER, TEST_ANY,
           SEEN(test_Request_get_status_any TEST_ANY, &(const int){1}, status))
TMPI_LATER(Request_get_status_some, SOME_LATER, SOME,
           SEEN(test_Request_get_status_some SOME, done, statuses))

TEST(Parrived, PART, (request, part, done))
TMPI_LATER(Parrived, PART, (request, part, done), test_Parrived(request, part, done))

#define WINDOW_TEST (MPI_Win window, int *done)
#define PROBE (int source, int tag, MPI_Comm comm, int *done, MPI_Status *status)
#define MPROBE \
    (int source, int tag, MPI_Comm comm, int *done, MPI_Message *message, \
     MPI_Status *status)
#define TESTS(name, parameters, arguments) \
    TEST(name, parameters, arguments) \
    TMPI_ENTRY(name, parameters, arguments, test_##name arguments)

TESTS(Win_test, WINDOW_TEST, (window, done))
TESTS(Iprobe, PROBE, (source, tag, comm, done, status))
TESTS(Improbe, MPROBE, (source, tag, comm, done, message, status))

/* A receive whose message was sent before a collective can no longer be cancelled. */
TMPI_ENTRY(Cancel, (MPI_Request * request), (request),
           (tmpi_idle_settle(), tmpi_next.Cancel(request)))

#ifdef OPEN_MPI
/* The space of a buffered message that was received before a collective is free then.
 * Open MPI releases it only in its progress, and otherwise fails; MPICH releases it on
 * demand. MPI_Start is not affected: in Open MPI, long persistent buffered sends repeat
 * old data. */
#define SEND \
    (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
#define SENT (data, n, type, to, tag, comm)
#define ISEND \
    (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
     MPI_Request *request)
#define ISENT (data, n, type, to, tag, comm, request)

TMPI_ENTRY(Bsend, SEND, SENT, (tmpi_idle_settle(), tmpi_next.Bsend SENT))
TMPI_ENTRY(Ibsend, ISEND, ISENT, (tmpi_idle_settle(), tmpi_next.Ibsend ISENT))
#endif

#ifndef OPEN_MPI
/* MPICH extensions that programs use for polling. A stream is an integer handle. */
int MPIX_Request_is_complete(MPI_Request request);
int PMPIX_Request_is_complete(MPI_Request request);
int MPIX_Stream_progress(int stream);
int PMPIX_Stream_progress(int stream);

/* Cannot return an error. */
static int is_complete(MPI_Request request)
{
    int done = 0;

    if (tmpi_next.MPIX_Request_is_complete)
        return TESTED(MPIX_Request_is_complete, (request));
    do_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    return done;
}

TMPI_ENTRY_OF(MPIX_Request_is_complete, PMPIX_Request_is_complete,
              MPIX_Request_is_complete, (MPI_Request request), (request),
              is_complete(request))
TMPI_ENTRY_OF(MPIX_Stream_progress, PMPIX_Stream_progress, MPIX_Stream_progress,
              (int stream), (stream),
              tmpi_next.MPIX_Stream_progress ? TESTED(MPIX_Stream_progress, (stream))
                                             : tmpi_lacks("MPIX_Stream_progress"))
#endif
