/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of one kind, such as a warning about each stranger that connects, come at the
 * pace of whoever causes them: a few at once, then one a second, and how many more
 * there were. A kind is one place of the code, which its format tells.
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
    /* Counts for warnings, and for lines about success, of which there may be many. */
    TRIB_LOG_WARNINGS_AT_ONCE = 20,
    TRIB_LOG_WARNING_MS = 1000,
    TRIB_LOG_INFOS_AT_ONCE = 1000,
    TRIB_LOG_INFO_MS = 10,
};

struct trib_log_kind {
    const char *format; /* NULL: a free place */
    const char *component;
    trib_log_level_t level;
    uint64_t used_until_ns; /* state of base/token_bucket.h */
    uint64_t held_back;     /* lines since the last that was shown */
    uint64_t since_ns;      /* time of the first of these */
    char sample[TRIB_LOG_SAMPLE_BYTES]; /* beginning of the last line that was shown */
};

struct trib_log_pace {
    pthread_mutex_t mutex;
    _Atomic bool holds; /* some lines were held back, which nobody was told */
    _Atomic uint64_t dropped;  /* lines that standard error did not accept */
    _Atomic uint64_t reported; /* of these, lines that a later line counts */
    struct trib_log_kind kinds[TRIB_LOG_KINDS]; /* under mutex */
};

/* Lines of one kind that were held back, to be told. */
struct trib_log_more {
    uint64_t lines; /* 0: none */
    uint64_t ns;
    trib_log_level_t level;
    const char *component;
    char sample[TRIB_LOG_SAMPLE_BYTES];
};

/** trib_log_pace_init - nothing was said yet; there is nothing to give back. */
void trib_log_pace_init(struct trib_log_pace *pace);

/**
 * trib_log_pace_take_mt - may a line of that kind be shown? Then also what was held
 * back before.
 *
 * pace       NULL: always; and so are errors, and lines for which there is no place
 *            left
 * format, component  literals
 */
bool trib_log_pace_take_mt(struct trib_log_pace *pace, trib_log_level_t level,
                           const char *component, const char *format,
                           struct trib_log_more *more);

/** trib_log_pace_note_mt - note the beginning of a line that was shown. */
void trib_log_pace_note_mt(struct trib_log_pace *pace, const char *format,
                           const char *text);

/** trib_log_pace_next_mt - lines that were held back since that moment or before;
 * false: none. */
bool trib_log_pace_next_mt(struct trib_log_pace *pace, uint64_t since_ns,
                           struct trib_log_more *more);

/** trib_log_pace_drop_mt - count a line that standard error did not accept. */
void trib_log_pace_drop_mt(struct trib_log_pace *pace);

/**
 * trib_log_pace_report_mt - return how many dropped lines no thread has reported yet,
 * for the caller to report.
 */
uint64_t trib_log_pace_report_mt(struct trib_log_pace *pace);

/** trib_log_pace_unreported_mt - the caller could not report that many lines. */
void trib_log_pace_unreported_mt(struct trib_log_pace *pace, uint64_t lines);

#endif
