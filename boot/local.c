/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous of the ranks of one host, threads or processes, in shared memory.
 *
 * There is no server: each rank waits for all others and monitors their liveness. The
 * rank that detects why the exchange cannot succeed writes the cause to the rendezvous,
 * and all ranks return it.
 */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/idle_function.h"
#include "base/log.h"
#include "base/release.h"
#include "base/time.h"
#include "boot/shm_rendezvous.h"
#include "boot/boot.h"
#include "boot/rank_names.h"

#define PREFIX "local:"
#define CHECK_MS 50 /* interval between two liveness checks */
#define CHECKS_AT_ONCE 16 /* processes checked per interval: 256 ranks take 0.8 s */
#define GAP_MS 1000 /* a gap in our own execution too long for scheduling */

struct local {
    struct trib_boot boot;
    struct trib_rendezvous rendezvous;
    struct trib_rank_name self;
    int size;
    uint32_t generation;
    uint32_t exchange; /* number of the last exchange begun */
    int boot_timeout_ms;
    int stop_timeout_ms;
    int next_check; /* next rank to check */
    uint64_t *stopped_since; /* per rank; 0: not stopped */
    bool *missing; /* per rank, for the message after a timeout */
    const struct trib_log *log;
    struct trib_error *err;
    struct trib_idle *idle;
};

/* One wait. Times are in ns of trib_now_ns. */
struct wait {
    const char *phase;
    uint64_t ticket;
    uint64_t deadline;
    uint64_t checked_ns; /* time of the last liveness check */
    uint64_t now;
    unsigned turns;
};

static bool local_accepts(const char *root)
{
    return strncmp(root, PREFIX, strlen(PREFIX)) == 0;
}

/* Fail this generation on all ranks with the recorded error, ours or an earlier one. */
static trib_status_t fail_all(struct local *l, trib_status_t status, const char *text)
{
    char stands[TRIB_RENDEZVOUS_TEXT];

    trib_rendezvous_fail(&l->rendezvous, l->generation, status, text);
    trib_status_t theirs =
        trib_rendezvous_failure(&l->rendezvous, l->generation, stands);
    if (theirs != TRIB_OK)
        return trib_fail(l->err, theirs, "%s", stands);
    return trib_fail(l->err, status, "%s", text);
}

static void name_rank(const struct local *l, int rank, int pid,
                      char text[TRIB_RANK_NAME_BYTES])
{
    struct trib_rank_name name = l->self;

    name.rank = rank;
    name.pid = pid;
    trib_rank_name_format(&name, text);
}

