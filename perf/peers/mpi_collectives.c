/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time an MPI collective on float32; see timing.h. A size is the size of the longest
 * buffer, and the root is rank 0. Without -x it is all-reduce; the others need separate
 * buffers (-o).
 *
 *     mpicc.mpich -O2 -I. perf/peers/mpi_collectives.c -o mpi_collectives.mpich
 *     mpirun.mpich -np 2 ./mpi_collectives.mpich -l mpich
 *     mpirun.mpich -np 2 ./mpi_collectives.mpich -l mpich -o -x alltoall
 */
#include <mpi.h>

#include "perf/peers/timing.h"

struct collective {
    const char *name;
    void (*run)(const float *send, float *recv, int n, int block);
    int (*want)(const struct peer *p, size_t i, size_t count); /* as in timing.h */
};

static void mpi_barrier(void *state)
{
    (void)state;
    MPI_Barrier(MPI_COMM_WORLD);
}

static double mpi_most(void *state, double value)
{
    double most;
    (void)state;
    MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

/* Return element i of a rank's input, as timing.h fills it. */
static int given(int rank, size_t i)
{
    return rank + 1 + (int)(i % 7);
}

/* Return element i of the sum over the first `ranks` ranks. */
static int summed(int ranks, size_t i)
{
    return ranks * (ranks + 1) / 2 + ranks * (int)(i % 7);
}

static void allreduce(const float *send, float *recv, int n, int block)
{
    (void)block;
    MPI_Allreduce(send == NULL ? MPI_IN_PLACE : send, recv, n, MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
}

static void gather(const float *send, float *recv, int n, int block)
{
    (void)n;
    MPI_Gather(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static void allgather(const float *send, float *recv, int n, int block)
{
    (void)n;
    MPI_Allgather(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
}

static int want_allgather(const struct peer *p, size_t i, size_t count)
{
    const size_t block = count / (size_t)p->ranks;
    return given((int)(i / block), i % block);
}

static int want_gather(const struct peer *p, size_t i, size_t count)
{
    return p->rank == 0 ? want_allgather(p, i, count) : PEER_ANY;
}

static void scatter(const float *send, float *recv, int n, int block)
{
    (void)n;
    MPI_Scatter(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static int want_scatter(const struct peer *p, size_t i, size_t count)
{
    const size_t block = count / (size_t)p->ranks;
    return i < block ? given(0, (size_t)p->rank * block + i) : PEER_ANY;
}

static void reduce_scatter(const float *send, float *recv, int n, int block)
{
    (void)n;
    MPI_Reduce_scatter_block(send, recv, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int want_reduce_scatter(const struct peer *p, size_t i, size_t count)
{
    const size_t block = count / (size_t)p->ranks;
    return i < block ? summed(p->ranks, (size_t)p->rank * block + i) : PEER_ANY;
}

static void alltoall(const float *send, float *recv, int n, int block)
{
    (void)n;
    MPI_Alltoall(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
}

static int want_alltoall(const struct peer *p, size_t i, size_t count)
{
    const size_t block = count / (size_t)p->ranks;
    return given((int)(i / block), (size_t)p->rank * block + i % block);
}

static void scan(const float *send, float *recv, int n, int block)
{
    (void)block;
    MPI_Scan(send, recv, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int want_scan(const struct peer *p, size_t i, size_t count)
{
    (void)count;
    return summed(p->rank + 1, i);
}

static void exscan(const float *send, float *recv, int n, int block)
{
    (void)block;
    MPI_Exscan(send, recv, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int want_exscan(const struct peer *p, size_t i, size_t count)
{
    (void)count;
    return p->rank > 0 ? summed(p->rank, i) : PEER_ANY;
}

static void sendrecv(const float *send, float *recv, int n, int block)
{
    int rank, ranks;
    (void)block;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Sendrecv(send, n, MPI_FLOAT, (rank + 1) % ranks, 0, recv, n, MPI_FLOAT,
                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int want_sendrecv(const struct peer *p, size_t i, size_t count)
{
    (void)count;
    return given((p->rank + p->ranks - 1) % p->ranks, i);
}

static const struct collective collectives[] = {
    {"allreduce", allreduce, NULL},
    {"allgather", allgather, want_allgather},
    {"reduce-scatter", reduce_scatter, want_reduce_scatter},
    {"gather", gather, want_gather},
    {"scatter", scatter, want_scatter},
    {"alltoall", alltoall, want_alltoall},
    {"scan", scan, want_scan},
    {"exscan", exscan, want_exscan},
    {"sendrecv", sendrecv, want_sendrecv},
};

struct chosen {
    const struct collective *collective;
    int ranks;
};

static void run(void *state, const float *send, float *recv, size_t count)
{
    const struct chosen *c = state;
    c->collective->run(send, recv, (int)count, (int)count / c->ranks);
}

int main(int argc, char **argv)
{
    struct chosen chosen = {NULL, 0};
    struct peer peer = {0, 0, &chosen, run, mpi_barrier, mpi_most, NULL};
    struct peer_args args;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &peer.ranks);
    chosen.ranks = peer.ranks;
    int code = peer_args_parse(argc, argv, &args);
    const char *name = code == 0 && *args.extra ? args.extra : "allreduce";
    for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]); i++)
        if (code == 0 && strcmp(collectives[i].name, name) == 0)
            chosen.collective = &collectives[i];
    if (code == 0 && (!chosen.collective ||
                      (chosen.collective != collectives && !args.out_of_place))) {
        fprintf(stderr,
                "%s: no -x for allreduce, else -o and -x with a collective: "
                "allgather, reduce-scatter, gather, scatter, alltoall, scan, exscan "
                "or sendrecv\n",
                argv[0]);
        code = 2;
    }
    if (code == 0) {
        peer.want = chosen.collective->want;
        code = peer_sweep(&peer, &args);
    }
    if (code != 0)
        MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Finalize();
    return 0;
}
