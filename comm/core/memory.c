/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_alloc, trib_register, and trib_stats.
 */

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/meminfo.h"
#include "base/sized.h"
#include "comm/core/comm_lock.h"
#include "comm/core/communicator.h"
#include "pipeline/p2p/p2p.h"

/* Record the transport's error message; the caller holds the lock that guards
 * comm->cause. */
static void refuse(struct trib_comm *comm, trib_status_t st, const char *call,
                   size_t bytes)
{
    assert(st != TRIB_OK);
    (void)trib_comm_fail(comm, st, "%s of %zu bytes: %s", call, bytes,
                         trib_comm_cause(comm, st));
}

trib_status_t trib_alloc(trib_comm_t *comm, size_t bytes, void **ptr_out)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!ptr_out || bytes == 0)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "trib_alloc: %s",
                              ptr_out ? "0 bytes" : "ptr_out is NULL");
    *ptr_out = NULL;
    trib_status_t st = trib_comm_ours(comm, "trib_alloc");
    if (st != TRIB_OK)
        return st;
    trib_comm_lock(comm);
    trib_error_clear(&comm->cause);
    st = trib_meminfo_check(bytes, &comm->cause);
    if (st == TRIB_OK)
        st = trib_memory_alloc(&comm->engine.memories, bytes, ptr_out);
    if (st != TRIB_OK)
        refuse(comm, st, "trib_alloc", bytes);
    trib_comm_unlock(comm);
    if (st == TRIB_OK && comm->hooks)
        comm->hooks->registered(comm, *ptr_out, bytes);
    return st;
}

trib_status_t trib_register(trib_comm_t *comm, void *ptr, size_t bytes)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    if (!ptr || bytes == 0)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "trib_register: %s",
                              ptr ? "0 bytes" : "ptr is NULL");
    trib_status_t st = trib_comm_ours(comm, "trib_register");
    if (st != TRIB_OK)
        return st;
    trib_comm_lock(comm);
    trib_error_clear(&comm->cause);
    st = trib_memory_register(&comm->engine.memories, ptr, bytes);
    if (st != TRIB_OK)
        refuse(comm, st, "trib_register", bytes);
    trib_comm_unlock(comm);
    if (st == TRIB_OK && comm->hooks)
        comm->hooks->registered(comm, ptr, bytes);
    return st;
}

/* Return true if the CPU can read the memory: it sums and copies into slots. */
static bool is_mapped(const void *ptr, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)ptr;
    uintptr_t first = at / page * page;

    if (bytes > PTRDIFF_MAX || bytes > UINTPTR_MAX - at)
        return false;
    return msync((void *)first, at + bytes - first, MS_ASYNC) == 0;
}

trib_status_t trib_register_dmabuf(trib_comm_t *comm, int fd, size_t offset, void *ptr,
                                   size_t bytes)
{
    static const char call[] = "trib_register_dmabuf";
    struct trib_dmabuf d = {.fd = fd, .offset = offset, .ptr = ptr, .len = bytes};

    if (!comm)
        return TRIB_ERR_INVALID;
    if (fcntl(fd, F_GETFD) < 0)
        return trib_comm_fail(comm, TRIB_ERR_INVALID, "%s: descriptor %d is not open",
                              call, fd);
    if (bytes == 0 || !ptr || !is_mapped(ptr, bytes))
        return trib_comm_fail(
            comm, TRIB_ERR_INVALID,
            "%s: %zu bytes at %p are not mapped: the CPU computes the sums, so map the "
            "dma-buf, or copy to mapped memory",
            call, bytes, ptr);
    trib_status_t st = trib_comm_ours(comm, call);
    if (st != TRIB_OK)
        return st;
    trib_comm_lock(comm);
    trib_error_clear(&comm->cause);
    st = trib_memory_register_dmabuf(&comm->engine.memories, &d);
    if (st != TRIB_OK)
        refuse(comm, st, call, bytes);
    trib_comm_unlock(comm);
    return st;
}

