/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: join, leave, errors.
 */
#include "comm/comm.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/quiet.h"
#include "base/sized.h"
#include "base/workers.h"
#include "boot/boot.h"
#include "boot/launcher.h"
#include "offload/channel.h"
#include "comm/locality.h"
#include "offload/offload_plan.h"

/* The sentence of this thread's last trib_init that failed: there is no comm to ask. */
static _Thread_local char init_error[512];

void trib_say_error(const char *text)
{
    snprintf(init_error, sizeof(init_error), "%s", text);
}

trib_status_t trib_comm_fail(struct trib_comm *comm, trib_status_t status,
                             const char *fmt, ...)
{
    char text[sizeof(comm->err.text)];
    va_list args;

    if (comm->engine.failed)
        return comm->engine.failed;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    trib_error_clear(&comm->err);
    return trib_fail(&comm->err, status, "%s", text);
}

const char *trib_comm_cause(const struct trib_comm *comm, trib_status_t st)
{
    return comm->cause.status ? trib_error_text(&comm->cause) : trib_status_str(st);
}

void trib_comm_lock_slow(struct trib_comm *comm)
{
    while (atomic_exchange_explicit(&comm->lock, 1, memory_order_acquire))
        sched_yield();
}

static void write_trace(const struct trib_comm *comm)
{
    const struct trib_trace *trace = &comm->engine.trace;
    char path[TRIB_CONFIG_TEXT_BYTES + 48];

    if (!trace->count)
        return;
    snprintf(path, sizeof(path), "%s.%s.json", comm->cfg.trace_file, comm->label);
    struct trib_quiet quiet;
    trib_quiet_begin(&quiet, SIGXFSZ);
    FILE *f = trib_fd_create(path);
    bool ok = f && trib_trace_dump(trace, f) == TRIB_OK;
    int error = errno;
    if (f && fclose(f)) {
        error = ok ? errno : error;
        ok = false;
    }
    trib_quiet_end(&quiet);
    errno = error;
    if (!ok)
        trib_log(&comm->log, TRIB_LOG_WARN, "trace", "cannot write %s: %m%s", path,
                 error == EFBIG ? " (raise ulimit -f)" : "");
}

void trib_comm_claim(struct trib_comm *comm)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool *own = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    comm->pid = getpid();
    if (own == MAP_FAILED)
        return;
    if (madvise(own, page, MADV_WIPEONFORK) != 0) {
        munmap(own, page);
        return;
    }
    *own = true;
    comm->own = own;
}

static void comm_free(struct trib_comm *comm)
{
    if (comm->own)
        munmap((void *)(uintptr_t)comm->own, (size_t)sysconf(_SC_PAGESIZE));
    trib_near_free(comm->near);
    trib_channel_free(comm->channel);
    free(comm);
}

trib_status_t trib_comm_refuse_child(struct trib_comm *comm, const char *call)
{
    return trib_comm_fail(comm, TRIB_ERR_INVALID,
                          "%s: process %d is a forked child, and the communicator is that of "
                          "process %d: a child makes its own with trib_init",
                          call, (int)getpid(), (int)comm->pid);
}

static void keep_remote(struct trib_transport *t, struct trib_remote *remote)
{
    (void)t;
    (void)remote;
}

static void keep_peers(struct trib_transport *t, const bool *which)
{
    (void)t;
    (void)which;
}

static void keep_peer(struct trib_transport *t, int peer)
{
    (void)t;
    (void)peer;
}

/* The copy of a forked child: memory is freed, nothing is said to anybody. The close() of a
 * transport knows of children; what else the engine calls as it closes must do nothing. */
static void drop_copy(struct trib_comm *comm)
{
    static const struct trib_transport_ops nothing = {
        .dereg = trib_no_discard, .release = keep_remote, .disconnect = keep_peer,
        .leave = keep_peers};
    struct trib_engine *e = &comm->engine;
    struct trib_transport *t = e->transport;
    const struct trib_transport_ops *ops = t->ops;

    t->ops = &nothing;
    trib_cache_clear(comm);
    if (comm->service) {
        if (comm->service->channel)
            drop_copy(comm->service->channel);
        trib_quorum_drop_barriers(comm->service);
        trib_quorum_drop(comm->service);
        if (comm->service->confirms)
            drop_copy(comm->service->confirms);
        trib_plan_destroy(comm->service->agreement);
        drop_copy(comm->service->council);
        drop_copy(comm->service->spare);
        free(comm->service);
    }
    e->head = NULL; /* an operation of the parent's */
    trib_workers_forget(e->workers);
    e->workers = NULL;
    trib_engine_close(e);
    t->ops = ops;
    ops->close(t);
    comm_free(comm);
}

void trib_comm_dispose(struct trib_comm *comm)
{
    struct trib_engine *e = &comm->engine;

    trib_driver_stop(comm);
    trib_cache_clear(comm);
    trib_service_drop(comm);
    write_trace(comm);
    trib_engine_close(e);
    trib_log_tell(&comm->log, true);
    if (e->transport)
        e->transport->ops->close(e->transport);
    comm_free(comm);
}

trib_status_t trib_boot_exchange(void *arg, const char *phase, const void *in,
                                 size_t bytes, void *out)
{
    struct trib_boot *b = arg;

    return b->ops->allgather(b, phase, in, bytes, out);
}

