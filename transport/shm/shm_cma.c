/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm: memory outside all segments, which the kernel copies between two processes
 * (cross memory attach).
 *
 * For the duration of an operation, a peer may publish the address of its own
 * unregistered memory: process_vm_readv reads it. The kernel checks the address in the
 * peer's process, with the peer's rights.
 */
#include <errno.h>
#include <sys/uio.h>

#include "base/error.h"
#include "base/log.h"
#include "transport/common/guard.h"
#include "transport/shm/shm.h"

#define PIECE ((size_t)1 << 20) /* bytes between two checks that the peer is present */

/* Check that this process may write there. Reading a byte needs the same permission. */
trib_status_t trib_shm_cma_probe(struct shm *shm, int peer,
                                 const struct trib_shm_export *x)
{
    char byte;
    struct iovec local = {&byte, 1};
    struct iovec remote = {(void *)(uintptr_t)x->addr, 1};
    int pid = shm->peers[peer].who.pid;

    if (!shm->cma)
        return TRIB_ERR_UNSUPPORTED;
    if (process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1)
        return TRIB_OK;
    if (errno == ESRCH)
        return trib_fail(shm->err, TRIB_ERR_PEER_LOST, "process %d has died", pid);
    if (errno == EFAULT)
        return trib_fail(shm->err, TRIB_ERR_RANGE,
                         "process %d has no memory at the address that it sent", pid);
    trib_log(shm->log, TRIB_LOG_WARN, SHM_NAME,
             "process_vm_readv on process %d failed (%m): memory that is not from "
             "trib_alloc is copied twice; to avoid this, set sysctl "
             "kernel.yama.ptrace_scope=0, use "
             "CAP_SYS_PTRACE for the container, or one user namespace for all ranks",
             pid);
    shm->cma = false;
    return TRIB_ERR_UNSUPPORTED;
}

/*
 * A rank that resumes after its peer declared it lost must not write into memory that
 * the peer now uses for something else. So `left` in the peer's segment is checked
 * before each piece. Copying a piece takes less time than the peers need to agree on
 * the loss. A small window remains between the check and the system call: a process
 * stopped there writes one piece too late. A stop during the call takes effect at its
 * end.
 */
trib_status_t trib_shm_cma_write(struct shm *shm, const struct shm_remote *remote,
                                 size_t off, const void *from, size_t len)
{
    const struct shm_peer *peer = &shm->peers[remote->peer];
    int pid = peer->who.pid;
    size_t done = 0;

    while (done < len) {
        const size_t piece = len - done < PIECE ? len - done : PIECE;
        struct iovec local = {(char *)(uintptr_t)from + done, piece};
        struct iovec target = {(void *)(uintptr_t)(remote->addr + off + done), piece};
        if (trib_shm_has_left(peer))
            return TRIB_ERR_PEER_LOST;
        ssize_t n = process_vm_writev(pid, &local, 1, &target, 1, 0);
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ESRCH)
            return TRIB_ERR_PEER_LOST;
        if (n == 0 || errno == EFAULT)
            return trib_fail(shm->err, TRIB_ERR_RANGE,
                             "process %d no longer has the memory it registered", pid);
        return trib_fail(shm->err, TRIB_ERR_SYSTEM, "process_vm_writev to %d: %m", pid);
    }
    return TRIB_OK;
}

bool trib_shm_may_read(struct shm *shm, int pid)
{
    char byte;
    const struct iovec local = {&byte, 1}, remote = {(void *)1, 1};

    /* Nothing is mapped at address 1: EFAULT means that the kernel allows reading. */
    return shm->cma && process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 &&
           errno == EFAULT;
}

bool trib_shm_reads(struct trib_transport *t, int peer)
{
    return shm_of(t)->peers[peer].reads;
}

static trib_status_t fail_range(struct shm *shm, int pid, size_t len)
{
    return trib_fail(shm->err, TRIB_ERR_RANGE,
                     "process %d does not have %zu bytes at the address that it sent",
                     pid, len);
}

trib_status_t trib_shm_read(struct trib_transport *t, int peer, uint64_t from, void *to,
                            size_t len)
{
    struct shm *shm = shm_of(t);
    const struct shm_peer *p = &shm->peers[peer];
    size_t done = 0;

    if (!p->reads || trib_guard_bars(shm->guard, peer))
        return trib_no_read(t, peer, from, to, len);
    if (from > UINTPTR_MAX - len)
        return fail_range(shm, p->who.pid, len);
    while (done < len) {
        const struct iovec local = {(char *)to + done, len - done};
        const struct iovec remote = {(void *)(uintptr_t)(from + done), len - done};
        const ssize_t n = process_vm_readv(p->who.pid, &local, 1, &remote, 1, 0);
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ESRCH)
            return trib_fail(shm->err, TRIB_ERR_PEER_LOST, "process %d has died",
                             p->who.pid);
        if (n == 0 || errno == EFAULT)
            return fail_range(shm, p->who.pid, len);
        return trib_fail(shm->err, TRIB_ERR_SYSTEM, "process_vm_readv of %d: %m",
                         p->who.pid);
    }
    return TRIB_OK;
}
