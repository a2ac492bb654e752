/* SPDX-License-Identifier: BSD-3-Clause */
/* tribd - daemon that sums vectors of jobs. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <tributary.h>

#include "agg/daemon/aggregator.h"
#include "agg/daemon/job_settings.h"
#include "agg/daemon/server.h"
#include "agg/daemon/systemd.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log_pace.h"
#include "base/text.h"
#include "tools/common/options.h"
#include "tools/common/tool.h"

enum {
    FILES_FEW = 1024,
    LARGE_BYTES = 256 << 10, /* allocations of this size have their own mapping */
};

struct arguments {
    const char *file;
    bool check;
    struct rlimit files; /* limit of descriptors at the start */
};

#define AT(field) offsetof(struct arguments, field)

static const struct tool_option options[] = {
    {"config", "FILE", tool_set_text, AT(file),
     .help = "file of \"name = value\" lines; TRIBD_<NAME> variables take precedence"},
    {"check-config", NULL, tool_set_switch, AT(check),
     .help = "check the settings, print them or the first error, and exit"},
};

static void print_settings(void)
{
    puts("settings, with [default]; SIGHUP reloads those marked *:");
    settings_help();
}

static const struct tool_command command = {
    .name = "tribd",
    .usage =
        "usage: tribd [--config FILE] [--check-config]\n"
        "\n"
        "Aggregation daemon for the all-reduces of jobs that set TRIB_SERVICE to it.\n"
        "Each contribution is sent up once, and each result is sent down once.\n",
    .print = print_settings,
    .ending =
        "SIGTERM disconnects jobs between operations, or after drain_ms, then exits.\n"
        "exit code: 0 success; 1 failure; 2 wrong arguments or settings; 3 last\n"
        "snapshots failed",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
};

/* arg: struct arguments */
static trib_status_t load(void *arg, struct settings *out, struct trib_error *err)
{
    const struct arguments *a = arg;
    trib_log_level_t level;

    trib_status_t st = settings_load(a->file, out, err);
    if (st == TRIB_OK && strcmp(out->log_format, "text") != 0 &&
        strcmp(out->log_format, "json") != 0)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "log_format is %s: it must be text or json", out->log_format);
    if (st == TRIB_OK && !trib_text_is_auto(out->log_time) &&
        strcmp(out->log_time, "yes") != 0 && strcmp(out->log_time, "no") != 0)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "log_time is %s: it must be auto, yes or no", out->log_time);
    if (st == TRIB_OK && !job_settings_check_transports(out->transports, err))
        st = TRIB_ERR_CONFIG;
    if (st == TRIB_OK && !settings_level(out, &level))
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "log is %s: it must be error, warn, info or debug", out->log);
    return st;
}

/* Block the signals in all threads; they are read from the returned descriptor. */
static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return trib_fd_keep(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

/* Log the limit of open files: each connection is one, and a job has several per
 * rank. */
static void say_open_files(const struct trib_log *log, const struct rlimit *before)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    if (files.rlim_cur > before->rlim_cur)
        trib_log(log, TRIB_LOG_INFO, "tribd",
                 "open files: raised the soft limit from %ju to the hard limit, %ju",
                 (uintmax_t)before->rlim_cur, (uintmax_t)files.rlim_cur);
    else if (files.rlim_cur < FILES_FEW)
        trib_log(
            log, TRIB_LOG_WARN, "tribd",
            "open files: the limit of %ju can be exhausted by unauthenticated "
            "connections alone: raise the hard limit (ulimit -Hn, or LimitNOFILE= of "
            "systemd)",
            (uintmax_t)files.rlim_cur);
}

/*
 * Return large blocks to the kernel when freed. By default glibc raises the mmap
 * threshold and keeps ever larger blocks in per-thread heaps: hundreds of MiB after
 * some jobs with many ranks.
 */
static void return_large_blocks(void)
{
#ifdef M_MMAP_THRESHOLD
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
#endif
}

/* Print an error with the journal's priority of errors, like the log. */
static int fail(trib_status_t st, const struct trib_error *err)
{
    fprintf(stderr, "%stribd: %s\n", systemd_log() ? "<3>" : "", trib_error_text(err));
    return st == TRIB_ERR_CONFIG ? 2 : 1;
}

static int serve(struct arguments *args, const struct settings *settings)
{
    return_large_blocks();
    struct server_ear ear = {.fd = open_signals(), .load = load, .arg = args};
    struct trib_error err = {0};
    trib_log_level_t level;
    struct trib_log_pace pace;
    struct trib_log log;
    struct server *server;

    (void)settings_level(settings, &level);
    trib_log_init(&log, level, NULL, NULL);
    trib_log_pace_init(&pace);
    log.pace = &pace;
    log.priorities = systemd_log();
    log.json = strcmp(settings->log_format, "json") == 0;
    log.stamps = strcmp(settings->log_time, "yes") == 0 ||
                 (trib_text_is_auto(settings->log_time) && !log.priorities);
    say_open_files(&log, &args->files);
    const trib_status_t st = server_open(settings, &log, &err, &server);
    if (st != TRIB_OK)
        return fail(st, &err);
    trib_log(&log, TRIB_LOG_INFO, "tribd", "listening at %s", settings->listen);
    systemd_notify("READY=1");
    const bool well = server_run(server, &ear);
    trib_log_tell(&log, true);
    if (!well)
        _exit(3); /* exit() would wait for threads that a disk has stopped */
    const bool kept = server_close(server);
    trib_log_tell(&log, true);
    close(ear.fd);
    return kept ? 0 : 3;
}

static int tribd_main(int argc, char **argv)
{
    struct arguments args = {0};
    struct settings settings;
    struct trib_error err = {0};

    tool_signals();
    tool_open_files(&args.files);
    const int code = tool_parse_program(&command, argc, argv, &args, stderr);
    if (code >= 0)
        return code;
    settings_unknown();
    trib_status_t st = load(&args, &settings, &err);
    if (st == TRIB_OK && args.check)
        st = server_check(&settings, &err);
    if (st != TRIB_OK)
        return fail(st, &err);
    if (!args.check)
        return serve(&args, &settings);
    struct trib_log log;
    trib_log_init(&log, TRIB_LOG_WARN, NULL, NULL);
    settings_warn(&settings, &log);
    settings_print(&settings);
    return 0;
}

int main(int argc, char **argv)
{
    tool_begin();
    return tool_end("tribd", tribd_main(argc, argv));
}
