/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two forms of trib-perf put. If both sides are on this host, they are two
 * processes that share a socket pair; otherwise the server listens and the client
 * connects.
 */
#include "perf/put/put.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"

struct both {
    const struct put_args *args;
    const struct trib_config *cfg;
    const struct trib_log *log;
    struct trib_secret secret; /* not set: no authentication */
    int fds[2]; /* of client and server */
};

static int complain(const struct put_endpoint *endpoint)
{
    fprintf(stderr, "trib-perf: %s\n", trib_error_text(&endpoint->err));
    return 1;
}

/* --- client --- */

static trib_status_t reach_server(const struct put_args *args,
                                  struct put_endpoint *endpoint)
{
    size_t largest = 0;

    for (size_t i = 0; i < args->sizes.n; i++) {
        if (args->sizes.bytes[i] > largest)
            largest = args->sizes.bytes[i];
    }
    snprintf(endpoint->setup.transport, sizeof(endpoint->setup.transport), "%s",
             args->transport != NULL ? args->transport : endpoint->cfg->transport);
    endpoint->setup.area = put_area(largest);
    /* A side alone on its host may use all of its cores. */
    endpoint->setup.bind = args->bind == TOOL_BIND_AUTO && args->remote != NULL
                               ? TOOL_BIND_NONE
                               : args->bind;
    return put_endpoint_open(endpoint);
}

static trib_status_t sweep(const struct put_args *args, struct put_endpoint *endpoint,
                           struct put_report *report, double *wrong)
{
    struct perf_progress progress;
    trib_status_t status = TRIB_OK;

    perf_progress_start(&progress, args->sizes.n, true);
    for (size_t i = 0; i < args->sizes.n && status == TRIB_OK; i++) {
        struct put_result result;
        progress.at = i;
        status = put_measure(endpoint, args, args->sizes.bytes[i], &progress, &result);
        perf_progress_clear(&progress);
        if (status != TRIB_OK)
            break;
        if (args->check)
            *wrong += result.wrong;
        put_report_add(report, &result);
    }
    return status == TRIB_OK
               ? put_wire_send(&endpoint->wire, PUT_END, NULL, 0,
                               trib_limit_deadline(endpoint->cfg->timeout_ms))
               : status;
}

static int measure_all(const struct put_args *args, struct put_endpoint *endpoint,
                       struct put_report *report)
{
    char why[4352];
    double wrong = 0;

    if (sweep(args, endpoint, report, &wrong) != TRIB_OK)
        return complain(endpoint);
    if (!put_report_finish(report, why, sizeof(why))) {
        fprintf(stderr, "trib-perf: %s.\n", why);
        return 1;
    }
    if (wrong > 0)
        fprintf(stderr, "trib-perf: %.0f bytes are wrong.\n", wrong);
    return wrong > 0;
}

static int client(const struct put_args *args, struct put_endpoint *endpoint)
{
    char why[4352];

    if (reach_server(args, endpoint) != TRIB_OK)
        return complain(endpoint);
    struct put_report report = {.args = args, .endpoint = endpoint};
    if (!put_report_open(&report, why, sizeof(why))) {
        trib_fail(&endpoint->err, TRIB_ERR_INVALID, "%.400s", why);
        fprintf(stderr, "trib-perf: %s.\n", why);
        return 2;
    }
    int code = measure_all(args, endpoint, &report);
    perf_output_free(&report.out);
    return code;
}

/* --- both sides on this host --- */

static int be_side(void *arg, int rank, const char *root)
{
    const struct both *both = arg;
    struct put_endpoint endpoint;
    int code;

    (void)root;
    put_endpoint_init(&endpoint, rank == 1, both->cfg, both->log);
    endpoint.secret = &both->secret;
    close(both->fds[!rank]);
    trib_status_t status = put_endpoint_hello(
        &endpoint, both->fds[rank], rank == 1 ? "the client" : "the server",
        trib_limit_deadline(both->cfg->boot_timeout_ms));
    if (rank == 0) {
        code = status == TRIB_OK ? client(both->args, &endpoint) : complain(&endpoint);
    } else { /* the client reports errors of the server; its exit code counts */
        if (status == TRIB_OK)
            status = put_endpoint_open(&endpoint);
        if (status == TRIB_OK)
            status = put_serve(&endpoint);
        code = 0;
    }
    put_endpoint_close(&endpoint);
    return code;
}

