/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rate limit for log lines of one kind, such as a warning about each unauthenticated
 * peer: a few at once, then one per second with the number suppressed. A kind is one
 * call site, identified by its format string.
 */
#ifndef BASE_LOG_PACE_H
#define BASE_LOG_PACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tributary/comm.h>

enum {
    TRIB_LOG_KINDS = 64,
    TRIB_LOG_SAMPLE_BYTES = 96,
    /* Limits for warnings, and for success messages, which may be frequent. */
    TRIB_LOG_WARNINGS_AT_ONCE = 20,
    TRIB_LOG_WARNING_MS = 1000,
    TRIB_LOG_INFOS_AT_ONCE = 1000,
    TRIB_LOG_INFO_MS = 10,
};

struct trib_log_kind {
    const char *format; /* NULL: free slot */
    const char *component;
    trib_log_level_t level;
    uint64_t used_until_ns; /* state of base/token_bucket.h */
    uint64_t held_back;     /* lines suppressed since the last one shown */
    uint64_t since_ns;      /* time of the first of these */
    char sample[TRIB_LOG_SAMPLE_BYTES]; /* beginning of the last line shown */
};

struct trib_log_pace {
    pthread_mutex_t mutex;
    _Atomic bool holds; /* some suppressed lines are not yet reported */
    _Atomic uint64_t dropped;  /* lines that standard error did not accept */
    _Atomic uint64_t reported; /* dropped lines already reported */
    struct trib_log_kind kinds[TRIB_LOG_KINDS]; /* under mutex */
};

/* Suppressed lines of one kind, to be reported. */
struct trib_log_more {
    uint64_t lines; /* 0: none */
    uint64_t ns;
    trib_log_level_t level;
    const char *component;
    char sample[TRIB_LOG_SAMPLE_BYTES];
};

/** trib_log_pace_init - initialise; needs no cleanup. */
void trib_log_pace_init(struct trib_log_pace *pace);

/**
 * trib_log_pace_take_mt - return true if a line of this kind may be shown; *more then
 * counts the lines suppressed before it.
 *
 * pace       NULL: always true; so are errors, and kinds for which no slot is free
 * format, component  literals
 */
bool trib_log_pace_take_mt(struct trib_log_pace *pace, trib_log_level_t level,
                           const char *component, const char *format,
                           struct trib_log_more *more);

/** trib_log_pace_note_mt - store the beginning of a line that was shown. */
void trib_log_pace_note_mt(struct trib_log_pace *pace, const char *format,
                           const char *text);

/** trib_log_pace_next_mt - return a kind with lines suppressed at or before since_ns;
 * false: none. */
bool trib_log_pace_next_mt(struct trib_log_pace *pace, uint64_t since_ns,
                           struct trib_log_more *more);

/** trib_log_pace_drop_mt - count a line that standard error did not accept. */
void trib_log_pace_drop_mt(struct trib_log_pace *pace);

/**
 * trib_log_pace_report_mt - return the number of dropped lines not yet reported by any
 * thread, for the caller to report.
 */
uint64_t trib_log_pace_report_mt(struct trib_log_pace *pace);

/** trib_log_pace_unreported_mt - put back lines that the caller could not report. */
void trib_log_pace_unreported_mt(struct trib_log_pace *pace, uint64_t lines);

#endif
