/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * long_counts [all] - a broadcast of more than 2^31 elements with an MPI that has
 * functions for such counts; all: a reduction, too.
 *
 * The vector is one window of memory that is mapped repeatedly: it takes 16 MiB. Each
 * window has the same content, and "or" may be applied to it twice.
 *
 * Prints "wrong N" on rank 0; the exit code is 1 if N is not 0.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t window = (size_t)16 << 20;
static const size_t count = ((size_t)1 << 31) + 17;

static int rank;

static uint8_t *long_memory(void)
{
    const size_t room = (count / window + 1) * window;
    const int fd = memfd_create("window", 0);
    uint8_t *at = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (fd < 0 || at == MAP_FAILED || ftruncate(fd, (off_t)window))
        return NULL;
    for (size_t i = 0; i < room; i += window)
        if (mmap(at + i, window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                 0) == MAP_FAILED)
            return NULL;
    close(fd);
    return at;
}

/* Elements of one window that are not `is`. */
static int others(const uint8_t *x, uint8_t is)
{
    int n = 0;

    for (size_t i = 0; i < window; i++)
        n += x[i] != is;
    return n;
}

int main(int argc, char **argv)
{
    int wrong = 0, total = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#if MPI_VERSION >= 4
    uint8_t *x = long_memory();
    if (!x)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(x, rank ? 0 : 4, window);
    MPI_Bcast_c(x, (MPI_Count)count, MPI_BYTE, 0, MPI_COMM_WORLD);
    wrong += others(x, 4);
    for (int i = 1; i < argc; i++) {
        memset(x, 1 << rank, window);
        MPI_Allreduce_c(MPI_IN_PLACE, x, (MPI_Count)count, MPI_BYTE, MPI_BOR,
                        MPI_COMM_WORLD);
        wrong += others(x, 3);
    }
#else
    (void)long_memory, (void)others;
#endif
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %d\n", total);
    MPI_Finalize();
    return total != 0;
}