/* Fail boot because a rank has exited or stopped; fmt continues after its name. */
static trib_status_t fail_rank(struct local *l, int rank, int pid, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static trib_status_t fail_rank(struct local *l, int rank, int pid, const char *fmt, ...)
{
    char name[TRIB_RANK_NAME_BYTES], what[TRIB_RENDEZVOUS_TEXT - TRIB_RANK_NAME_BYTES];
    char text[TRIB_RENDEZVOUS_TEXT];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    name_rank(l, rank, pid, name);
    snprintf(text, sizeof(text), "%s %s", name, what);
    return fail_all(l, TRIB_ERR_PEER_LOST, text);
}

static trib_status_t fail_left(struct local *l, const struct wait *w, int rank, int pid)
{
    return fail_rank(l, rank, pid, "has left trib_init before phase %s", w->phase);
}

static trib_status_t fail_missing(struct local *l, const struct wait *w)
{
    char ranks[TRIB_RENDEZVOUS_TEXT / 2];
    char text[TRIB_RENDEZVOUS_TEXT];

    trib_ranks_format(l->missing, l->size, ranks, sizeof(ranks));
    snprintf(
        text, sizeof(text),
        "%s of %d did not come to phase %s of the start within %d ms: start as many "
        "ranks as TRIB_SIZE says, or raise TRIB_BOOT_TIMEOUT_MS",
        ranks, l->size, w->phase, l->boot_timeout_ms);
    return fail_all(l, TRIB_ERR_BOOT, text);
}

static trib_status_t give_up(struct local *l, const struct wait *w)
{
    char name[TRIB_RANK_NAME_BYTES], text[TRIB_RENDEZVOUS_TEXT];
    struct trib_error why = {0};

    assert(trib_idle_answer(l->idle));
    (void)trib_idle_fail(l->idle, &why, "%s has given up in phase %s of the start",
                         trib_rank_name_format(&l->self, name), w->phase);
    snprintf(text, sizeof(text), "%s", trib_error_text(&why));
    return fail_all(l, TRIB_ERR_ABORTED, text);
}

/* Fill l->missing and return the number of ranks that have not published yet. */
static int count_missing(struct local *l, const struct wait *w)
{
    int count = 0;

    for (int i = 0; i < l->size; i++) {
        l->missing[i] = !trib_rendezvous_has(&l->rendezvous, i, w->ticket);
        count += l->missing[i];
    }
    return count;
}

static trib_status_t check_rank(struct local *l, const struct wait *w, int rank)
{
    struct trib_process process;
    enum trib_rendezvous_presence presence =
        trib_rendezvous_presence(&l->rendezvous, rank, l->generation, &process);

    if (presence == TRIB_PRESENCE_LEFT) {
        if (trib_rendezvous_has(&l->rendezvous, rank, w->ticket))
            return TRIB_OK; /* all ranks have published */
        return fail_left(l, w, rank, process.pid);
    }
    if (process.pid == l->self.pid)
        return TRIB_OK; /* a thread of this process */
    switch (trib_process_query(&process)) {
    case TRIB_PROCESS_DEAD:
        /* Not an error if all ranks published before it exited, or if it was a shell
         * whose child has joined. */
        if (count_missing(l, w) == 0 ||
            trib_rendezvous_presence(&l->rendezvous, rank, l->generation, &process) !=
                presence)
            return TRIB_OK;
        return fail_rank(l, rank, process.pid, "%s, phase %s of the start",
                         presence == TRIB_PRESENCE_JOINED
                             ? "has died"
                             : "ended before it called trib_init, or says itself "
                               "why it cannot join",
                         w->phase);
    case TRIB_PROCESS_STOPPED:
        if (!l->stopped_since[rank])
            l->stopped_since[rank] = w->now;
        if (w->now - l->stopped_since[rank] < trib_limit_ns(l->stop_timeout_ms))
            return TRIB_OK;
        return fail_rank(
            l, rank, process.pid,
            "has been stopped for %d ms, phase %s of the start: continue it sooner "
            "(kill -CONT %d) or raise TRIB_STOP_TIMEOUT_MS",
            l->stop_timeout_ms, w->phase, process.pid);
    case TRIB_PROCESS_RUNS:
        break;
    }
    l->stopped_since[rank] = 0;
    return TRIB_OK;
}

static trib_status_t check_ranks(struct local *l, struct wait *w)
{
    trib_status_t status = TRIB_OK;

    w->checked_ns = w->now;
    for (int i = 0; i < l->size && i < CHECKS_AT_ONCE && status == TRIB_OK; i++) {
        int rank = l->next_check++ % l->size;
        if (rank != l->self.rank)
            status = check_rank(l, w, rank);
    }
    l->next_check %= l->size;
    return status;
}

/* Spin for a few microseconds, then yield the core; the caller may give up in
 * between. */
static void rest(struct local *l, struct wait *w)
{
    unsigned turn = w->turns++;

    if (turn < 200) {
        trib_pause();
    } else if (turn < 300) {
        sched_yield();
    } else {
        long us = turn < 400 ? 50 : 1000;
        (void)trib_idle_sleep(l->idle, (uint64_t)us * 1000);
    }
}

/* Extend the deadlines after this process was stopped: the other ranks may have been
 * stopped as well. */
static void forgive_gap(struct local *l, struct wait *w)
{
    uint64_t gap = trib_gap_ns(&w->now, GAP_MS);

    w->deadline = trib_deadline_later(w->deadline, gap);
    if (gap)
        memset(l->stopped_since, 0, (size_t)l->size * sizeof(*l->stopped_since));
}

static trib_status_t wait_for_all(struct local *l, struct wait *w)
{
    char text[TRIB_RENDEZVOUS_TEXT];
    int rank = 0;

    w->now = trib_now_ns();
    w->checked_ns = w->now;
    w->deadline = trib_limit_deadline(l->boot_timeout_ms);
    for (;;) {
        /* Check even if all have published: another rank may have failed since. */
        trib_status_t status =
            trib_rendezvous_failure(&l->rendezvous, l->generation, text);
        if (status != TRIB_OK)
            return trib_fail(l->err, status, "%s", text);
        while (rank < l->size && trib_rendezvous_has(&l->rendezvous, rank, w->ticket))
            rank++;
        if (rank == l->size)
            return TRIB_OK;
        forgive_gap(l, w);
        if (w->now >= w->deadline && count_missing(l, w) > 0)
            return fail_missing(l, w);
        if (w->now - w->checked_ns >= CHECK_MS * UINT64_C(1000000))
            status = check_ranks(l, w);
        if (status != TRIB_OK)
            return status;
        rest(l, w);
        if (trib_idle_call(l->idle))
            return give_up(l, w);
    }
}

/* Compare with rank 0, so that all ranks report the same mismatch. */
static trib_status_t check_entry(struct local *l, int rank,
                                 const struct trib_rendezvous_entry *first,
                                 const struct trib_rendezvous_entry *entry)
{
    const bool same = strcmp(entry->release, first->release) == 0;
    char text[TRIB_RENDEZVOUS_TEXT];
    char name[TRIB_RANK_NAME_BYTES];
    struct trib_process process;

    if (same && entry->bytes == first->bytes && strcmp(entry->phase, first->phase) == 0)
        return TRIB_OK;
    trib_rendezvous_presence(&l->rendezvous, rank, l->generation, &process);
    name_rank(l, rank, process.pid, name);
    snprintf(text, sizeof(text),
             "%s runs Tributary %s, rank 0 runs %s: install the same version", name,
             entry->release, first->release);
    if (!same)
        return fail_all(l, TRIB_ERR_MISMATCH, text);
    snprintf(
        text, sizeof(text),
        "%s is in phase %s of the start with %u bytes, rank 0 in phase %s with %u: "
        "install the same build of Tributary everywhere",
        name, entry->phase, entry->bytes, first->phase, first->bytes);
    return fail_all(l, TRIB_ERR_MISMATCH, text);
}

static trib_status_t get_entry(struct local *l, const struct wait *w, int rank,
                               struct trib_rendezvous_entry *out)
{
    struct trib_process process;

    if (trib_rendezvous_get(&l->rendezvous, rank, w->ticket, out))
        return TRIB_OK;
    trib_rendezvous_presence(&l->rendezvous, rank, l->generation, &process);
    return fail_left(l, w, rank, process.pid);
}

static trib_status_t collect(struct local *l, const struct wait *w, size_t bytes,
                             uint8_t *out)
{
    struct trib_rendezvous_entry first;
    struct trib_rendezvous_entry entry;
    trib_status_t status = get_entry(l, w, 0, &first);

    for (int i = 0; status == TRIB_OK && i < l->size; i++) {
        status = get_entry(l, w, i, &entry);
        if (status == TRIB_OK)
            status = check_entry(l, i, &first, &entry);
        if (status == TRIB_OK && bytes == entry.bytes)
            memcpy(out + (size_t)i * bytes, entry.blob, bytes);
    }
    return status;
}

static trib_status_t local_allgather(struct trib_boot *b, const char *phase,
                                     const void *in, size_t bytes, void *out)
{
    struct local *l = (struct local *)b;
    struct trib_rendezvous_entry entry = {.bytes = (uint32_t)bytes};

    memcpy(entry.release, trib_release, sizeof(entry.release));
    snprintf(entry.phase, sizeof(entry.phase), "%s", phase);
    if (bytes)
        memcpy(entry.blob, in, bytes);
    struct wait w = {.phase = entry.phase,
                     .ticket = trib_ticket(l->generation, ++l->exchange)};
    trib_rendezvous_put(&l->rendezvous, l->self.rank, w.ticket, &entry);
    trib_status_t status = wait_for_all(l, &w);
    return status == TRIB_OK ? collect(l, &w, bytes, out) : status;
}

static void local_fail(struct trib_boot *b, const char *why)
{
    struct local *l = (struct local *)b;
    char name[TRIB_RANK_NAME_BYTES];
    char text[TRIB_RENDEZVOUS_TEXT];

    trib_rank_name_format(&l->self, name);
    snprintf(text, sizeof(text), "%s failed during the start: %s", name, why);
    trib_rendezvous_fail(&l->rendezvous, l->generation, TRIB_ERR_PEER_LOST, text);
}

static void local_close(struct trib_boot *b)
{
    struct local *l = (struct local *)b;

    trib_rendezvous_leave(&l->rendezvous, l->self.rank, l->generation);
    trib_rendezvous_close(&l->rendezvous);
    free(l->stopped_since);
    free(l->missing);
    free(l);
}

/* Parsed text of trib_local_root: path and identity of the rendezvous. */
struct place {
    char path[64];
    uint64_t key; /* 0: not in the text */
    int fd; /* descriptor number that ranks inherit; -1: unknown */
};

static void read_place(const char *root, struct place *out)
{
    const char *path = root + strlen(PREFIX), *at = strrchr(path, '@');
    const char *last = strrchr(path, '/');

    *out = (struct place){.fd = -1};
    snprintf(out->path, sizeof(out->path), "%.*s",
             at ? (int)(at - path) : (int)strlen(path), path);
    if (!at || !last)
        return;
    out->key = strtoull(at + 1, NULL, 16);
    out->fd = out->key ? atoi(last + 1) : -1;
}

/* Explain the two errors caused by namespaces; %m covers all others. */
static const char *barred_by(int error)
{
    if (error == EACCES || error == EPERM)
        return "; the rank runs as another user, or in a user namespace of its own, "
               "and its parent closed the descriptor inherited from trib-run: use "
               "TCP, by trib-run --root HOST:PORT";
    if (error == ENOENT)
        return "; it lives as long as the process that made it, on that host. It is "
               "not visible from another PID namespace: use TCP there, by trib-run "
               "--root HOST:PORT";
    return "; it lives as long as the process that made it, on that host";
}

static trib_status_t open_rendezvous(struct local *l, const char *root)
{
    struct place place;

    read_place(root, &place);
    if (place.fd >= 0 &&
        trib_rendezvous_map(place.fd, place.key, &l->rendezvous) == TRIB_OK)
        return TRIB_OK;
    const char *path = place.path;
    trib_status_t status = trib_rendezvous_open(path, place.key, &l->rendezvous);
    const char *maker = l->rendezvous.release;

    if (status == TRIB_ERR_SYSTEM)
        return trib_fail(l->err, TRIB_ERR_BOOT,
                         "cannot open the rendezvous %s (TRIB_ROOT): %m%s", path,
                         barred_by(errno));
    if (status == TRIB_ERR_UNSUPPORTED)
        return trib_fail(l->err, TRIB_ERR_MISMATCH,
                         "the rendezvous %s (TRIB_ROOT) was made by %s%s, and rank "
                         "%d has %s: install the same version, of trib-run, too",
                         path, *maker ? "Tributary " : "an older Tributary", maker,
                         l->self.rank, trib_release);
    if (status != TRIB_OK)
        return trib_fail(l->err, TRIB_ERR_BOOT,
                         "%s (TRIB_ROOT) is not a Tributary rendezvous: use the text "
                         "of trib-run or trib_local_root",
                         path);
    return TRIB_OK;
}

static trib_status_t check_size(struct local *l, const char *root)
{
    if (l->rendezvous.ranks == l->size)
        return TRIB_OK;
    trib_status_t status =
        trib_fail(l->err, TRIB_ERR_MISMATCH,
                  "rank %d has TRIB_SIZE=%d, but the rendezvous %s was made for %d: "
                  "set TRIB_SIZE to %d",
                  l->self.rank, l->size, root + strlen(PREFIX), l->rendezvous.ranks,
                  l->rendezvous.ranks);
    trib_rendezvous_close(&l->rendezvous);
    return status;
}

static trib_status_t join_rendezvous(struct local *l)
{
    struct trib_process holder = {0};
    char name[TRIB_RANK_NAME_BYTES];

    if (trib_rendezvous_join(&l->rendezvous, l->self.rank, &l->generation, &holder) ==
        TRIB_OK)
        return TRIB_OK;
    name_rank(l, l->self.rank, holder.pid, name);
    return trib_fail(l->err, TRIB_ERR_MISMATCH,
                     "%s has joined already, and process %d came with the same number: "
                     "give each process a TRIB_RANK of its own",
                     name, l->self.pid);
}

/* Take the secret of the rendezvous, unless the ranks were given one. */
static void take_secret(struct local *l, const struct trib_boot_opts *opts)
{
    if (opts->secret && opts->secret->is_set) {
        l->boot.secret = *opts->secret;
        return;
    }
    trib_rendezvous_secret(&l->rendezvous, &l->boot.secret);
    trib_boot_arm(opts, &l->boot.secret);
}

static trib_status_t local_open(const struct trib_boot_opts *opts,
                                struct trib_boot **out)
{
    struct local *l = calloc(1, sizeof(*l));
    if (!l)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory in boot");

    l->boot.ops = &trib_boot_local;
    l->size = opts->size;
    l->boot_timeout_ms = opts->cfg->boot_timeout_ms;
    l->stop_timeout_ms = opts->cfg->stop_timeout_ms;
    l->log = opts->log;
    l->err = opts->err;
    l->idle = opts->idle;
    trib_rank_name_self(opts->rank, &l->self);
    l->stopped_since = calloc((size_t)opts->size, sizeof(*l->stopped_since));
    l->missing = calloc((size_t)opts->size, sizeof(*l->missing));
    trib_status_t status = TRIB_OK;
    if (!l->stopped_since || !l->missing)
        status = trib_fail(l->err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    if (status == TRIB_OK)
        status = open_rendezvous(l, opts->root);
    if (status == TRIB_OK)
        status = check_size(l, opts->root);
    if (status != TRIB_OK)
        goto err_free;
    status = join_rendezvous(l);
    if (status != TRIB_OK)
        goto err_close;
    take_secret(l, opts);
    trib_log(l->log, TRIB_LOG_DEBUG, "boot", "joined %s, generation %u", opts->root,
             l->generation);
    *out = &l->boot;
    return TRIB_OK;

err_close:
    trib_rendezvous_close(&l->rendezvous);
err_free:
    free(l->stopped_since);
    free(l->missing);
    free(l);
    return status;
}

const struct trib_boot_ops trib_boot_local = {
    .name = "local",
    .detail = "rendezvous in shared memory on one host (trib-run, trib_local_create)",
    .accepts = local_accepts,
    .open = local_open,
    .allgather = local_allgather,
    .fail = local_fail,
    .close = local_close,
};
