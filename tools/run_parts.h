/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of trib-run: options (run_options.c), ranks (run_ranks.c), their output
 * (run_output.c) and what they do (run_state.c).
 */
#ifndef TOOLS_RUN_PARTS_H
#define TOOLS_RUN_PARTS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <tributary.h>

#include "tools/bind.h"

/* Exit codes of trib-run itself; the last two are those of shells. */
enum {
    RUN_EXIT_USAGE = 2,
    RUN_EXIT_TIMEOUT = 124,
    RUN_EXIT_SELF = 125,
    RUN_EXIT_CANNOT_EXECUTE = 126,
    RUN_EXIT_NOT_FOUND = 127,
    RUN_EXIT_PIPE = 141, /* 128 + SIGPIPE, as of a program whose output nobody reads */
};

#define RUN_RANKS_MAX 4096
#define RUN_KEY_TEXT 65 /* 32 bytes in hexadecimal digits, with the zero */

struct run_options {
    int ranks;
    bool prefix; /* "[2] " before each line */
    bool tagged; /* the user has said so, or not so */
    enum tool_bind bind;
    double timeout_s; /* 0: none */
    double grace_s; /* for the others, once a rank has failed */
    const char *output_dir; /* NULL: this terminal */
    const char *root; /* NULL: a meeting place on this host */
    const char *trace; /* file for a trace of all ranks; NULL: none */
    char **program; /* with its arguments, NULL at the end */
};

/** run_parse_options - read the command line; returns -1: go on; else the exit code. */
int run_parse_options(int argc, char **argv, struct run_options *o);

/** run_say - a line of trib-run itself, to standard error. */
void run_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Output ----------------------------------------------------------------------- */

/* The target of lines, standard output or error, written only when it takes them. */
struct run_sink {
    int fd;
    char *text;
    size_t len;
    size_t cap;
    int broken; /* errno of the write that failed: what follows is dropped; 0: none has
                 */
};

/* One of the two pipes that a rank writes; whole lines go to the sink. */
struct run_stream {
    int fd; /* -1: ended */
    struct run_sink *sink;
    char prefix[16];
    char *text; /* the line so far */
    size_t len;
    size_t cap;
};

/** run_stream_wants - shall the pipe be read, or is the sink full? */
bool run_stream_wants(const struct run_stream *stream);

/** run_stream_read - take what there is; closes the pipe at its end. False: out of
 * memory. */
bool run_stream_read(struct run_stream *stream);

/** run_stream_close - pass on a last line without line feed, free everything. */
void run_stream_close(struct run_stream *stream);

/** run_sink_write - write what the sink takes without waiting; sets sink->broken. */
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
    char key[RUN_KEY_TEXT]; /* the job's secret, TRIB_KEY of the ranks */
    struct rlimit files; /* the limit of open files that the ranks shall have */
    int stdin_fd; /* a terminal's input goes through this pipe to rank 0; or -1 */
    pid_t keeper;
};

/**
 * run_start - start all ranks.
 *
 * returns  0, or the exit code of trib-run after it has said why; job->started ranks
 *          may then live
 */
int run_start(struct run_job *job);

/** run_kill - send a signal to all ranks that live, and what they have started. */
void run_kill(const struct run_job *job, int signal);

/**
 * run_close_streams - close the pipes of all ranks that lead to a sink: whoever writes
 * into one from now on gets SIGPIPE, as it would have got without trib-run.
 */
void run_close_streams(struct run_job *job, const struct run_sink *sink);

/** run_show_state - a table of what each rank does, to standard error. */
void run_show_state(const struct run_job *job);

/** run_pass_caught - as run_kill, for ranks that have a handler for the signal: it
 * would end the others. */
void run_pass_caught(const struct run_job *job, int signal);

/** run_finish - free everything; the ranks have ended. */
void run_finish(struct run_job *job);

#endif
