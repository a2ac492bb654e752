/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bounds - estimate what limits an all-reduce on fast links, from rates of this host.
 *
 *     bounds [THREADS [PASSES]]     threads of a rank [all cores], passes [9]
 *
 * Sums and copies 16 MiB of float32 by the functions that plans use, in chunks, with 1,
 * 2, 4, … THREADS threads, and sends and receives as much by TCP over loopback with
 * one. Prints csv: what,chunk,threads,GBps. Rates are medians, in GB/s (1e9 bytes) of
 * the vector; the passes of all rows alternate.
 *
 * Then it prints a table. Two ranks sum S bytes: each sends S and receives S, sums S/2,
 * and copies 1.5 S if its memory is not from trib_alloc. The thread that sums also
 * copies, or sends and receives by TCP; a device moves RDMA data by itself. So
 *
 *     wire    S / rate of the link
 *     alloc   S/2 / sum
 *     malloc  S/2 / sum + 1.5 S / copy
 *     tcp     S/2 / sum + S / (send and receive)
 *
 * and the longest of wire and the thread's time bounds the sum.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/dtype.h"
#include "perf/common/samples.h"
#include "pipeline/payload/chunk_parts.h"
#include "pipeline/payload/payload_state.h"
#include "pipeline/payload/raw_sum.h"

enum {
    BYTES = 16 << 20,
    CHUNKS = 3,
    WINDOW = 8, /* slots of a peer, as by default */
    COUNTS_MOST = 7, /* 1, 2, 4, … 64 threads */
    PASSES_MOST = 1001,
};

static const size_t chunks[CHUNKS] = {64 << 10, 256 << 10, 1 << 20};

enum kind { SUM, COPY, TCP, KINDS };

static const char *const names[KINDS] = {"sum", "copy", "loopback"};

struct bench {
    uint8_t *x, *y;
    int counts;
    int threads[COUNTS_MOST];
    struct trib_config cfg[COUNTS_MOST];
    struct trib_error err;
    struct trib_engine engines[COUNTS_MOST];
    struct trib_run run;
    struct trib_payload_state payload;
    int sockets[2];
};

struct row {
    enum kind kind;
    int chunk;
    int count;
    double rates[PASSES_MOST];
    double rate;
};

static void die(const char *why)
{
    fprintf(stderr, "bounds: %s\n", why);
    exit(1);
}

/* Connect two sockets of this thread over loopback. */
static void connect_sockets(struct bench *b, size_t bytes)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    const int room = (int)bytes;
    const int door = socket(AF_INET, SOCK_STREAM, 0);

    b->sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (door < 0 || b->sockets[0] < 0 ||
        bind(door, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(door, 1) != 0 ||
        getsockname(door, (struct sockaddr *)&at, &len) != 0 ||
        setsockopt(b->sockets[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) != 0 ||
        connect(b->sockets[0], (struct sockaddr *)&at, sizeof(at)) != 0)
        die("cannot connect over loopback");
    b->sockets[1] = accept(door, NULL, NULL);
    if (b->sockets[1] < 0)
        die("cannot accept over loopback");
    close(door);
}

/* Send a chunk and receive it, in steps that fit the socket. */
static void through_tcp(const struct bench *b, size_t at, size_t bytes)
{
    size_t in = 0;

    for (size_t out = 0; in < bytes;) {
        const ssize_t sent = out == bytes ? 0
                                          : send(b->sockets[0], b->x + at + out,
                                                 bytes - out, MSG_DONTWAIT);
        out += sent > 0 ? (size_t)sent : 0;
        const ssize_t got =
            recv(b->sockets[1], b->y + at + in, bytes - in, MSG_DONTWAIT);
        if (got == 0)
            die("the loopback connection ended");
        in += got > 0 ? (size_t)got : 0;
    }
}

static void move(struct bench *b, const struct row *r, size_t at, size_t bytes)
{
    struct trib_engine *e = &b->engines[r->count];
    const uint8_t *slot = b->x + at % (WINDOW * bytes);
    const uint8_t *const sources[2] = {b->y + at, slot};
    struct trib_reduce_args args = {
        .n = bytes / sizeof(float), .dst = {b->y + at}, .n_dst = 1};

    if (r->kind == SUM)
        trib_raw_sum(e, &b->run, sources, 2, &args);
    else if (r->kind == COPY)
        trib_parts_copy(e, b->y + at, slot, bytes);
    else
        through_tcp(b, at, bytes);
}

static double pass(struct bench *b, const struct row *r)
{
    const double begin = perf_now();

    for (size_t at = 0; at < BYTES; at += chunks[r->chunk])
        move(b, r, at, chunks[r->chunk]);
    return BYTES * 1e-9 / (perf_now() - begin);
}

static void open_bench(struct bench *b, int threads)
{
    b->x = malloc(BYTES);
    b->y = malloc(BYTES);
    if (!b->x || !b->y)
        die("no memory for two vectors of 16 MiB");
    for (size_t i = 0; i < BYTES / sizeof(float); i++)
        ((float *)(void *)b->x)[i] = ((float *)(void *)b->y)[i] = 0.0f;
    b->run = (struct trib_run){.desc = {.op = {.dtype = TRIB_F32},
                                        .element = sizeof(float),
                                        .piece = BYTES / sizeof(float),
                                        .total = BYTES / sizeof(float)},
                               .payload = &b->payload};
    for (int n = 1; b->counts < COUNTS_MOST && n <= threads; n *= 2) {
        struct trib_engine *e = &b->engines[b->counts];
        b->cfg[b->counts] =
            (struct trib_config){.encode_threads = n - 1, .spin_us = 20};
        *e = (struct trib_engine){.cfg = &b->cfg[b->counts],
                                  .err = &b->err,
                                  .kernels = trib_kernels_get(NULL)};
        if (trib_parts_prepare(e, &b->run) != TRIB_OK)
            die(trib_error_text(&b->err));
        b->threads[b->counts++] = n;
    }
    connect_sockets(b, 4 << 20);
}

static double rate_of(const struct row *rows, size_t n, enum kind kind, int count)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].kind == kind && rows[i].chunk == 1 &&
            (rows[i].count == count || kind == TCP))
            return rows[i].rate;
    return 1;
}

