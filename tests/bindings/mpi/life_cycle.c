/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life_cycle NAME… - an MPI program that frees communicators, completes requests and
 * delays ranks in ways that MPI allows.
 *
 * order        ranks free communicators in different orders and wait for messages in
 *              between; repeated rounds do not leak memory or descriptors
 * pending      communicators and datatypes are freed during non-blocking calls
 * released     MPI_Request_free of active barriers
 * attributes   delete callbacks of attributes call collectives on the communicator;
 *              copy callbacks of datatypes are not affected
 * completion   each call that completes requests, on lists of different kinds
 * late         a rank computes for half a second without calls, and then for longer
 * ending       delete callbacks of rank 0 in MPI_Finalize make calls that other ranks
 *              make before MPI_Finalize
 * stopped      rank 1 is stopped for longer than the default stall limit
 * spawned      collectives with processes of another MPI_COMM_WORLD
 * multiple     (with others) MPI_THREAD_MULTIPLE
 *
 * The exit code is 0 if all results are right.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <signal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

static int sum(MPI_Comm comm, int what)
{
    int mine, size, x, y = -1;

    MPI_Comm_rank(comm, &mine);
    MPI_Comm_size(comm, &size);
    x = mine + what;
    MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm);
    return y != size * (size - 1) / 2 + size * what;
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

static int grown(const char *where, int before)
{
    const int now = descriptors();

    if (now <= before)
        return 0;
    fprintf(stderr, "rank %d, %s: %d descriptors, %d before\n", rank, where, now,
            before);
    return 1;
}

/* Rank 0 frees, then sends the messages that the others receive before they free. */
static int free_apart(void)
{
    MPI_Comm one;
    int word = 0, wrong;

    MPI_Comm_dup(MPI_COMM_WORLD, &one);
    wrong = sum(one, 1);
    if (rank)
        MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_free(&one);
    for (int r = 1; rank == 0 && r < ranks; r++)
        MPI_Send(&word, 1, MPI_INT, r, 0, MPI_COMM_WORLD);
    return wrong;
}

static int order(void)
{
    enum { COMMS = 3, ROUNDS = 8, SLACK = 40 };
    MPI_Comm comm[COMMS];
    int wrong = 0, before = 0;

    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < COMMS; k++)
            MPI_Comm_dup(MPI_COMM_WORLD, &comm[k]);
        for (int k = 0; k < COMMS; k++)
            wrong += sum(comm[k], k + round);
        for (int k = 0; k < COMMS; k++)
            MPI_Comm_free(&comm[rank % 2 ? COMMS - 1 - k : k]);
        wrong += free_apart();
        if (round == 1)
            before = descriptors() + SLACK;
    }
    return wrong + grown("order", before);
}

static int pending(void)
{
    enum { ROUNDS = 16, SLACK = 40 };
    int wrong = 0, before = 0;

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm one;
        MPI_Request request[3];
        MPI_Datatype ends;
        int x = rank + round, y = -1, z[3] = {rank ? -1 : round, 7, rank ? -1 : round};
        MPI_Comm_dup(MPI_COMM_WORLD, &one);
        wrong += sum(one, round);
        if (rank && round % 4 == 3)
            usleep(5000);
        MPI_Iallreduce(&x, &y, 1, MPI_INT, MPI_SUM, one, &request[0]);
        MPI_Type_vector(2, 1, 2, MPI_INT, &ends);
        MPI_Type_commit(&ends);
        MPI_Ibcast(z, 1, ends, 0, one, &request[1]);
        MPI_Ibarrier(one, &request[2]);
        MPI_Type_free(&ends);
        MPI_Comm_free(&one);
        MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
        wrong += y != ranks * (ranks - 1) / 2 + ranks * round;
        wrong += z[0] != round || z[1] != 7 || z[2] != round;
        if (round == 2)
            before = descriptors() + SLACK;
    }
    return wrong + grown("pending", before);
}

static int released(void)
{
    for (int i = 0; i < 100; i++) {
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    return sum(MPI_COMM_WORLD, 1);
}

/* ---- attributes ------------------------------------------------------------------ */

static int deleted, copied;

/* MPI calls it in MPI_Comm_free: the communicator is still one. */
static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    int *wrong = extra;

    (void)keyval, (void)value;
    deleted++;
    MPI_Barrier(comm);
    *wrong += sum(comm, deleted);
    return MPI_SUCCESS;
}