/* Close the parent's ends, or a side would not notice that the other has ended. */
static void let_go(void *arg)
{
    const struct both *both = arg;

    close(both->fds[0]);
    close(both->fds[1]);
}

static int run_here(struct both *both)
{
    struct tool_job job = {
        .tool = "trib-perf",
        .ranks = 2,
        .fn = be_side,
        .started = let_go,
        .arg = both,
    };

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both->fds) != 0) {
        fprintf(stderr, "trib-perf: cannot create a socket pair: %s.\n",
                strerror(errno));
        return 1;
    }
    return tool_launch(&job);
}

/* --- one side on this host --- */

static int run_server(const struct both *both)
{
    struct trib_tcp_root where;
    struct put_endpoint endpoint;

    put_listen_text(both->args->listen, &where);
    put_endpoint_init(&endpoint, true, both->cfg, both->log);
    endpoint.secret = &both->secret;
    trib_status_t status = put_meet_server(&endpoint, &where);
    if (status == TRIB_OK)
        status = put_endpoint_open(&endpoint);
    if (status == TRIB_OK)
        status = put_serve(&endpoint);
    int code = status == TRIB_OK ? 0 : complain(&endpoint);
    put_endpoint_close(&endpoint);
    return code;
}

static int run_client(const struct both *both)
{
    struct trib_tcp_root where;
    struct put_endpoint endpoint;

    trib_tcp_root_parse(both->args->remote, &where);
    put_endpoint_init(&endpoint, false, both->cfg, both->log);
    endpoint.secret = &both->secret;
    trib_status_t status = put_meet_client(&endpoint, &where);
    int code = status == TRIB_OK ? client(both->args, &endpoint) : complain(&endpoint);
    put_endpoint_close(&endpoint);
    return code;
}

/* Read TRIB_KEY, as ranks do. Two sides on this host need none. */
static bool take_secret(struct both *both, bool here, struct trib_error *err)
{
    char why[160];
    trib_status_t status = trib_secret_given(&both->secret, err);

    if (status == TRIB_OK && here && both->cfg->seal && !both->secret.is_set)
        status = trib_secret_make(&both->secret, err);
    if (status == TRIB_OK && both->secret.is_set)
        (void)trib_secret_arm(&both->secret, why, sizeof(why)); /* opening tcp reports
                                                                 * the error */
    return status == TRIB_OK;
}

int put_main(int argc, char **argv)
{
    struct put_args args;
    struct trib_config cfg;
    struct trib_log log;
    struct trib_error err = {0};
    int code = put_args_parse(argc, argv, stderr, &args);

    if (code >= 0)
        return code;
    trib_log_init(&log, TRIB_LOG_WARN, NULL, NULL);
    if (trib_config_load(&cfg, NULL, &log, &err) != TRIB_OK) {
        fprintf(stderr, "trib-perf: %s\n", trib_error_text(&err));
        put_args_free(&args);
        return 2;
    }
    if (cfg.rank >= 0) {
        fputs("trib-perf: put starts both of its sides: run it without a launcher, or "
              "unset TRIB_RANK.\n",
              stderr);
        put_args_free(&args);
        return 2;
    }
    log.level = (trib_log_level_t)cfg.log;
    struct both both = {.args = &args, .cfg = &cfg, .log = &log};
    if (!take_secret(&both, !args.listen && !args.remote, &err)) {
        fprintf(stderr, "trib-perf: %s\n", trib_error_text(&err));
        put_args_free(&args);
        return 2;
    }
    if (args.listen != NULL)
        code = run_server(&both);
    else
        code = args.remote != NULL ? run_client(&both) : run_here(&both);
    put_args_free(&args);
    return code;
}