/* Print the time of a sum and what bounds it: the link, or the larger part of the work
 * of one thread. */
static void print_bound(double wire_us, double sum_us, double more_us, const char *more)
{
    const double work_us = sum_us + more_us;

    if (wire_us >= work_us)
        printf(" %.0f (wire) |", wire_us);
    else
        printf(" %.0f (%s) |", work_us, more_us > sum_us ? more : "sum");
}

static void print_table(const struct bench *b, const struct row *rows, size_t n)
{
    static const int links[] = {25, 100, 200, 400};

    puts("\n| link, Gbit/s | threads | wire, us | `trib_alloc`, us | malloc, us "
         "| TCP, us |\n|--:|--:|--:|--:|--:|--:|");
    for (size_t l = 0; l < sizeof(links) / sizeof(links[0]); l++)
        for (int c = 0; c < b->counts; c++) {
            const double wire = BYTES / (links[l] * 125.0); /* bytes in a microsecond */
            const double sum = BYTES / 2e3 / rate_of(rows, n, SUM, c);
            const double copy = 1.5 * BYTES / 1e3 / rate_of(rows, n, COPY, c);
            const double tcp = BYTES / 1e3 / rate_of(rows, n, TCP, c);
            printf("| %d | %d | %.0f |", links[l], b->threads[c], wire);
            print_bound(wire, sum, 0, "");
            print_bound(wire, sum, copy, "copies");
            print_bound(wire, sum, tcp, "TCP");
            puts("");
        }
}

int main(int argc, char **argv)
{
    static struct bench b;
    static struct row rows[KINDS * CHUNKS * COUNTS_MOST];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = argc > 1 ? atoi(argv[1]) : (int)cores;
    const int passes = argc > 2 ? atoi(argv[2]) : 9;
    size_t n = 0;

    if (argc > 3 || threads < 1 || threads > 64 || passes < 1 || passes > PASSES_MOST)
        return fputs("usage: bounds [THREADS [PASSES]]\n", stderr), 2;
    open_bench(&b, threads);
    for (int k = 0; k < KINDS; k++)
        for (int c = 0; c < CHUNKS; c++)
            for (int t = 0; t < (k == TCP ? 1 : b.counts); t++)
                rows[n++] = (struct row){.kind = (enum kind)k, .chunk = c, .count = t};
    for (int p = -1; p < passes; p++) /* the first is not counted */
        for (size_t i = 0; i < n; i++)
            rows[i].rates[p < 0 ? 0 : p] = pass(&b, &rows[i]);
    puts("what,chunk,threads,GBps");
    for (size_t i = 0; i < n; i++) {
        struct perf_summary s;
        perf_summarise(rows[i].rates, (size_t)passes, &s);
        rows[i].rate = s.p50; /* print_table reads the rates of 256K */
        printf("%s,%zu,%d,%.2f\n", names[rows[i].kind], chunks[rows[i].chunk],
               b.threads[rows[i].count], s.p50);
    }
    print_table(&b, rows, n);
    return 0;
}
