/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines for people: rare, never on the data path (that is what base/trace.h is for).
 *
 *     tributary: rank 2: warning: shm: text
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include <tributary/comm.h>

/* Owned by a context and constant once its rank is known; hence readable by any thread. */
struct trib_log {
    trib_log_level_t level; /* lines above it are dropped */
    trib_log_fn fn;         /* NULL: standard error */
    void *arg;
    int rank;               /* -1: not known, not printed */
};

/** trib_log_init - fn NULL writes to standard error; the rank is not known yet. */
void trib_log_init(struct trib_log *log, trib_log_level_t level, trib_log_fn fn,
                   void *arg);

/** trib_log_set_rank - from now on lines say which rank speaks. */
void trib_log_set_rank(struct trib_log *log, int rank);

/**
 * trib_log - one line, if its level is wanted.
 *
 * log        NULL: warnings and errors, to standard error
 * component  the folder or backend that speaks, such as "shm"
 * fmt        printf's, with %m; lower case, no line feed; longer than 900 bytes is cut
 * thread     any; errno is kept
 */
void trib_log(const struct trib_log *log, trib_log_level_t level, const char *component,
              const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