static trib_status_t drop(trib_comm_t *comm, void *ptr, bool allocated,
                          const char *call, const char *maker)
{
    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(comm, call);
    if (st != TRIB_OK)
        return st;
    if (comm->hooks)
        st = comm->hooks->deregister(comm, ptr);
    trib_comm_lock(comm);
    struct trib_engine *e = &comm->engine;
    /* After a failure a peer may still be in an operation that this rank has left. */
    if (e->failed)
        trib_engine_part(e);
    st = trib_engine_is_busy(e) || st != TRIB_OK
             ? TRIB_ERR_BUSY
             : trib_memory_remove(&e->memories, ptr, allocated, e->failed != TRIB_OK);
    trib_comm_unlock(comm);
    if (st == TRIB_ERR_BUSY)
        return trib_comm_fail(comm, st, "%s while a plan runs: wait for the plan first",
                              call);
    if (st != TRIB_OK)
        return trib_comm_fail(comm, st, "%s: %p was not returned by %s of this "
                                        "communicator", call, ptr, maker);
    return TRIB_OK;
}

trib_status_t trib_free(trib_comm_t *comm, void *ptr)
{
    return ptr ? drop(comm, ptr, true, "trib_free", "trib_alloc") : TRIB_OK;
}

trib_status_t trib_deregister(trib_comm_t *comm, void *ptr)
{
    return drop(comm, ptr, false, "trib_deregister", "trib_register");
}

static uint64_t count_connected(const struct trib_engine *e)
{
    uint64_t n = 0;

    for (int r = 0; r < e->size; r++)
        n += e->links[r].connected;
    return n;
}

static trib_status_t count(const trib_comm_t *comm, trib_stats_t *stats)
{
    /* The progress thread may be updating the counters, so take the lock, which `const`
     * does not cover. */
    struct trib_comm *locked = (struct trib_comm *)comm;
    const struct trib_engine *e = &comm->engine;
    trib_status_t st = trib_comm_ours(locked, "trib_stats");

    if (st != TRIB_OK)
        return st;
    assert(e->size >= e->ranks);
    trib_comm_lock(locked);
    size_t slots = trib_arena_bytes(&e->arena) + trib_p2p_bytes(e);
    *stats = (trib_stats_t){
        .size = sizeof(*stats),
        .operations = e->stats.operations,
        .wire_bytes = e->stats.wire_bytes,
        .payload_bytes = e->stats.payload_bytes,
        .dense_bytes = e->stats.dense_bytes,
        .copied_bytes = e->stats.copied_bytes,
        .messages = e->stats.messages,
        .shared_bytes = slots + e->memories.allocated_bytes,
        .slot_bytes = slots,
        .peers = count_connected(e),
        .wait_ns = e->stats.wait_ns,
        .encode_ns = e->stats.encode_ns,
        .input_bytes = e->stats.input_bytes,
        .input_dense_bytes = e->stats.input_dense_bytes,
    };
    trib_comm_unlock(locked);
    if (comm->hooks)
        comm->hooks->stats(comm, stats);
    return TRIB_OK;
}

trib_status_t trib_stats(const trib_comm_t *comm, trib_stats_t *stats)
{
    static const struct trib_sized kind = {
        "trib_stats_t", "sizeof(trib_stats_t)", sizeof(*stats),
        TRIB_SIZED_UP_TO(trib_stats_t, served)};
    struct trib_error err = {0};
    trib_stats_t counted;

    if (!comm)
        return TRIB_ERR_INVALID;
    if (!stats)
        return trib_comm_fail((struct trib_comm *)comm, TRIB_ERR_INVALID,
                              "trib_stats: stats is NULL");
    if (trib_sized_fits(&kind, stats, &err) != TRIB_OK)
        return trib_comm_fail((struct trib_comm *)comm, TRIB_ERR_INVALID, "%s",
                              trib_error_text(&err));
    const trib_status_t st = count(comm, &counted);
    if (st == TRIB_OK)
        trib_sized_give(&kind, &counted, stats);
    return st;
}