/* The next communicators have the handle of one that used its handle to the last. */
static int delete_attributes(void)
{
    enum { ROUNDS = 16 };
    int key, wrong = 0;

    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, on_delete, &key, &wrong);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm part, again;
        MPI_Comm_split(MPI_COMM_WORLD, round % 3 ? rank % 2 : 0, rank, &part);
        if (round % 2)
            MPI_Comm_set_attr(part, key, NULL);
        wrong += sum(part, round);
        if (round % 2 == 0)
            MPI_Comm_set_attr(part, key, NULL);
        MPI_Comm_dup(part, &again);
        wrong += sum(again, round);
        MPI_Comm_free(&part);
        wrong += sum(again, round);
        if (round % 4)
            MPI_Comm_free(&again);
        else
            MPI_Comm_disconnect(&again);
    }
    MPI_Comm_free_keyval(&key);
    return wrong + (deleted != 2 * ROUNDS);
}

static int on_copy(MPI_Datatype type, int keyval, void *extra, void *in, void *out,
                   int *flag)
{
    (void)type, (void)keyval, (void)extra, (void)in, (void)out;
    copied++;
    *flag = 0;
    return MPI_ERR_OTHER;
}

/* Nobody but the program makes duplicates of its datatypes. */
static int type_attributes(void)
{
    int key, wrong = 0;

    MPI_Type_create_keyval(on_copy, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    for (int round = 0; round < 8; round++) {
        int x[3] = {rank ? -1 : round, 7, rank ? -1 : round};
        MPI_Request request;
        MPI_Datatype ends;
        MPI_Type_vector(2, 1, 2, MPI_INT, &ends);
        MPI_Type_commit(&ends);
        MPI_Type_set_attr(ends, key, NULL);
        MPI_Ibcast(x, 1, ends, 0, MPI_COMM_WORLD, &request);
        MPI_Type_free(&ends);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += x[0] != round || x[1] != 7 || x[2] != round;
    }
    MPI_Type_free_keyval(&key);
    return wrong + copied;
}

static int attributes(void)
{
    return delete_attributes() + type_attributes();
}

/* ---- completion ------------------------------------------------------------------ */

enum { SUM, SENT, RECEIVED, IDLE, NONE, KINDS };

struct list {
    MPI_Request request[KINDS];
    int x, y; /* of the sum */
    double *out, *in; /* of messages that go only while both ends make progress */
};

enum { LONG = 1 << 18 };

/* Start a sum, a long message to the next rank and from the previous one, an inactive
 * persistent request, and MPI_REQUEST_NULL. */
static void begin(struct list *l, int turn)
{
    const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;

    l->x = rank + turn;
    l->y = -1;
    l->out[LONG - 1] = rank + turn;
    MPI_Iallreduce(&l->x, &l->y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &l->request[SUM]);
    MPI_Isend(l->out, LONG, MPI_DOUBLE, next, turn, MPI_COMM_WORLD, &l->request[SENT]);
    MPI_Irecv(l->in, LONG, MPI_DOUBLE, last, turn, MPI_COMM_WORLD,
              &l->request[RECEIVED]);
    l->request[NONE] = MPI_REQUEST_NULL;
}

static int check(struct list *l, int turn)
{
    const int last = (rank + ranks - 1) % ranks;
    const int wrong = l->y != ranks * (ranks - 1) / 2 + ranks * turn ||
                      l->in[LONG - 1] != last + turn;

    if (wrong)
        fprintf(stderr, "rank %d, turn %d: sum %d, message %g\n", rank, turn, l->y,
                l->in[LONG - 1]);
    return wrong;
}

static void complete(struct list *l, int turn)
{
    enum { FORMS = 9 };
    MPI_Status status[KINDS];
    int done = 0, at[KINDS], some, left = 3;

    switch (turn % FORMS) {
    case 0:
        MPI_Waitall(KINDS, l->request, status);
        break;
    case 1:
        for (int k = 0; k < KINDS; k++)
            MPI_Wait(&l->request[k], &status[k]);
        break;
    case 2:
        while (left--)
            MPI_Waitany(KINDS, l->request, &some, status);
        MPI_Waitany(KINDS, l->request, &some, status);
        if (some != MPI_UNDEFINED)
            MPI_Abort(MPI_COMM_WORLD, 4);
        break;
    case 3:
        for (; left; left -= some)
            MPI_Waitsome(KINDS, l->request, &some, at, status);
        break;
    case 4:
        for (int k = 0; k < KINDS; k++)
            for (done = 0; !done;)
                MPI_Test(&l->request[k], &done, status);
        break;
    case 5:
        while (!done)
            MPI_Testall(KINDS, l->request, &done, status);
        break;
    case 6:
        while (!done || some != MPI_UNDEFINED)
            MPI_Testany(KINDS, l->request, &some, &done, status);
        break;
    case 7:
        for (; left; left -= some)
            MPI_Testsome(KINDS, l->request, &some, at, status);
        break;
    case 8:
        for (int k = 0; k < NONE; k++)
            for (done = 0; !done;)
                MPI_Request_get_status(l->request[k], &done, status);
        MPI_Waitall(KINDS, l->request, MPI_STATUSES_IGNORE);
        break;
    }
}

static int completion(void)
{
    struct list l = {.out = calloc(LONG, sizeof(double)),
                     .in = calloc(LONG, sizeof(double))};
    double idle;
    int wrong = 0;

    MPI_Recv_init(&idle, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 9999, MPI_COMM_WORLD,
                  &l.request[IDLE]);
    for (int turn = 0; turn < 18; turn++) {
        begin(&l, turn);
        complete(&l, turn);
        wrong += check(&l, turn);
    }
    MPI_Request_free(&l.request[IDLE]);
    free(l.out);
    free(l.in);
    return wrong;
}

/* ---- late ranks ------------------------------------------------------------------ */

static int late(void)
{
    MPI_Request request;

    if (rank == 0)
        usleep(500000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank)
        usleep(500000);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (rank == 0)
        usleep(500000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return sum(MPI_COMM_WORLD, 2);
}

/* ---- the end --------------------------------------------------------------------- */

static int is_ending;

static void last_calls(void)
{
    MPI_Request request;
    MPI_Comm last;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup(MPI_COMM_WORLD, &last);
    if (sum(MPI_COMM_WORLD, 4) || sum(last, 5) || sum(MPI_COMM_SELF, 6))
        MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Comm_free(&last);
}

static int on_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    last_calls();
    return MPI_SUCCESS;
}

static int ending(void)
{
    int key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &key, NULL);
    if (rank == 0)
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    is_ending = 1;
    return 0;
}

