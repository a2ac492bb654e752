/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * situations NAME - an MPI program in a situation that once made collectives hang.
 *
 * progress        rank 0 is in a barrier while others write into its memory
 * tested          rank 0 has completed its access to windows, which others test once
 * arrived         a message sent before a collective is seen by the first test after it
 * buffered        a buffered message received before a barrier takes no space after it
 * partitioned     a partition that is ready before a barrier has arrived after it
 * threads         a thread for each communicator, started in another order on each rank
 * communicators   500 of them in sequence; none leaks memory or descriptors
 * requests        several non-blocking calls at once, completed in another order
 * crossing        a message must arrive before a non-blocking barrier can end
 * completing      a message arrives at a rank that only completes non-blocking calls
 * few, busy       20 calls on a communicator of the program; calls for 1.6 s
 * world           20 calls on MPI_COMM_WORLD
 * stopped, killed rank 1 is stopped or killed, and the others print the error
 *
 * The exit code is 0 if all results are right.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ELEMENTS = 5000, THREADS = 4, MANY = 500 };

static int rank, ranks;

static int sums(MPI_Comm comm, int count, int what)
{
    double *x = calloc((size_t)count, sizeof(*x));
    int wrong = 0, size, me;

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &me);
    for (int i = 0; i < count; i++)
        x[i] = me + what + i % 7;
    MPI_Allreduce(MPI_IN_PLACE, x, count, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        wrong += x[i] != size * (size - 1) / 2 + (double)size * (what + i % 7);
    free(x);
    return wrong;
}

/* Each rank but 0 writes to rank 0, which does nothing for it but wait. */
static int progress(void)
{
    double memory[64] = {0}, mine = rank;
    MPI_Win window;

    MPI_Win_create(memory, sizeof(memory), sizeof(double), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &window);
    for (int turn = 0; turn < 20; turn++) {
        for (int i = 0; rank && i < 50; i++) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
            MPI_Put(&mine, 1, MPI_DOUBLE, 0, rank, 1, MPI_DOUBLE, window);
            MPI_Win_flush(0, window);
            MPI_Win_unlock(0, window);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&window);
    for (int r = 1; rank == 0 && r < ranks; r++)
        if (memory[r] != r)
            return 1;
    return 0;
}

