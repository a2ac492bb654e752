/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines for people: rare, never on the data path (base/trace.h is for that).
 *
 *     tributary: rank 2: warning: shm: text
 *     2026-01-31T09:05:00.123Z tributary: info: tribd: text
 *     {"time":"2026-01-31T09:05:00.123Z","level":"info","component":"tribd",
 *      "text":"text"}
 *
 * A line that standard error does not accept at once is dropped and counted: callers
 * never wait for a reader.
 *
 * Each entry is a single line of sanitised text (base/plain.h), as much of it comes
 * from unauthenticated peers.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include <tributary/comm.h>

struct trib_log_pace;

/* Owned by a context; constant but for the rank and the level, which are atomic, so any
 * thread may read it. */
struct trib_log {
    _Atomic int level; /* trib_log_level_t: lines above it are dropped */
    trib_log_fn fn;         /* NULL: standard error */
    void *arg;
    _Atomic int rank;       /* -1: unknown, not printed */
    bool stamps;            /* prefix lines with the time, UTC */
    bool json;              /* write JSON objects */
    bool priorities;        /* prefix lines with "<N>" as in sd-daemon(3) */
    struct trib_log_pace *pace; /* per-kind rate limit of the context; or NULL */
};

/** trib_log_init - initialise: text lines without time, unknown rank, no rate limit. fn
 * NULL: write to standard error. */
void trib_log_init(struct trib_log *log, trib_log_level_t level, trib_log_fn fn,
                   void *arg);

/** trib_log_set_level - change the level while other threads may log. */
void trib_log_set_level(struct trib_log *log, trib_log_level_t level);

/** trib_log_set_rank - name the rank in all later lines. */
void trib_log_set_rank(struct trib_log *log, int rank);

/**
 * trib_log - write one line if its level is enabled.
 *
 * log        NULL: warnings and errors, to standard error
 * component  the emitting room or backend, such as "shm"; a literal
 * fmt        printf format, with %m; lower case, no line feed; a literal. Text beyond
 *            900 bytes is cut
 * thread     any; preserves errno
 */
void trib_log(const struct trib_log *log, trib_log_level_t level, const char *component,
              const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/**
 * trib_log_tell - log the number of suppressed lines if suppression began a second ago,
 * or always with `all`, and the number of dropped lines.
 *
 * Call periodically and at the end: the next line of that kind, which would report them
 * as well, may never come.
 */
void trib_log_tell(const struct trib_log *log, bool all);

#endif
