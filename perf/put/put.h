/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf put: one-sided writes between two processes, over any transport.
 *
 *     put.c        the two forms: both sides here, or one on each of two hosts
 *     putargs.c    command line -> struct put_args
 *     wire.[ch]    the stream on which the sides agree on what comes next
 *     meet.c       listen, connect, who is there, strangers
 *     endpoint.[ch] one side: its transport, its memory, the events of a phase
 *     phases.c     ping-pong, stream, verification: the same code on both sides
 *     putsweep.c   the client's sizes -> struct put_result; the server's answers
 *     putreport.c  table, csv, json
 *
 * The client takes the samples and governs: the server does what it is told, phase by
 * phase. Peer 0 of the transport is the client, peer 1 the server.
 */
#ifndef PERF_PUT_PUT_H
#define PERF_PUT_PUT_H

#include "tools/launch.h"
#include "perf/perf.h"
#include "perf/put/endpoint.h"

/* The finished command line. Texts point into argv. */
struct put_args {
    int argc;
    char **argv;
    const char *listen; /* [HOST:]PORT: be the server of another host; else NULL */
    const char *remote; /* HOST:PORT of that server; NULL: both sides are here */
    const char *transport; /* NULL: the configuration's */
    struct perf_sizes sizes;
    long iters; /* samples a size; 0: as many as fit half a second */
    int depth; /* writes under way at once while bandwidth is measured */
    bool bidirectional;
    bool latency;
    bool bandwidth;
    bool check;
    enum tool_bind bind;
    const char *csv; /* file or "-" */
    const char *json;
};

/* --- putargs.c --- */

extern const struct tool_command put_command;

/** put_args_parse - as perf_args_parse; argv[1] is "put". */
int put_args_parse(int argc, char **argv, FILE *err, struct put_args *args_out);
void put_args_free(struct put_args *args);

/* --- meet.c --- */

/** put_listen_text - "PORT" or "HOST:PORT"; false: neither. */
bool put_listen_text(const char *text, struct trib_tcp_root *out);

/**
 * put_meet_client - connect to where a server listens, and know its version.
 *
 * Tries again until boot_timeout_ms has passed: either side may be started first.
 * errors   TRIB_ERR_BOOT nobody there, or a stranger; TRIB_ERR_MISMATCH its version
 */
trib_status_t put_meet_client(struct put_endpoint *endpoint,
                              const struct trib_tcp_root *where);

/**
 * put_meet_server - listen until a client of this version has come.
 *
 * Strangers are told of on standard error and left.
 * errors   TRIB_ERR_BOOT: cannot listen, or nobody came within boot_timeout_ms
 */
trib_status_t put_meet_server(struct put_endpoint *endpoint,
                              const struct trib_tcp_root *where);

/* --- phases.c --- */

/**
 * put_pingpong - n writes there, each answered by one back.
 *
 * seconds  [n] of the client: half of each round trip; NULL on the server
 */
trib_status_t put_pingpong(struct put_endpoint *endpoint, uint64_t n, double *seconds);

/**
 * put_stream - n writes one way, or n each way, `depth` under way.
 *
 * took_out seconds on the client: from its first write until it knows that all n have
 *          arrived, and has all n of the other side
 */
trib_status_t put_stream(struct put_endpoint *endpoint, uint64_t n, double *took_out);

/**
 * put_verify - rounds of writes both ways, each with bytes of its own.
 *
 * Counts bytes that are not what they must be, in the target and behind it, in
 * side->wrong.
 */
trib_status_t put_verify(struct put_endpoint *endpoint, uint64_t rounds);

/* --- putsweep.c --- */

struct put_result {
    size_t bytes;
    struct perf_summary us; /* one way; n == 0: not measured */
    uint64_t writes; /* one way, of the bandwidth; 0: not measured */
    double GBps; /* both directions together */
    double messages_per_s;
    double cpu_s_per_GB; /* of both sides; NAN: nothing was moved */
    double wrong; /* bytes, on both sides; NAN: not checked */
};

/** put_measure - all of one size, on the client. */
trib_status_t put_measure(struct put_endpoint *endpoint, const struct put_args *args,
                          size_t bytes, struct perf_progress *progress,
                          struct put_result *out);

/** put_serve - do what the client says, until it ends or an error. */
trib_status_t put_serve(struct put_endpoint *endpoint);

/* --- putreport.c --- */

struct put_report;

/** put_report_open - as perf_writer_open; side is connected. */
struct put_report *put_report_open(const struct put_args *args,
                                   const struct put_endpoint *endpoint, char *why,
                                   size_t why_bytes);
void put_report_add(struct put_report *r, const struct put_result *result);
/** put_report_finish - false: why[] has the sentence. */
bool put_report_finish(struct put_report *r, char *why, size_t why_bytes);
void put_report_free(struct put_report *r); /* NULL is allowed */

/* --- put.c --- */

/** put_main - `trib-perf put …`: the exit code. */
int put_main(int argc, char **argv);

#endif
