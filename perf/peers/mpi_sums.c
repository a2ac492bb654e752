/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_sums [-l LABEL] [-s BYTES,…] [-n SAMPLES] [-t SECONDS] [-w CALLS] - time sums of
 * doubles with MPI_Allreduce, in place and out of place.
 *
 * This MPI program does not use the library's API: bench/mpi.sh runs it plain and with
 * trib-mpi. A sample is a batch of as many calls as fit SECONDS, after a barrier,
 * divided by its calls, on the slowest rank. First the sum is checked, and CALLS calls
 * warm up both sides, an eighth of them for 512 KiB and more.
 *
 * Rank 0 prints "LABEL,ranks,place,bytes,µs" per size: the median of its samples.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES_MOST = 99, LONG = 512 << 10 };

struct arguments {
    const char *label, *sizes;
    int samples, settle;
    double seconds;
};

struct buffers {
    const void *send; /* MPI_IN_PLACE, or the input */
    double *input, *recv;
    int count;
};

static int rank, ranks;

static int parse(int argc, char **argv, struct arguments *a)
{
    int option;

    *a = (struct arguments){"mpi", "8,64,4096,32768,262144,2097152,16777216", 5, 120,
                            0.02};
    while ((option = getopt(argc, argv, "l:s:n:t:w:")) != -1) {
        switch (option) {
        case 'l':
            a->label = optarg;
            break;
        case 's':
            a->sizes = optarg;
            break;
        case 'n':
            a->samples = atoi(optarg);
            break;
        case 't':
            a->seconds = atof(optarg);
            break;
        case 'w':
            a->settle = atoi(optarg);
            break;
        default:
            return 0;
        }
    }
    return a->samples > 0 && a->samples <= SAMPLES_MOST;
}

static void sum(const struct buffers *b)
{
    MPI_Allreduce(b->send, b->recv, b->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static int is_right(const struct buffers *b)
{
    for (int i = 0; i < b->count; i++)
        b->input[i] = rank + 1 + i % 7;
    sum(b);
    for (int i = 0; i < b->count; i++)
        if (b->recv[i] != ranks * (ranks + 1) / 2 + (double)ranks * (i % 7))
            return 0;
    memset(b->input, 0, (size_t)b->count * sizeof(double)); /* sums of zeros stay
                                                             * finite */
    memset(b->recv, 0, (size_t)b->count * sizeof(double));
    return 1;
}

/* Return the seconds of one call on the slowest rank. */
static double sample(const struct buffers *b, long batch)
{
    double seconds, most;

    MPI_Barrier(MPI_COMM_WORLD);
    const double since = MPI_Wtime();
    for (long i = 0; i < batch; i++)
        sum(b);
    seconds = MPI_Wtime() - since;
    MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most / (double)batch;
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static int measure(const struct arguments *a, const struct buffers *b,
                   const char *place)
{
    const size_t bytes = (size_t)b->count * sizeof(double);
    const int settle = bytes < LONG ? a->settle : a->settle / 8;
    double us[SAMPLES_MOST];

    if (!is_right(b)) {
        fprintf(stderr, "rank %d: a sum of %zu bytes is wrong\n", rank, bytes);
        return 0;
    }
    for (int i = 0; i < settle; i++)
        sum(b);
    const double once = sample(b, bytes < LONG ? 4 : 1);
    const double fit = a->seconds / (once > 0 ? once : 1e-9);
    const long batch = fit < 1 ? 1 : fit > 1e6 ? 1000000 : (long)fit;
    for (int i = 0; i < a->samples; i++)
        us[i] = 1e6 * sample(b, batch);
    qsort(us, (size_t)a->samples, sizeof(*us), by_value);
    if (rank == 0)
        printf("%s,%d,%s,%zu,%.4f\n", a->label, ranks, place, bytes,
               us[a->samples / 2]);
    fflush(stdout);
    return 1;
}

static int both_places(const struct arguments *a, size_t bytes)
{
    double *x = malloc(bytes), *y = malloc(bytes);
    const int count = (int)(bytes / sizeof(double));
    const struct buffers in = {MPI_IN_PLACE, y, y, count}, out = {x, x, y, count};
    const int right = x && y && measure(a, &in, "in") && measure(a, &out, "out");

    free(x);
    free(y);
    return right;
}

int main(int argc, char **argv)
{
    struct arguments a;
    int right;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    right = parse(argc, argv, &a);
    if (!right && rank == 0)
        fprintf(stderr,
                "usage: mpi_sums [-l LABEL] [-s BYTES,…] [-n SAMPLES] [-t SECONDS] "
                "[-w CALLS]\n");
    for (const char *at = right ? a.sizes : ""; *at && right;) {
        char *end;
        const size_t bytes = strtoull(at, &end, 10);
        right = end > at && bytes >= sizeof(double) && both_places(&a, bytes);
        at = end + (*end == ',');
    }
    if (!right)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
