/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log_pace.h"
#include "base/log_write.h"
#include "base/plain.h"
#include "base/time.h"

#define LINE_MAX_BYTES 1024

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void trib_log_init(struct trib_log *log, trib_log_level_t level, trib_log_fn fn,
                   void *arg)
{
    *log = (struct trib_log){.level = (int)level, .fn = fn, .arg = arg, .rank = -1};
}

void trib_log_set_level(struct trib_log *log, trib_log_level_t level)
{
    atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
}

void trib_log_set_rank(struct trib_log *log, int rank)
{
    atomic_store_explicit(&log->rank, rank, memory_order_relaxed);
}

static int rank_of(const struct trib_log *log)
{
    return atomic_load_explicit(&log->rank, memory_order_relaxed);
}

static bool wants(const struct trib_log *log, trib_log_level_t level)
{
    const int most =
        log ? atomic_load_explicit(&log->level, memory_order_relaxed) : TRIB_LOG_WARN;

    return (int)level <= most;
}

static void format_time(char out[40])
{
    struct timespec now = {0};
    struct tm utc = {0};
    char day[24];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    (void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, 40, "%s.%03dZ", day, (int)(now.tv_nsec / 1000000));
}

static void format_text(char line[LINE_MAX_BYTES], const struct trib_log *log,
                        trib_log_level_t level, const char *component, const char *text)
{
    const int number = log ? rank_of(log) : -1;
    char rank[24] = "", stamp[40] = "";

    if (number >= 0)
        snprintf(rank, sizeof(rank), "rank %d: ", number);
    if (log && log->stamps)
        format_time(stamp);
    const int n = snprintf(line, LINE_MAX_BYTES, "%s%stributary: %s%s: %.40s: ", stamp,
                           stamp[0] ? " " : "", rank, level_names[level], component);
    (void)trib_plain(text, line + n, LINE_MAX_BYTES - (size_t)n);
}

/* Append a JSON string. trib_plain leaves two characters to escape. */
static void append_string(char *line, size_t bytes, const char *text)
{
    size_t n = strlen(line);

    for (; *text && n + sizeof("\\\"\"}") < bytes; text++) {
        if (*text == '"' || *text == '\\')
            line[n++] = '\\';
        line[n++] = *text;
    }
    line[n] = 0;
}

/* Remove a truncated UTF-8 character at the end. */
static void drop_half_character(char *line)
{
    size_t n = strlen(line), tail = 0;

    while (tail < 3 && tail < n && ((unsigned char)line[n - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (n <= tail)
        return;
    const unsigned char lead = (unsigned char)line[n - 1 - tail];
    const size_t wants_tail = lead >= 0xf0   ? 3
                              : lead >= 0xe0 ? 2
                              : lead >= 0xc0 ? 1
                                             : 0;
    if (wants_tail > tail)
        line[n - 1 - tail] = 0;
}

static void format_json(char line[LINE_MAX_BYTES], const struct trib_log *log,
                        trib_log_level_t level, const char *component, const char *text)
{
    char plain[LINE_MAX_BYTES], stamp[40], rank[32] = "";

    format_time(stamp);
    if (rank_of(log) >= 0)
        snprintf(rank, sizeof(rank), "\"rank\":%d,", rank_of(log));
    (void)trib_plain(text, plain, sizeof(plain));
    snprintf(line, LINE_MAX_BYTES,
             "{\"time\":\"%s\",\"level\":\"%s\",%s\"component\":\"%.40s\",\"text\":\"",
             stamp, level_names[level], rank, component);
    append_string(line, LINE_MAX_BYTES, plain);
    drop_half_character(line);
    strcat(line, "\"}");
}

static bool write_line(const struct trib_log *log, trib_log_level_t level,
                       const char *line)
{
    static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};
    char out[LINE_MAX_BYTES + 8];

    const int n = snprintf(out, sizeof(out), "%s%s\n",
                           log && log->priorities ? priorities[level] : "", line);
    return trib_log_write_mt(out, (size_t)n);
}

static bool show(const struct trib_log *log, trib_log_level_t level,
                 const char *component, const char *text)
{
    char line[LINE_MAX_BYTES];

    if (log && log->json)
        format_json(line, log, level, component, text);
    else
        format_text(line, log, level, component, text);
    if (!log || !log->fn)
        return write_line(log, level, line);
    log->fn(log->arg, level, line);
    return true;
}

/* Report dropped lines before the first line that can be written again. */
static void show_dropped(const struct trib_log *log)
{
    char text[LINE_MAX_BYTES];
    const uint64_t lines = log && log->pace ? trib_log_pace_report_mt(log->pace) : 0;

    if (!lines)
        return;
    snprintf(text, sizeof(text),
             "%" PRIu64 " lines were dropped: standard error did not accept them",
             lines);
    if (!show(log, TRIB_LOG_WARN, "log", text))
        trib_log_pace_unreported_mt(log->pace, lines);
}

static void show_or_drop(const struct trib_log *log, trib_log_level_t level,
                         const char *component, const char *text)
{
    show_dropped(log);
    if (!show(log, level, component, text) && log && log->pace)
        trib_log_pace_drop_mt(log->pace);
}

static void show_more(const struct trib_log *log, const struct trib_log_more *more)
{
    char text[LINE_MAX_BYTES];

    if (!more->lines)
        return;
    snprintf(text, sizeof(text),
             "%" PRIu64 " more like this in the last %" PRIu64 " s: %s", more->lines,
             (more->ns + 999999999) / 1000000000, more->sample);
    show_or_drop(log, more->level, more->component, text);
}

void trib_log(const struct trib_log *log, trib_log_level_t level, const char *component,
              const char *fmt, ...)
{
    struct trib_log_pace *pace = log ? log->pace : NULL;
    struct trib_log_more more;
    int saved_errno = errno;
    char text[LINE_MAX_BYTES];

    if (!wants(log, level) ||
        !trib_log_pace_take_mt(pace, level, component, fmt, &more)) {
        errno = saved_errno;
        return;
    }
    va_list args;
    va_start(args, fmt);
    errno = saved_errno; /* %m reads errno */
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    show_more(log, &more);
    show_or_drop(log, level, component, text);
    trib_log_pace_note_mt(pace, fmt, text);
    errno = saved_errno;
}

void trib_log_tell(const struct trib_log *log, bool all)
{
    const uint64_t since_ns =
        trib_now_ns() - (all ? 0 : TRIB_LOG_WARNING_MS * UINT64_C(1000000));
    const int saved_errno = errno;
    struct trib_log_more more;

    while (trib_log_pace_next_mt(log->pace, since_ns, &more))
        show_more(log, &more);
    show_dropped(log);
    errno = saved_errno;
}
