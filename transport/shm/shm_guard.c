/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm between a job and an aggregator, which do not trust each other
 * (transport/common/guard.h).
 *
 * Claims in a peer's address and blobs are compared with the kernel's report about the
 * socket that they name. Blocking on another process is allowed during the ranks'
 * rendezvous, which no aggregator worker runs. Later an aggregator requests without
 * blocking, and the caller retries.
 */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "transport/common/guard.h"
#include "transport/shm/shm.h"

/* Limit of address space that one job may use of an aggregator, which has 128 TiB for
 * all jobs. */
#define UNTRUSTED_MAX (UINT64_C(256) << 30)

struct trib_handout_owner trib_shm_owner(const struct shm *shm, int peer, int pid,
                                         uint32_t name)
{
    return (struct trib_handout_owner){.name = name,
                                       .pid = pid,
                                       .aggregator =
                                           shm->guard && peer >= shm->guard->ranks,
                                       .guard = shm->guard,
                                       .log = shm->log};
}

trib_status_t trib_shm_guard_reach(struct shm *shm, int peer,
                                   const struct trib_shm_address *a)
{
    const struct trib_handout_owner owner =
        trib_shm_owner(shm, peer, a->pid, a->handout);

    assert(trib_guard_bars(shm->guard, peer));
    if (!shm->guard->serves && trib_handout_admit(shm->handout, a->pid) != TRIB_OK)
        return trib_fail(shm->err, TRIB_ERR_UNSUPPORTED,
                         "too many aggregators on this host for shared memory");
    return trib_handout_probe(&owner, shm->err);
}

/* Return true for a local datagram socket. This process writes to no other descriptor
 * from an untrusted peer: a write might block, or do something that only this process
 * is permitted to do. */
static bool is_bell(int fd)
{
    int domain = 0, type = 0;
    socklen_t bytes = sizeof(int);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 &&
           domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
           type == SOCK_DGRAM;
}

static trib_status_t adopt(struct shm *shm, const struct shm_peer *p,
                           const struct trib_segment_id *id, int fd,
                           struct trib_segment *out)
{
    assert(fd >= 0);
    if (shm->guard->serves && id->map_len > UNTRUSTED_MAX - shm->untrusted_bytes)
        return trib_fail(
            shm->err, TRIB_ERR_INVALID,
            "process %d provides more memory than an aggregator maps per job",
            p->who.pid);
    trib_status_t status = trib_segment_adopt(id, fd, p->who.pid, out, shm->err);
    if (status == TRIB_OK)
        shm->untrusted_bytes += out->map_len;
    return status;
}

/* An aggregator's worker never blocks: it checks for the answer and returns. */
static trib_status_t request_segment(struct shm *shm, int peer, uint64_t key,
                                     struct trib_handout_fds *out)
{
    struct shm_peer *p = &shm->peers[peer];
    const struct trib_handout_owner owner =
        trib_shm_owner(shm, peer, p->who.pid, p->handout);

    if (!shm->guard->serves || p->in_rendezvous)
        return trib_handout_ask(&owner, key, out, shm->err);
    trib_status_t status = trib_handout_step(&owner, key, &p->call, out, shm->err);
    if (status == TRIB_ERR_PEER_LOST)
        trib_shm_peer_silent(shm, peer, trib_error_text(shm->err));
    return status;
}

trib_status_t trib_shm_guard_attach(struct shm *shm, int peer,
                                    const struct trib_segment_id *id,
                                    struct trib_segment *out)
{
    struct shm_peer *p = &shm->peers[peer];
    struct trib_handout_fds fds;
    trib_status_t status = request_segment(shm, peer, id->key, &fds);

    if (status != TRIB_OK)
        return status;
    status = adopt(shm, p, id, fds.memory, out);
    close(fds.memory);
    if (fds.bell >= 0 && status == TRIB_OK && atomic_load(&p->pipe) < 0 &&
        is_bell(fds.bell))
        atomic_store_explicit(&p->pipe, fds.bell, memory_order_release);
    else if (fds.bell >= 0)
        close(fds.bell);
    return status;
}

void trib_shm_guard_detach(struct shm *shm, struct trib_segment *seg, bool in_child)
{
    if (shm->guard && !seg->counted)
        shm->untrusted_bytes -=
            seg->map_len < shm->untrusted_bytes ? seg->map_len : shm->untrusted_bytes;
    trib_segment_release(seg, in_child);
}

void trib_shm_guard_wake(int fd)
{
    if (fd >= 0)
        (void)!send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}