static int stopped(void)
{
    if (rank == 1) {
        const pid_t self = getpid();
        if (fork() == 0) {
            usleep(5000000);
            kill(self, SIGCONT);
            _exit(0);
        }
        raise(SIGSTOP);
    }
    return sum(MPI_COMM_WORLD, 3);
}

/* The children run without the module where the launcher does not pass LD_PRELOAD. */
static int spawned(const char *program)
{
    char name[] = "spawned", *const args[] = {name, NULL};
    MPI_Comm parent, inter, all;
    int wrong = 0;

    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(program, (char **)args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                       &inter, MPI_ERRCODES_IGNORE);
    else
        inter = parent;
    MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all);
    for (int i = 0; i < 3; i++) {
        MPI_Comm part;
        wrong += sum(all, i);
        MPI_Comm_split(all, i % 2, 0, &part);
        wrong += sum(part, i);
        MPI_Comm_free(&part);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&inter);
    return wrong;
}

static int run(const char *name, const char *program)
{
    if (!strcmp(name, "order"))
        return order();
    if (!strcmp(name, "pending"))
        return pending();
    if (!strcmp(name, "released"))
        return released();
    if (!strcmp(name, "attributes"))
        return attributes();
    if (!strcmp(name, "completion"))
        return completion();
    if (!strcmp(name, "late"))
        return late();
    if (!strcmp(name, "ending"))
        return ending();
    if (!strcmp(name, "stopped"))
        return stopped();
    if (!strcmp(name, "spawned"))
        return spawned(program);
    return strcmp(name, "multiple") != 0;
}

int main(int argc, char **argv)
{
    int level = MPI_THREAD_SINGLE, wrong = 0, total = 0;

    for (int i = 1; i < argc; i++)
        level = strcmp(argv[i], "multiple") ? level : MPI_THREAD_MULTIPLE;
    MPI_Init_thread(&argc, &argv, level, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    wrong += sum(MPI_COMM_WORLD, 0);
    for (int i = 1; i < argc; i++) {
        const int failed = run(argv[i], argv[0]);
        if (failed)
            fprintf(stderr, "rank %d: %s: wrong %d\n", rank, argv[i], failed);
        wrong += failed;
    }
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %d\n", total);
    if (is_ending && rank)
        last_calls();
    MPI_Finalize();
    return total != 0;
}