/* Rank 0 completes its access to the windows of others before a barrier. */
static int tested(void)
{
    const int origin = 0;
    int memory = 0, wrong = 0, done = 1;
    MPI_Group all, part;
    MPI_Win window;

    MPI_Win_create(&memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    MPI_Win_get_group(window, &all);
    (rank ? MPI_Group_incl : MPI_Group_excl)(all, 1, &origin, &part);
    for (int turn = 0; turn < 100; turn++) {
        if (rank) {
            MPI_Win_post(part, 0, window);
            MPI_Win_test(window, &done);
            wrong += done;
        } else {
            MPI_Win_start(part, 0, window);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Win_complete(window);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank) {
            MPI_Win_test(window, &done);
            wrong += !done;
            if (!done)
                MPI_Win_wait(window);
        }
    }
    MPI_Group_free(&part);
    MPI_Group_free(&all);
    MPI_Win_free(&window);
    return wrong;
}

enum arrival { MPROBE, ALL, ANY, SOME, CANCEL, ARRIVALS };

/* Return true if a receive can no longer be cancelled; receive its message. */
static int has_begun(int *x, MPI_Request *request)
{
    MPI_Status status;
    int cancelled;

    MPI_Cancel(request);
    MPI_Wait(request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled)
        MPI_Recv(x, 1, MPI_INT, 0, CANCEL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return !cancelled;
}

/* Return true if the message of rank 0 is seen at once; then receive it. */
static int has_arrived(enum arrival by, int *x, MPI_Request *request)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    int done = 0, index, n = 0;

    if (by == MPROBE)
        MPI_Improbe(0, by, MPI_COMM_WORLD, &done, &message, MPI_STATUS_IGNORE);
    else if (by == ALL)
        MPI_Testall(1, request, &done, MPI_STATUSES_IGNORE);
    else if (by == ANY)
        MPI_Testany(1, request, &index, &done, MPI_STATUS_IGNORE);
    else if (by == SOME)
        MPI_Testsome(1, request, &n, &index, MPI_STATUSES_IGNORE);
    else
        done = has_begun(x, request);
    if (message != MPI_MESSAGE_NULL)
        MPI_Mrecv(x, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    else if (by == MPROBE)
        MPI_Recv(x, 1, MPI_INT, 0, by, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return done || n == 1;
}

/* Return how many messages of the other ranks a loop of probes finds; receive all. */
static int drained(void)
{
    int n = 0, found = 1, x = rank;

    for (int i = 1; i < ranks; i++)
        MPI_Send(&x, 1, MPI_INT, (rank + i) % ranks, ARRIVALS, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 1; i < ranks; i++) {
        if (found)
            MPI_Iprobe(MPI_ANY_SOURCE, ARRIVALS, MPI_COMM_WORLD, &found,
                       MPI_STATUS_IGNORE);
        n += found;
        MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, ARRIVALS, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    return n;
}

/* Programs receive until a probe finds no message, after a barrier that all ranks enter
 * when they have sent their messages. With MPI alone it may still miss a few. */
static int arrived(void)
{
    enum { TURNS = 100, MISSED_MOST = TURNS / ARRIVALS / 2 };
    int wrong = 0, missed[ARRIVALS + 1] = {0};

    for (int turn = 0; turn < TURNS; turn++) {
        const enum arrival by = turn % ARRIVALS;
        MPI_Request request = MPI_REQUEST_NULL;
        int x = -1;
        if (rank && by != MPROBE)
            MPI_Irecv(&x, 1, MPI_INT, 0, by, MPI_COMM_WORLD, &request);
        for (int r = 1; rank == 0 && r < ranks; r++)
            MPI_Send(&turn, 1, MPI_INT, r, by, MPI_COMM_WORLD);
        if (turn / ARRIVALS % 2)
            wrong += sums(MPI_COMM_WORLD, 1, turn);
        else
            MPI_Barrier(MPI_COMM_WORLD);
        missed[by] += rank && !has_arrived(by, &x, &request);
        wrong += rank && x != turn;
        missed[ARRIVALS] += drained() != ranks - 1;
    }
    for (int by = 0; by < ARRIVALS; by++)
        wrong += missed[by] > MISSED_MOST;
    return wrong + (missed[ARRIVALS] > TURNS / 4);
}

/* There is space for one message of rank 1. */
static int buffered(void)
{
    enum { LONG = 100000, SPACE = LONG + MPI_BSEND_OVERHEAD };
    char *message = calloc(1, LONG), *space = malloc(SPACE);
    MPI_Request request = MPI_REQUEST_NULL;
    int wrong = 0, size;

    MPI_Buffer_attach(space, SPACE);
    for (int turn = 0; turn < 40; turn++) {
        memset(message, rank ? turn : -1, LONG);
        if (rank == 0)
            MPI_Recv(message, LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (rank == 1 && turn % 2)
            MPI_Bsend(message, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        else if (rank == 1)
            MPI_Ibsend(message, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += message[0] != turn || message[LONG - 1] != turn;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Buffer_detach(&space, &size);
    free(space);
    free(message);
    return wrong;
}

static int partitioned(void)
{
    int missed = 0;
#if MPI_VERSION >= 4
    enum { TURNS = 40 };
    MPI_Request request = MPI_REQUEST_NULL;
    int x = -1;

    if (rank == 1)
        MPI_Psend_init(&x, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    else if (rank == 0)
        MPI_Precv_init(&x, 1, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    for (int turn = 0; turn < TURNS; turn++) {
        int done = 1;
        if (rank < 2)
            MPI_Start(&request);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
            MPI_Pready(0, request);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Parrived(request, 0, &done);
        missed += !done;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank < 2)
        MPI_Request_free(&request);
    missed = missed > TURNS / 2;
#endif
    return missed;
}

static MPI_Comm of_thread[THREADS];
static int wrong_in[THREADS];

static void *thread_main(void *arg)
{
    const int k = (int)(intptr_t)arg;

    for (int r = 0; r < 100; r++)
        wrong_in[k] += sums(of_thread[k], ELEMENTS, k + r);
    return NULL;
}

static int threads(int provided)
{
    pthread_t thread[THREADS];
    int wrong = 0;

    if (provided < MPI_THREAD_MULTIPLE)
        return 0;
    for (int k = 0; k < THREADS; k++)
        MPI_Comm_dup(MPI_COMM_WORLD, &of_thread[k]);
    for (int k = 0; k < THREADS; k++)
        pthread_create(&thread[k], NULL, thread_main,
                       (void *)(intptr_t)(rank % 2 ? THREADS - 1 - k : k));
    for (int k = 0; k < THREADS; k++)
        pthread_join(thread[k], NULL);
    for (int k = 0; k < THREADS; k++) {
        wrong += wrong_in[k];
        MPI_Comm_free(&of_thread[k]);
    }
    return wrong;
}

static int descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    int n = 0;

    while (all && readdir(all))
        n++;
    closedir(all);
    return n;
}

static long resident_pages(void)
{
    long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages;
}

/* Some of each way to make one; every tenth does enough calls to be worth its own. */
static int communicators(void)
{
    int wrong = 0, open_before = 0;
    long pages_before = 0;

    for (int i = 0; i < MANY; i++) {
        MPI_Comm c = MPI_COMM_NULL;
        if (i % 3)
            MPI_Comm_dup(MPI_COMM_WORLD, &c);
        else
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &c);
        for (int k = 0; k < (i % 10 ? 2 : 12); k++)
            wrong += sums(c, 3, k);
        MPI_Comm_free(&c);
        if (i == MANY / 5) {
            open_before = descriptors();
            pages_before = resident_pages();
        }
    }
    if (descriptors() > open_before + 4 ||
        resident_pages() > pages_before * 3 / 2 + 500) {
        fprintf(stderr, "rank %d: %d descriptors, %d before; %ld pages, %ld before\n",
                rank, descriptors(), open_before, resident_pages(), pages_before);
        wrong++;
    }
    return wrong;
}

static int requests(void)
{
    enum { N = 6 };
    MPI_Request request[N];
    double x[N], y[N];
    int root_has = 0, wrong = 0;

    for (int turn = 0; turn < 50; turn++) {
        for (int i = 0; i < N - 2; i++) {
            x[i] = rank + i + turn;
            MPI_Iallreduce(&x[i], &y[i], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                           &request[i]);
        }
        root_has = rank == 0 ? turn : -1;
        MPI_Ibcast(&root_has, 1, MPI_INT, 0, MPI_COMM_WORLD, &request[N - 2]);
        MPI_Ibarrier(MPI_COMM_WORLD, &request[N - 1]);
        wrong += sums(MPI_COMM_WORLD, 3, turn);
        for (int i = 0; i < N; i++)
            MPI_Wait(&request[rank % 2 ? N - 1 - i : i], MPI_STATUS_IGNORE);
        for (int i = 0; i < N - 2; i++)
            wrong += y[i] != ranks * (ranks - 1) / 2 + (double)ranks * (i + turn);
        wrong += root_has != turn;
    }
    return wrong;
}

/* Rank 0 waits for a message that the others send after their barrier, which needs rank
 * 0 during that wait. */
static int crossing(void)
{
    int got = 0;

    for (int turn = 0; turn < 20; turn++) {
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        if (rank == 0)
            MPI_Recv(&got, 1, MPI_INT, ranks - 1, turn, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == ranks - 1)
            MPI_Send(&turn, 1, MPI_INT, 0, turn, MPI_COMM_WORLD);
    }
    return 0;
}

/* Rank 1 sends a message so long that rank 0 must take part, until it is sent. Rank 0
 * is slow: all its broadcasts have ended when it waits for them. */
static int completing(void)
{
    enum { LONG = 1000000, BEFORE = 100, TURNS_MOST = 1500 };
    char *message = calloc(1, LONG);
    MPI_Request broadcast, request = MPI_REQUEST_NULL;
    int sent = 0;

    if (rank == 0)
        MPI_Irecv(message, LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
    for (int turn = 0; !sent && turn < TURNS_MOST; turn++) {
        if (rank == 1 && turn == BEFORE)
            MPI_Isend(message, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        if (rank == 1 && turn >= BEFORE)
            MPI_Test(&request, &sent, MPI_STATUS_IGNORE);
        MPI_Ibcast(&sent, 1, MPI_INT, 1, MPI_COMM_WORLD, &broadcast);
        usleep(rank ? 100 : 500);
        MPI_Wait(&broadcast, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(message);
    return !sent;
}

/* Until the rank that waited least has spent a second in calls. */
static int few(MPI_Comm comm)
{
    double x = 1;

    for (int call = 0; call < 20; call++)
        MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_MAX, comm);
    return x != 1;
}

static int busy(MPI_Comm comm)
{
    enum { LONG = 1 << 17 };
    double *x = calloc(LONG, sizeof(*x)), mine = 0, least = 0;

    /* Run for four times the requested duration. The module checks at the eighth call
     * and at each doubling: as many calls follow after twice the duration has passed.
     * So a check occurs even if the first calls are fast and the last ones slow. */
    int enough = 0;
    for (int round = 0; round < 12 || least < 1.6 || round < 2 * enough + 2; round++) {
        if (!enough && least >= 0.8)
            enough = round;
        const double since = MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, x, LONG, MPI_DOUBLE, MPI_SUM, comm);
        mine += MPI_Wtime() - since;
        MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, comm);
    }
    free(x);
    return 0;
}

static int on_own(int (*calls)(MPI_Comm comm))
{
    MPI_Comm own;

    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    const int failed = calls(own);
    MPI_Comm_free(&own);
    return failed;
}

static int lost(int number)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 200; i++) {
        double x = rank;
        char text[MPI_MAX_ERROR_STRING] = "";
        int length;
        if (rank == 1 && i == 50)
            raise(number);
        const int error =
            MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (error == MPI_SUCCESS)
            continue;
        MPI_Error_string(error, text, &length);
        printf("rank %d is told: %s\n", rank, text);
        fflush(stdout);
        usleep(300000); /* or the launcher ends before it has passed this on */
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const int many = !strcmp(name, "threads");
    int provided, wrong = 1, total = 0;

    MPI_Init_thread(&argc, &argv, many ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    wrong = sums(MPI_COMM_WORLD, 3, 0);
    if (!strcmp(name, "progress"))
        wrong += progress();
    else if (!strcmp(name, "tested"))
        wrong += tested();
    else if (!strcmp(name, "arrived"))
        wrong += arrived();
    else if (!strcmp(name, "buffered"))
        wrong += buffered();
    else if (!strcmp(name, "partitioned"))
        wrong += partitioned();
    else if (many)
        wrong += threads(provided);
    else if (!strcmp(name, "communicators"))
        wrong += communicators();
    else if (!strcmp(name, "requests"))
        wrong += requests();
    else if (!strcmp(name, "crossing"))
        wrong += crossing();
    else if (!strcmp(name, "completing"))
        wrong += completing();
    else if (!strcmp(name, "busy"))
        wrong += on_own(busy);
    else if (!strcmp(name, "few"))
        wrong += on_own(few);
    else if (!strcmp(name, "world"))
        wrong += few(MPI_COMM_WORLD);
    else if (!strcmp(name, "stopped"))
        wrong += lost(SIGSTOP);
    else if (!strcmp(name, "killed"))
        wrong += lost(SIGKILL);
    else
        wrong = 1;
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %d\n", total);
    MPI_Finalize();
    return total != 0;
}
