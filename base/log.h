/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines for people: rare, never on the data path (that is what base/trace.h is
 * for).
 *
 *     tributary: rank 2: warning: shm: text
 *     2026-01-31T09:05:00.123Z tributary: info: tribd: text
 *     {"time":"2026-01-31T09:05:00.123Z","level":"info","component":"tribd",
 *      "text":"text"}
 *
 * A line that standard error does not accept at once is dropped and counted: no caller
 * waits for a reader.
 *
 * Whatever a line is made of, it is one line of plain text (base/plain.h): much of it
 * comes from strangers.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include <tributary/comm.h>

struct trib_log_pace;

/* Owned by a context and constant once its rank is known; hence readable by any
 * thread. */
struct trib_log {
    trib_log_level_t level; /* lines above it are dropped */
    trib_log_fn fn;         /* NULL: standard error */
    void *arg;
    int rank;               /* -1: not known, not printed */
    bool stamps;            /* lines begin with the time of day, UTC */
    bool json;              /* lines are objects */
    bool priorities;        /* lines begin with sd-daemon(3)'s "<N>" */
    struct trib_log_pace *pace; /* rate limit of the context, so that lines of one kind
                                 * are not too many; or NULL */
};

/** trib_log_init - fn NULL writes to standard error; the rank is not known yet, lines
 * are text without a time, as many as there are. */
void trib_log_init(struct trib_log *log, trib_log_level_t level, trib_log_fn fn,
                   void *arg);

/** trib_log_set_rank - name the rank in all lines from now on. */
void trib_log_set_rank(struct trib_log *log, int rank);

/**
 * trib_log - one line, if its level is wanted.
 *
 * log        NULL: warnings and errors, to standard error
 * component  the folder or backend that speaks, such as "shm"; a literal
 * fmt        printf's, with %m; lower case, no line feed; a literal. Longer than 900
 *            bytes is cut
 * thread     any; errno is kept
 */
void trib_log(const struct trib_log *log, trib_log_level_t level, const char *component,
              const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/**
 * trib_log_tell - log how many lines the rate limit has held back, if that began a
 * second ago, or always with `all`; and how many standard error did not accept.
 *
 * Now and then, and at the end: the next line of that kind, which says so too, may
 * never come.
 */
void trib_log_tell(const struct trib_log *log, bool all);

#endif
