/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * two_groups - collectives on an intercommunicator of the last rank and the others.
 * An array of counts has one entry per rank of the other group, and ends before a page
 * without access. Arguments that are not significant point to this page.
 *
 * It is an ordinary MPI program and does not use the library's API. Rank 0 prints
 * "wrong N"; the exit code is 1 if N is not 0.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TURNS = 3, RANKS_MOST = 8 };

static int rank, ranks, wrong;
static MPI_Comm inter;
static int alone; /* this rank's group has no other */
static int others; /* ranks of the other group */
static int root; /* of calls from or to the last rank */
static int *counts, *displs;
static int *nowhere; /* cannot be read */

static void check(int good, const char *what)
{
    if (!good && wrong++ < 20)
        fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
}

static int *before_a_hole(int n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);

    if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE))
        MPI_Abort(MPI_COMM_WORLD, 2);
    return (int *)(void *)(p + page) - n;
}

/* The rank of MPI_COMM_WORLD that has this rank in the other group. */
static int other(int i)
{
    return alone ? i : ranks - 1;
}

static void with_all(void)
{
    int mine = 100 + rank, all[RANKS_MOST], sent[RANKS_MOST];

    MPI_Allgatherv(&mine, 1, MPI_INT, all, counts, displs, MPI_INT, inter);
    for (int i = 0; i < others; i++) {
        check(all[i] == 100 + other(i), "MPI_Allgatherv");
        sent[i] = 100 * rank + other(i);
        all[i] = -1;
    }
    MPI_Alltoallv(sent, counts, displs, MPI_INT, all, counts, displs, MPI_INT, inter);
    for (int i = 0; i < others; i++)
        check(all[i] == 100 * other(i) + rank, "MPI_Alltoallv");
    MPI_Barrier(inter);
}

static void to_root(void)
{
    int mine = 100 + rank, all[RANKS_MOST] = {0}, sum = 0;

    if (alone) {
        MPI_Gatherv(nowhere, 1, MPI_INT, all, counts, displs, MPI_INT, root, inter);
        MPI_Gather(nowhere, 1, MPI_INT, all + others, 1, MPI_INT, root, inter);
    } else {
        MPI_Gatherv(&mine, 1, MPI_INT, nowhere, nowhere, nowhere, MPI_INT, root, inter);
        MPI_Gather(&mine, 1, MPI_INT, nowhere, -1, MPI_DATATYPE_NULL, root, inter);
    }
    for (int i = 0; alone && i < others; i++)
        check(all[i] == 100 + i && all[others + i] == 100 + i, "a gather");
    MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, root, inter);
    check(!alone || sum == others * 100 + others * (others - 1) / 2, "MPI_Reduce");
}

static void from_root(int turn)
{
    int mine = -1, all[RANKS_MOST], told = alone ? turn : -1;

    for (int i = 0; i < others; i++)
        all[i] = 100 * turn + i;
    if (alone)
        MPI_Scatterv(all, counts, displs, MPI_INT, nowhere, 1, MPI_INT, root, inter);
    else
        MPI_Scatterv(nowhere, nowhere, nowhere, MPI_INT, &mine, 1, MPI_INT, root,
                     inter);
    check(alone || mine == 100 * turn + rank, "MPI_Scatterv");
    if (alone)
        MPI_Scatter(all, 1, MPI_INT, nowhere, 1, MPI_INT, root, inter);
    else
        MPI_Scatter(nowhere, -1, MPI_DATATYPE_NULL, &mine, 1, MPI_INT, root, inter);
    check(alone || mine == 100 * turn + rank, "MPI_Scatter");
    MPI_Bcast(&told, 1, MPI_INT, root, inter);
    check(told == turn, "MPI_Bcast");
}

int main(int argc, char **argv)
{
    MPI_Comm group;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    alone = rank == ranks - 1;
    MPI_Comm_split(MPI_COMM_WORLD, alone, 0, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, alone ? 0 : ranks - 1, 1, &inter);
    MPI_Comm_remote_size(inter, &others);
    root = alone ? MPI_ROOT : 0;
    counts = before_a_hole(others);
    displs = before_a_hole(others);
    nowhere = counts + others;
    for (int i = 0; i < others; i++) {
        counts[i] = 1;
        displs[i] = i;
    }
    for (int turn = 0; turn < TURNS; turn++) {
        with_all();
        to_root();
        from_root(turn);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %d\n", wrong);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&group);
    MPI_Finalize();
    return wrong != 0;
}
