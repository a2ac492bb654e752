/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internal interfaces of trib-run: options (run_options.c), ranks (run_ranks.c), their
 * output (run_output.c) and their state (run_state.c).
 */
#ifndef TOOLS_RUN_RUN_PARTS_H
#define TOOLS_RUN_RUN_PARTS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <tributary.h>

#include "tools/common/bind.h"

/* Exit codes of trib-run itself; 126, 127 and 141 follow the shells. */
enum {
    RUN_EXIT_USAGE = 2,
    RUN_EXIT_TIMEOUT = 124,
    RUN_EXIT_SELF = 125,
    RUN_EXIT_CANNOT_EXECUTE = 126,
    RUN_EXIT_NOT_FOUND = 127,
    RUN_EXIT_PIPE = 141, /* 128 + SIGPIPE: standard output was closed by its reader */
};

#define RUN_RANKS_MAX 4096
#define RUN_KEY_TEXT 65 /* 32 bytes in hexadecimal digits, plus the NUL */

struct run_options {
    int ranks;
    bool prefix; /* "[2] " before each line */
    bool tagged; /* the user gave --prefix or --tag */
    enum tool_bind bind;
    double timeout_s; /* 0: none */
    double grace_s; /* time for the other ranks to exit after a failure */
    const char *output_dir; /* NULL: this terminal */
    const char *root; /* NULL: a local rendezvous on this host */
    const char *trace; /* file for a trace of all ranks; NULL: none */
    char **program; /* with its arguments; NULL-terminated */
};

/** run_parse_options - parse the command line; return -1 to continue, else the exit
 * code. */
int run_parse_options(int argc, char **argv, struct run_options *o);

/** run_say - print a message of trib-run itself to standard error. */
void run_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Output ----------------------------------------------------------------------- */

/* Standard output or error of trib-run; written only when it accepts data. */
struct run_sink {
    int fd;
    char *text;
    size_t len;
    size_t cap;
    int broken; /* errno of the failed write; later lines are dropped; 0: no failure */
};

/* One of a rank's two output pipes; complete lines go to the sink. */
struct run_stream {
    int fd; /* -1: closed */
    struct run_sink *sink;
    char prefix[16];
    char *text; /* incomplete line */
    size_t len;
    size_t cap;
};

/** run_stream_wants - return true if the pipe is open and the sink is not full. */
bool run_stream_wants(const struct run_stream *stream);

/** run_stream_read - read available data; close the pipe at its end. Return false if
 * out of memory. */
bool run_stream_read(struct run_stream *stream);

/** run_stream_close - forward a last incomplete line and free everything. */
void run_stream_close(struct run_stream *stream);

/** run_sink_write - write as much as the sink accepts without blocking; sets
 * sink->broken. */
void run_sink_write(struct run_sink *sink);

/* Ranks ------------------------------------------------------------------------ */

struct run_rank {
    pid_t pid;
    bool ended;
    int status; /* of waitpid */
    struct run_stream streams[2]; /* standard output and error; fd -1 with --output */
};

struct run_job {
    const struct run_options *options;
    struct run_rank *ranks;
    int started;
    struct run_sink sinks[2];
    trib_local_t *local;
    char key[RUN_KEY_TEXT]; /* the job's key: TRIB_KEY of the ranks */
    struct rlimit files; /* open-file limit to set in the ranks */
    int stdin_fd; /* pipe that carries terminal input to rank 0; or -1 */
    pid_t keeper;
};

/**
 * run_start - start all ranks.
 *
 * returns  0, or the exit code of trib-run after an error message; job->started ranks
 *          may be alive even then
 */
int run_start(struct run_job *job);

/** run_kill - send a signal to all live ranks and the processes that they started. */
void run_kill(const struct run_job *job, int signal);

/**
 * run_close_streams - close all ranks' pipes to a sink. A later write gets SIGPIPE, as
 * without trib-run.
 */
void run_close_streams(struct run_job *job, const struct run_sink *sink);

/** run_show_state - print a table of each rank's state to standard error. */
void run_show_state(const struct run_job *job);

/** run_pass_caught - like run_kill, but only for ranks with a handler for the signal:
 * it would terminate the others. */
void run_pass_caught(const struct run_job *job, int signal);

/** run_finish - free everything after all ranks have ended. */
void run_finish(struct run_job *job);

#endif
