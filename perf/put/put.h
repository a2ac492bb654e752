/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf put: one-sided writes between two processes, over any transport.
 *
 *     put.c         both sides on this host, or one on each of two hosts
 *     putargs.c     command line -> struct put_args
 *     wire.[ch]     control stream on which the sides agree on the next phase
 *     meet.c        listen, connect, check the version
 *     endpoint.[ch] one side: its transport, its memory, the events of a phase
 *     phases.c      ping-pong, stream, verification: the same code on both sides
 *     putsweep.c    client: sizes -> struct put_result; server: answers
 *     putreport.c   table, csv, json
 *
 * The client takes the samples and starts each phase on the server. In the transport,
 * the client is peer 0 and the server is peer 1.
 */
#ifndef PERF_PUT_PUT_H
#define PERF_PUT_PUT_H

#include "perf/common/columns.h"
#include "perf/common/progress.h"
#include "perf/common/samples.h"
#include "perf/common/sizes.h"
#include "perf/put/endpoint.h"
#include "tools/common/launch.h"
#include "tools/common/options.h"

/* The parsed command line. Strings point into argv. */
struct put_args {
    int argc;
    char **argv;
    const char *listen; /* [HOST:]PORT: run as the server; else NULL */
    const char *remote; /* HOST:PORT of the server; NULL: both sides are here */
    const char *transport; /* NULL: from the configuration */
    struct perf_sizes sizes;
    long iters; /* samples per size; 0: as many as fit half a second */
    int depth; /* outstanding writes while measuring bandwidth */
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
int put_args_parse(int argc, char **argv, FILE *err, struct put_args *args);
void put_args_free(struct put_args *args);

/* --- meet.c --- */

/** put_listen_text - parse "PORT" or "HOST:PORT". Return false if it is neither. */
bool put_listen_text(const char *text, struct trib_tcp_root *out);

/**
 * put_meet_client - connect to a server and check its version.
 *
 * Retries until boot_timeout_ms has passed, so that either side may be started first.
 * errors   TRIB_ERR_BOOT: no server, or another program; TRIB_ERR_MISMATCH: its version
 */
trib_status_t put_meet_client(struct put_endpoint *endpoint,
                              const struct trib_tcp_root *where);

/**
 * put_meet_server - listen until a client of this version connects.
 *
 * Other connections are reported on stderr and closed.
 * errors   TRIB_ERR_BOOT: cannot listen, or no client within boot_timeout_ms
 */
trib_status_t put_meet_server(struct put_endpoint *endpoint,
                              const struct trib_tcp_root *where);

/* --- phases.c --- */

/**
 * put_pingpong - send n writes, each answered by one.
 *
 * seconds  [n] on the client: half of each round trip; NULL on the server
 */
trib_status_t put_pingpong(struct put_endpoint *endpoint, uint64_t n, double *seconds);

/**
 * put_stream - send n writes one way, or n in each direction, `depth` outstanding.
 *
 * took_out seconds on the client: from its first write until it knows that all n have
 *          arrived and it has received all n of the other side
 */
trib_status_t put_stream(struct put_endpoint *endpoint, uint64_t n, double *took_out);

/**
 * put_verify - send rounds of writes in both directions, each with different contents.
 *
 * Counts wrong bytes in the target and in the guards after it, in endpoint->wrong.
 */
trib_status_t put_verify(struct put_endpoint *endpoint, uint64_t rounds);

/* --- putsweep.c --- */

struct put_result {
    size_t bytes;
    struct perf_summary us; /* one way; n == 0: not measured */
    uint64_t writes; /* in one direction, for bandwidth; 0: not measured */
    double GBps; /* both directions together */
    double messages_per_s;
    double cpu_s_per_GB; /* of both sides; NAN: no data */
    double wrong; /* wrong bytes on both sides; NAN: not checked */
};

/** put_measure - measure one size, on the client. */
trib_status_t put_measure(struct put_endpoint *endpoint, const struct put_args *args,
                          size_t bytes, struct perf_progress *progress,
                          struct put_result *out);

/** put_serve - run the phases that the client requests, until it ends or an error. */
trib_status_t put_serve(struct put_endpoint *endpoint);

/* --- putreport.c --- */

struct put_report {
    const struct put_args *args;
    const struct put_endpoint *endpoint; /* connected */
    struct trib_route route;
    struct perf_columns columns;
    struct perf_output out; /* the caller frees it */
};

/** put_report_open - open the outputs of args and write their heads. false: why[] has
 * the message. */
bool put_report_open(struct put_report *r, char *why, size_t why_bytes);
void put_report_add(struct put_report *r, const struct put_result *result);
/** put_report_finish - false: why[] has the message. */
bool put_report_finish(struct put_report *r, char *why, size_t why_bytes);

/* --- put.c --- */

/** put_main - run `trib-perf put …`. Return the exit code. */
int put_main(int argc, char **argv);

#endif
