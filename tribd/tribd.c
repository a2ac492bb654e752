/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tribd - sums the vectors of jobs.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <tributary.h>

#include "tribd/server.h"

struct arguments {
    const char *file;
    bool check;
};

static void print_help(void)
{
    puts("usage: tribd [--config FILE] [--check-config]\n"
         "\n"
         "Sums the all-reduces of jobs that name it in TRIB_SERVICE: each contribution goes\n"
         "up once and each result comes down once.\n"
         "\n"
         "  --config FILE   \"name = value\" lines; TRIBD_<NAME> variables go before them\n"
         "  --check-config  say what is wrong with the settings, or print them, and end\n"
         "  --help, --version\n"
         "\n"
         "settings, with [default]:");
    settings_help();
    puts("\n"
         "SIGTERM ends it between two operations of each job.\n"
         "exit code: 0 ended well; 1 failed; 2 wrong arguments or settings");
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, struct arguments *a)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            print_help();
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("tribd %s\n", trib_version());
            return 0;
        }
        if (strcmp(argv[i], "--check-config") == 0) {
            a->check = true;
        } else if (strcmp(argv[i], "--config") == 0 && i + 1 < argc) {
            a->file = argv[++i];
        } else {
            fprintf(stderr, "tribd: there is no option '%s'; tribd --help lists them.\n",
                    argv[i]);
            return 2;
        }
    }
    return -1;
}

static trib_log_level_t level_of(const char *name)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};

    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0)
            return (trib_log_level_t)i;
    return (trib_log_level_t)-1;
}

/* Blocked in all threads, and read here. */
static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int main(int argc, char **argv)
{
    struct arguments args = {0};
    struct settings settings;
    struct trib_error err = {0};
    struct trib_log log;
    struct server *server;

    int code = parse(argc, argv, &args);
    if (code >= 0)
        return code;
    trib_status_t st = settings_load(args.file, &settings, &err);
    const trib_log_level_t level = level_of(settings.log);
    if (st == TRIB_OK && level == (trib_log_level_t)-1)
        st = trib_fail(&err, TRIB_ERR_CONFIG, "log is %s, it must be error, warn, info or debug",
                       settings.log);
    if (st != TRIB_OK) {
        fprintf(stderr, "tribd: %s\n", trib_error_text(&err));
        return 2;
    }
    if (args.check) {
        settings_print(&settings);
        return 0;
    }
    trib_log_init(&log, level, NULL, NULL);
    const int stop_fd = open_signals();
    st = server_open(&settings, &log, &err, &server);
    if (st != TRIB_OK) {
        fprintf(stderr, "tribd: %s\n", trib_error_text(&err));
        return st == TRIB_ERR_CONFIG ? 2 : 1;
    }
    trib_log(&log, TRIB_LOG_INFO, "tribd", "listening at %s", settings.listen);
    server_run(server, stop_fd);
    server_close(server);
    close(stop_fd);
    return 0;
}