trib_status_t trib_comm_join(struct trib_comm *comm, const trib_opts_t *opts,
                             struct trib_boot **boot_out, int *rank_out, int *size_out)
{
    int given = opts->rank_plus_1;
    struct trib_boot_opts bopts = {.rank = given ? given - 1 : comm->cfg.rank,
                                   .size = opts->ranks ? opts->ranks : comm->cfg.size,
                                   .root = opts->root ? opts->root : comm->cfg.root,
                                   .cfg = &comm->cfg,
                                   .log = &comm->log,
                                   .err = &comm->err};
    struct trib_secret secret;
    struct trib_launch launch = {.hold = -1};
    trib_status_t st = trib_secret_given(&secret, &comm->err);
    if (st == TRIB_OK)
        st = trib_launch_complete(&bopts, &launch);
    bopts.secret = secret.is_set ? &secret : &launch.secret;
    if (st == TRIB_OK)
        st = trib_boot_open(&bopts, boot_out);
    if (st == TRIB_OK)
        comm->secret = (*boot_out)->secret;
    trib_launch_release(&launch);
    trib_secret_wipe(&secret);
    trib_secret_wipe(&launch.secret);
    *rank_out = bopts.rank;
    *size_out = bopts.size;
    return st;
}

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
    st = trib_comm_meet(comm, rank, size, &x);
    /* Ranks that differ all see it by themselves, in the same words. */
    if (st != TRIB_OK && st != TRIB_ERR_MISMATCH)
        (boot->ops->fail)(boot, trib_last_error(comm));
    boot->ops->close(boot);
    return st;
}

trib_status_t trib_opts_take(const trib_opts_t *theirs, trib_opts_t *out,
                             struct trib_error *err)
{
    static const struct trib_sized kind = {"trib_opts_t", "TRIB_OPTS_INIT", sizeof(*out),
                                           TRIB_SIZED_UP_TO(trib_opts_t, log_arg)};

    *out = (trib_opts_t)TRIB_OPTS_INIT;
    return theirs ? trib_sized_take(&kind, theirs, out, err) : TRIB_OK;
}

trib_status_t trib_init(const trib_opts_t *opts, trib_comm_t **comm_out)
{
    struct trib_error err = {0};
    trib_opts_t ours;

    init_error[0] = 0;
    if (!comm_out) {
        snprintf(init_error, sizeof(init_error), "trib_init: comm_out is NULL");
        return TRIB_ERR_INVALID;
    }
    *comm_out = NULL;
    if (trib_opts_take(opts, &ours, &err) != TRIB_OK) {
        trib_say_error(trib_error_text(&err));
        return TRIB_ERR_INVALID;
    }
    struct trib_comm *comm = calloc(1, sizeof(*comm));
    if (!comm) {
        snprintf(init_error, sizeof(init_error), "no memory for a communicator");
        return TRIB_ERR_NO_MEMORY;
    }
    trib_comm_claim(comm);
    trib_log_init(&comm->log, TRIB_LOG_WARN, ours.log, ours.log_arg);
    trib_log_pace_init(&comm->log_pace);
    comm->log.pace = &comm->log_pace;
    fenv_t own;
    trib_fpenv_enter_all(&own);
    trib_status_t st =
        trib_config_load(&comm->cfg, ours.config, &comm->log, &comm->err);
    if (st == TRIB_OK) {
        comm->log.level = (trib_log_level_t)comm->cfg.log;
        st = join(comm, &ours);
    }
    if (st == TRIB_OK)
        st = trib_service_join(comm);
    trib_fpenv_leave_all(&own);
    if (st != TRIB_OK) {
        snprintf(init_error, sizeof(init_error), "%s", trib_last_error(comm));
        trib_comm_dispose(comm);
        return st;
    }
    trib_error_clear(&comm->err);
    *comm_out = comm;
    return TRIB_OK;
}

/* Nobody leaves before all others need it no more: the last operation is a barrier. */
static trib_status_t leave(struct trib_comm *comm)
{
    struct trib_plan *plan;
    trib_desc_t desc = TRIB_DESC_INIT;

    if (comm->engine.failed || comm->engine.ranks == 1)
        return TRIB_OK;
    desc.dtype = TRIB_I8;
    trib_status_t st = trib_plan_make(comm, TRIB_BARRIER, &desc, true, &plan);
    if (st == TRIB_OK)
        st = trib_plan_run(plan, NULL, NULL);
    trib_plan_destroy(plan);
    return st;
}

trib_status_t trib_free_comm(trib_comm_t *comm)
{
    if (!comm)
        return TRIB_OK;
    if (comm->n_plans) {
        trib_status_t st = trib_comm_fail(comm, TRIB_ERR_BUSY,
                                          "%d plan%s not freed: trib_plan_free comes first",
                                          comm->n_plans, comm->n_plans == 1 ? " is" : "s are");
        trib_say_error(trib_last_error(comm));
        return st;
    }
    if (trib_comm_in_child(comm)) {
        drop_copy(comm);
        return TRIB_OK;
    }
    trib_cache_clear(comm);
    trib_status_t st = trib_service_detach(comm);
    if (st == TRIB_OK)
        st = leave(comm);
    if (st != TRIB_OK)
        trib_say_error(trib_last_error(comm));
    trib_comm_dispose(comm);
    return st;
}

int trib_rank(const trib_comm_t *comm)
{
    return comm ? comm->engine.rank : -1;
}

int trib_size(const trib_comm_t *comm)
{
    return comm ? comm->engine.ranks : 0;
}

const char *trib_last_error(const trib_comm_t *comm)
{
    if (!comm)
        return init_error;
    return trib_error_text(comm->engine.failed ? &comm->engine.failure : &comm->err);
}

trib_status_t trib_progress(trib_comm_t *comm)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(comm, "trib_progress");
    if (st != TRIB_OK)
        return st;
    if (trib_comm_try_lock(comm)) {
        if (trib_engine_progress(&comm->engine))
            trib_engine_awake(&comm->engine);
        else
            (void)trib_engine_look(&comm->engine);
        trib_comm_unlock(comm);
    }
    trib_service_look(comm);
    return comm->engine.failed;
}
