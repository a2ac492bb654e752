/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/quiet.h"

#define LINE_MAX_BYTES 1024

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void trib_log_init(struct trib_log *log, trib_log_level_t level, trib_log_fn fn,
                   void *arg)
{
    *log = (struct trib_log){.level = level, .fn = fn, .arg = arg, .rank = -1};
}

void trib_log_set_rank(struct trib_log *log, int rank)
{
    log->rank = rank;
}

static bool wants(const struct trib_log *log, trib_log_level_t level)
{
    return level <= (log ? log->level : TRIB_LOG_WARN);
}

static int format_head(char *line, const struct trib_log *log, trib_log_level_t level,
                       const char *component)
{
    char rank[24] = "";

    if (log && log->rank >= 0)
        snprintf(rank, sizeof(rank), "rank %d: ", log->rank);
    return snprintf(line, LINE_MAX_BYTES, "tributary: %s%s: %.40s: ", rank,
                    level_names[level], component);
}

/* A line must not end the program where nobody reads its standard error any more. */
static void write_line(const char *line)
{
    struct trib_quiet quiet;

    trib_quiet_begin(&quiet, SIGPIPE);
    fprintf(stderr, "%s\n", line);
    trib_quiet_end(&quiet);
}

void trib_log(const struct trib_log *log, trib_log_level_t level, const char *component,
              const char *fmt, ...)
{
    int saved_errno = errno;
    char line[LINE_MAX_BYTES];

    if (!wants(log, level))
        return;
    int head = format_head(line, log, level, component);
    va_list args;
    va_start(args, fmt);
    errno = saved_errno; /* for %m */
    vsnprintf(line + head, sizeof(line) - (size_t)head, fmt, args);
    va_end(args);
    if (log && log->fn)
        log->fn(log->arg, level, line);
    else
        write_line(line);
    errno = saved_errno;
}
