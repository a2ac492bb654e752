/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of registrations: memory of malloc that operations use in place.
 *
 * A range is registered when it is used for the second time, and stays registered
 * until the memory is unmapped (base/map_watch.h), the cache is full, or its protection
 * domain ends. Transports of a domain share its registrations. There is one table in
 * a process, because the limit of locked memory is the process's.
 *
 * A registration keeps its pages, whatever is mapped at their addresses later. So the
 * rule of this file: an operation never gets a registration whose memory was unmapped
 * before it asks. The watch marks registrations as stale; threads that use the cache
 * deregister them, never the watch itself.
 *
 * Threads: any thread may call; a forked child must not use what its parent got.
 */
#ifndef TRANSPORT_VERBS_VERBS_CACHE_H
#define TRANSPORT_VERBS_VERBS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/verbs_adapter.h"

/* The parameters of a transport. */
struct verbs_cache_owner {
    const struct trib_verbs_api *api;
    struct verbs_domain *domain;
    const void *user; /* communicator: its operations share memory that peers write */
    int relaxed; /* VERBS_RELAXED_ORDERING or 0 */
    size_t most; /* bytes that the cache may pin in this process */
};

/* A registration. The fields are constant while it is in use. */
struct verbs_cached {
    struct ibv_mr *mr;
    uint8_t *ptr;
    uint64_t iova; /* of ptr */
    size_t len;
    /* private to verbs_cache.c, guarded by the watch's lock */
    const struct verbs_domain *domain;
    uint64_t used_at; /* on the table's clock */
    uint32_t state;
    uint32_t users; /* operations */
    uint32_t uses; /* since it was registered, or deregistered */
    uint32_t needed; /* uses until it is registered */
    bool writable; /* by peers */
    bool is_written; /* its user lets peers write */
    const void *user;
    bool stale;
};

/**
 * trib_verbs_cache_get - return a registration of memory for one operation.
 *
 * written  peers may write to it; no other user has this registration then
 * why_out  a clause that says why the memory cannot be watched, if that was tried; or
 *          NULL
 * returns  NULL: the memory is not registered
 */
struct verbs_cached *trib_verbs_cache_get(const struct verbs_cache_owner *owner,
                                          void *ptr, size_t len, bool written,
                                          const char **why_out);

/** trib_verbs_cache_put - end the use by an operation; revoke: deregister before
 * returning, so that no access to the memory follows. */
void trib_verbs_cache_put(const struct verbs_cache_owner *owner, struct verbs_cached *c,
                          bool revoke);

/** trib_verbs_cache_tidy - deregister memory that was unmapped. */
void trib_verbs_cache_tidy(const struct trib_verbs_api *api);

/** trib_verbs_cache_trim - deregister all memory that no operation uses, of all domains
 * of this process; return true if there was any. */
bool trib_verbs_cache_trim(const struct trib_verbs_api *api);

/** trib_verbs_cache_forget - deregister all memory of a domain, which has no users. */
void trib_verbs_cache_forget(const struct trib_verbs_api *api,
                             struct verbs_domain *domain);

/** trib_verbs_cache_pinned - return the bytes of registered pages. */
size_t trib_verbs_cache_pinned(void);

#endif
