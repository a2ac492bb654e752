/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits on open files and threads of stores, so that one tenant's stores do not
 * exclude other jobs.
 *
 * Open files: each rank of a store is a connection.
 *
 *     all descriptors, minus tribd's own    1
 *     connections of all stores             3/4
 *     of the stores of one user             1/2, or 3/4 if the method has no user names
 *     of one store                          3/8
 *
 * A store counts with all its ranks from its creation, so none of them is refused
 * later. The connection of a rank that comes back counts while its lost one is still
 * open: for these, the limits of all stores and of one user are 1/8 higher.
 *
 * Threads: a store has one per worker. Other jobs start threads, too, and TasksMax=
 * limits all. If stores have THREADS_MAX threads, a new store has only one. One user's
 * stores may have half as many if the method has user names. A single thread is enough
 * for a store when many of them run.
 *
 * A store that has ended is no longer a job, but keeps a client and a thread while it
 * waits for the disk. If the disk hangs, there may be ENDED_STORES_MAX of them before
 * new stores are refused, and half as many of one user if the method has user names.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "agg/daemon/server_parts.h"
#include "base/minmax.h"

enum {
    OWN_FILES = 48,
    EIGHTHS_ALL = 6,
    EIGHTHS_USER = 4,
    EIGHTHS_STORE = 3,
    EIGHTHS_BACK = 1,
    THREADS_MAX = 4096, /* half of TasksMax= in tribd.service */
};

/* Return the descriptors available to clients. The limit may change at run time. */
static uint64_t files_of_others(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return UINT32_MAX;
    return files.rlim_cur > OWN_FILES ? files.rlim_cur - OWN_FILES : 0;
}

struct totals {
    uint64_t files; /* open */
    uint64_t threads;
    uint32_t ended; /* stores that only wait for the disk */
};

/* Count one user's stores, or all stores if `user` is NULL. */
static struct totals count_stores(const struct server *s, const char *user)
{
    struct totals t = {0};

    for (int i = 0; i < s->n_clients; i++) {
        const struct client *c = s->clients[i];
        if (!c->store || (user && strcmp(c->join.user, user) != 0))
            continue;
        t.files += store_job_files(c->store);
        t.threads += store_job_threads(c->store);
        t.ended += store_job_is_empty(c->store);
    }
    return t;
}

static bool disk_keeps_up(const struct server *s, const char *user, char *why,
                          size_t bytes)
{
    const uint32_t of_user =
        quotas_is_unnamed(user) ? ENDED_STORES_MAX : ENDED_STORES_MAX / 2;
    const uint32_t all = count_stores(s, NULL).ended, own = count_stores(s, user).ended;

    if (all < ENDED_STORES_MAX && own < of_user)
        return true;
    snprintf(why, bytes,
             "%u stores that have ended (%u of this user) still wait for the disk of "
             "tribd's snapshots: check that disk, and retry later",
             all, own);
    return false;
}

bool store_share_allows(const struct server *s, const struct store_share *asked,
                        char *why, size_t bytes)
{
    const uint64_t files = files_of_others();
    const uint64_t back = asked->exists ? EIGHTHS_BACK : 0;
    const uint64_t of_all = files * (EIGHTHS_ALL + back) / 8;
    const uint64_t of_user =
        quotas_is_unnamed(asked->user) ? of_all : files * (EIGHTHS_USER + back) / 8;
    const uint64_t of_store = files * EIGHTHS_STORE / 8;
    const uint64_t more =
        asked->exists ? 1
                      : asked->ranks + trib_min(asked->ranks, (uint64_t)s->n_workers);

    assert(asked->user[0] && asked->ranks > 0);
    if (asked->ranks > of_store)
        snprintf(why, bytes,
                 "a store may have %ju connections here, but has %u ranks: start "
                 "fewer, or raise tribd's limit of open files (LimitNOFILE=)",
                 (uintmax_t)of_store, asked->ranks);
    else if (count_stores(s, asked->user).files - asked->freed + more > of_user ||
             count_stores(s, NULL).files - asked->freed + more > of_all)
        snprintf(why, bytes,
                 "stores use all connections that they may use; the remaining open "
                 "files are reserved for other jobs: retry later, or raise tribd's "
                 "limit (LimitNOFILE=)");
    else
        return asked->exists || disk_keeps_up(s, asked->user, why, bytes);
    return false;
}

uint32_t store_share_threads(const struct server *s, const struct store_share *asked)
{
    const uint32_t most = (uint32_t)trib_min(asked->ranks, (uint64_t)s->n_workers);
    const uint32_t of_user =
        quotas_is_unnamed(asked->user) ? THREADS_MAX : THREADS_MAX / 2;

    assert(most > 0);
    return count_stores(s, NULL).threads + most <= THREADS_MAX &&
                   count_stores(s, asked->user).threads + most <= of_user
               ? most
               : 1;
}
