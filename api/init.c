/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_init and trib_join. Only the api room connects communicators with the client of
 * tribd.
 */
#include <stdio.h>
#include <stdlib.h>

#include "agg/client/fallback.h"
#include "api/api.h"
#include "base/fpenv.h"
#include "base/time.h"
#include "boot/boot.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/life/clock.h"
#include "comm/life/join.h"
#include "comm/life/settings.h"
#include "comm/members/grow.h"
#include "comm/members/leave.h"
#include "comm/members/wireup.h"

/* Way of a process to join its communicator. */
struct way {
    trib_status_t (*join)(struct trib_comm *comm, const trib_opts_t *opts);
    const char *root; /* NULL: from the options */
    uint64_t until; /* deadline of all attempts in ns; 0: not set yet */
    bool comes_late; /* the other ranks already have the communicator */
    bool again; /* this process is not at fault and may try again */
};

static trib_status_t join(struct trib_comm *comm, const trib_opts_t *opts)
{
    struct trib_boot *boot;
    int rank, size;
    trib_status_t st = trib_comm_join(comm, opts, &boot, &rank, &size);

    if (st != TRIB_OK)
        return st;
    trib_log_set_rank(&comm->log, rank);
    snprintf(comm->label, sizeof(comm->label), "%d", rank);
    struct trib_exchange x = {trib_boot_exchange, boot};
    comm->met = boot->met;
    st = trib_comm_wireup(comm, rank, size, &x);
    /* Every rank detects a mismatch itself and reports it with the same message. */
    if (st != TRIB_OK && st != TRIB_ERR_MISMATCH)
        (boot->ops->fail)(boot, trib_last_error(comm));
    boot->ops->close(boot);
    return st == TRIB_OK ? trib_clock_measure(comm) : st;
}

static trib_status_t check_threads(struct trib_comm *comm, const trib_opts_t *opts)
{
    if (opts->threads != TRIB_THREADS_ONE && opts->threads != TRIB_THREADS_MANY)
        return trib_fail(&comm->err, TRIB_ERR_INVALID,
                         "trib_opts_t.threads is %d: it must be TRIB_THREADS_ONE or "
                         "TRIB_THREADS_MANY",
                         (int)opts->threads);
    return TRIB_OK;
}

static trib_status_t begin(const trib_opts_t *opts, struct way *way,
                           trib_comm_t **comm_out)
{
    struct trib_error err = {0};
    trib_opts_t ours;

    if (trib_opts_take(opts, &ours, &err) != TRIB_OK) {
        trib_say_error(trib_error_text(&err));
        return TRIB_ERR_INVALID;
    }
    if (way->root)
        ours.root = way->root;
    struct trib_comm *comm = calloc(1, sizeof(*comm));
    if (!comm) {
        trib_say_error("no memory for a communicator");
        return TRIB_ERR_NO_MEMORY;
    }
    trib_comm_claim(comm);
    trib_log_init(&comm->log, TRIB_LOG_WARN, ours.log, ours.log_arg);
    trib_log_pace_init(&comm->log_pace);
    trib_comm_set_idle(comm, ours.idle, ours.idle_arg);
    comm->log.pace = &comm->log_pace;
    comm->rewinds = ours.rewind;
    fenv_t own;
    trib_fpenv_enter_all(&own);
    trib_status_t st =
        trib_config_load(&comm->cfg, ours.config, &comm->log, &comm->err);
    if (st == TRIB_OK)
        st = trib_settings_refuse(&comm->cfg, &comm->err);
    if (st == TRIB_OK)
        st = check_threads(comm, &ours);
    if (st == TRIB_OK) {
        comm->log.level = (trib_log_level_t)comm->cfg.log;
        if (!way->until)
            way->until = trib_limit_deadline(comm->cfg.boot_timeout_ms);
        st = way->join(comm, &ours);
    }
    if (st == TRIB_OK && way->comes_late)
        trib_api_join_service(comm);
    else if (st == TRIB_OK)
        st = trib_offload_join(comm);
    if (st == TRIB_OK && ours.threads == TRIB_THREADS_MANY)
        st = trib_gate_make(comm);
    trib_fpenv_leave_all(&own);
    if (st != TRIB_OK) {
        way->again = st == TRIB_ERR_ABORTED && !trib_idle_answer(comm->idle);
        trib_say_error(trib_last_error(comm));
        trib_comm_dispose(comm);
        return st;
    }
    trib_error_clear(&comm->err);
    *comm_out = comm;
    return TRIB_OK;
}

trib_status_t trib_init(const trib_opts_t *opts, trib_comm_t **comm_out)
{
    struct way way = {.join = join};

    trib_say_error("");
    if (!comm_out) {
        trib_say_error("trib_init: comm_out is NULL");
        return TRIB_ERR_INVALID;
    }
    *comm_out = NULL;
    return begin(opts, &way, comm_out);
}

trib_status_t trib_join(const char *text, const trib_opts_t *opts,
                        trib_comm_t **comm_out)
{
    struct way way = {.join = trib_comm_join_running, .root = text, .comes_late = true};
    trib_status_t st;

    trib_say_error("");
    if (!comm_out) {
        trib_say_error("trib_join: comm_out is NULL");
        return TRIB_ERR_INVALID;
    }
    *comm_out = NULL;
    /* Another newcomer may have caused this attempt to fail. */
    do
        st = begin(opts, &way, comm_out);
    while (st != TRIB_OK && way.again && !trib_deadline_passed(way.until));
    return st;
}
