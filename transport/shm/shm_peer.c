/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm: connecting to peers, disconnecting, and detecting losses.
 */
#include "transport/shm/shm.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/snapshot.h"
#include "transport/common/guard.h"

#define TICK_NS 20000000u /* between two checks for dead peers */

trib_status_t trib_shm_address(struct trib_transport *t, struct trib_address *out)
{
    struct shm *shm = shm_of(t);
    struct trib_segment_id id = trib_segment_id(&shm->control);
    struct trib_shm_address a = {
        .magic = TRIB_SHM_ADDRESS_MAGIC,
        .version = TRIB_SHM_VERSION,
        .boot = shm->me.boot,
        .space = shm->me.space,
        .start = shm->me.start,
        .pid = shm->me.pid,
        .fd = id.fd,
        .key = id.key,
        .map_len = id.map_len,
        .handout = trib_handout_name(shm->handout),
    };

    trib_peer_address(&a, sizeof(a), out);
    return TRIB_OK;
}

/* Check that this process can reach the address; error messages give the reason. */
static trib_status_t address_check(struct shm *shm, int peer,
                                   const struct trib_address *address,
                                   struct trib_shm_address *out)
{
    if (address->len != sizeof(*out))
        return trib_fail(shm->err, TRIB_ERR_INVALID,
                         "peer %d: the address has %u bytes, shm's has %zu", peer,
                         address->len, sizeof(*out));
    memcpy(out, address->bytes, sizeof(*out));
    if (out->magic != TRIB_SHM_ADDRESS_MAGIC)
        return trib_fail(shm->err, TRIB_ERR_INVALID, "peer %d: not an address of shm",
                         peer);
    if (out->version != TRIB_SHM_VERSION)
        return trib_fail(shm->err, TRIB_ERR_MISMATCH,
                         "peer %d has version %u of shm, this process version %u: "
                         "install the same version of Tributary",
                         peer, out->version, TRIB_SHM_VERSION);
    if (out->boot != shm->me.boot)
        return trib_fail(
            shm->err, TRIB_ERR_UNSUPPORTED,
            "peer %d (process %d) runs on another host: shm reaches one host "
            "only",
            peer, out->pid);
    if (out->space != shm->me.space)
        return trib_fail(shm->err, TRIB_ERR_UNSUPPORTED,
                         "peer %d (process %d) is in another pid namespace: let the "
                         "containers share one",
                         peer, out->pid);
    if (trib_guard_bars(shm->guard, peer) && out->pid == shm->me.pid)
        return trib_fail(
            shm->err, TRIB_ERR_UNSUPPORTED,
            "peer %d claims to be this process (%d), which accepts no thread of its "
            "own as a peer",
            peer, out->pid);
    return TRIB_OK;
}

static struct trib_segment_id id_of(const struct trib_shm_address *a)
{
    return (struct trib_segment_id){
        .key = a->key, .map_len = a->map_len, .fd = a->fd, .handout = a->handout};
}

trib_status_t trib_shm_reach(struct trib_transport *t, int peer,
                             const struct trib_address *address)
{
    struct shm *shm = shm_of(t);
    struct trib_shm_address a;
    trib_status_t status = address_check(shm, peer, address, &a);

    if (status == TRIB_OK && trib_guard_bars(shm->guard, peer))
        return trib_shm_guard_reach(shm, peer, &a);
    if (status != TRIB_OK)
        return status;
    if (!shm->agreed)
        shm->peers[peer].reads = trib_shm_may_read(shm, a.pid);
    if (a.pid == shm->me.pid)
        return TRIB_OK;
    struct trib_segment_id id = id_of(&a);
    return trib_segment_reach(&id, a.pid, shm->err);
}

/*
 * All peers are on one host, so there is nothing to choose; connect() fails if that is
 * wrong. But reach() notifies peers that must hand out their memory, before any rank
 * waits for that.
 */
trib_status_t trib_shm_caps(struct trib_transport *t,
                            const struct trib_address *addresses, uint32_t *caps_out)
{
    struct shm *shm = shm_of(t);

    *caps_out = TRIB_CAP_MAPS | TRIB_CAP_READS;
    for (int peer = 0; peer < shm->size; peer++) {
        if (peer == shm->self)
            continue;
        (void)trib_shm_reach(t, peer, &addresses[peer]);
        trib_error_clear(shm->err);
        if (!shm->peers[peer].reads)
            *caps_out &= ~(uint32_t)TRIB_CAP_READS;
    }
    return TRIB_OK;
}

/* If the thread cannot be started, the peers detect it by their time-out. */
static void serve_requests(struct shm *shm)
{
    struct trib_error err = {0};

    if (trib_handout_asked(shm->handout) &&
        trib_handout_serve(shm->handout, &err) != TRIB_OK)
        trib_log(shm->log, TRIB_LOG_WARN, SHM_NAME, "%s", err.text);
}

/* All ranks have called caps() by now. */
void trib_shm_agree(struct trib_transport *t, const uint32_t *caps)
{
    struct shm *shm = shm_of(t);

    for (int peer = 0; peer < shm->size; peer++)
        shm->peers[peer].reads &= (caps[shm->self] & caps[peer] & TRIB_CAP_READS) != 0;
    shm->agreed = true;
    serve_requests(shm);
}

/* The peer can write to its header at any time: copy it, check the copy, and never read
 * these fields again. */
static trib_status_t header_check(struct shm *shm, int peer,
                                  const struct trib_segment *seg, uint32_t *slots_out)
{
    struct trib_shm_header h = {.ring_slots = 0};

    if (seg->len >= sizeof(h))
        trib_snapshot(&h, seg->base, offsetof(struct trib_shm_header, state));
    const uint32_t slots = h.ring_slots;
    if (slots < TRIB_SHM_RING_SLOTS_MIN || (slots & (slots - 1)) ||
        h.magic != TRIB_SHM_MAGIC || h.version != TRIB_SHM_VERSION ||
        h.self != (uint32_t)peer || h.size != (uint32_t)shm->size ||
        slots > TRIB_SHM_RING_SLOTS_MAX ||
        seg->len < trib_shm_control_len((uint32_t)shm->size, slots))
        return trib_fail(
            shm->err, TRIB_ERR_MISMATCH,
            "peer %d: its control segment does not match: do all ranks have %d peers "
            "and run one version (its shm is version %u, this one %u)?",
            peer, shm->size, h.version, TRIB_SHM_VERSION);
    *slots_out = slots;
    return TRIB_OK;
}

void trib_shm_activate(struct shm *shm, int peer)
{
    struct shm_peer *p = &shm->peers[peer];

    if (p->active || p->state == TRIB_PEER_LEFT || p->state == TRIB_PEER_LOST)
        return;
    p->active = true;
    assert(shm->n_active < shm->size);
    shm->active[shm->n_active++] = peer;
}

/* Set up the rings of both directions, and notify the peer, which then reads this
 * rank's ring. */
static void connect_rings(struct shm *shm, int peer, uint32_t slots)
{
    struct shm_peer *p = &shm->peers[peer];
    struct trib_shm_header *h = (struct trib_shm_header *)p->control.base;

    assert(p->control.base && slots && !(slots & (slots - 1)));
    p->out_slots = slots;
    p->out = trib_shm_ring_at(h, (uint32_t)shm->self, slots);
    atomic_store_explicit(&p->header, h, memory_order_release);
    p->state = TRIB_PEER_CONNECTED;
    atomic_store(&p->out->attached, 1);
    atomic_fetch_add(&h->attached, 1);
    trib_shm_activate(shm, peer);
}

static trib_status_t watch_peer(struct shm *shm, struct shm_peer *p)
{
    return p->same_process ? TRIB_OK
                           : trib_process_watch_open(&p->watch, &p->who, shm->err);
}

/* With a guard, the process number that the peer claims is not used before this
 * succeeds, which proves that the process is the peer. */
static trib_status_t attach_control(struct shm *shm, int peer,
                                    const struct trib_shm_address *a)
{
    struct shm_peer *p = &shm->peers[peer];
    const struct trib_segment_id id = id_of(a);

    assert(!p->in_rendezvous || shm->guard);
    if (!p->in_rendezvous)
        return trib_segment_attach(&id, &p->who, &shm->me, &p->control, shm->err);
    if (!shm->guard->serves)
        /* no-op unless caps() was skipped */
        (void)trib_handout_admit(shm->handout, a->pid);
    return trib_shm_guard_attach(shm, peer, &id, &p->control);
}

trib_status_t trib_shm_connect(struct trib_transport *t, int peer,
                               const struct trib_address *address)
{
    struct shm *shm = shm_of(t);
    struct trib_shm_address a;
    trib_status_t status;
    uint32_t slots = 0;

    if (peer < 0 || peer >= shm->size)
        return trib_fail(shm->err, TRIB_ERR_INVALID, "peer %d of %d does not exist",
                         peer, shm->size);
    struct shm_peer *p = &shm->peers[peer];
    if (p->state == TRIB_PEER_CONNECTED || p->state == TRIB_PEER_DRAINING)
        return TRIB_OK;
    if (p->state != TRIB_PEER_UNKNOWN)
        return trib_fail(shm->err, TRIB_ERR_PEER_LOST,
                         "peer %d was lost or left before", peer);
    status = address_check(shm, peer, address, &a);
    if (status != TRIB_OK)
        return status;

    p->who = (struct trib_process){
        .boot = a.boot, .space = a.space, .start = a.start, .pid = a.pid};
    p->handout = a.handout;
    p->in_rendezvous = trib_guard_bars(shm->guard, peer);
    serve_requests(shm);
    p->same_process = !p->in_rendezvous && trib_process_same(&p->who, &shm->me);
    status = p->in_rendezvous ? TRIB_OK : watch_peer(shm, p);
    if (status == TRIB_OK)
        status = attach_control(shm, peer, &a);
    if (status == TRIB_OK && p->in_rendezvous)
        status = watch_peer(shm, p);
    if (status == TRIB_OK)
        status = header_check(shm, peer, &p->control, &slots);
    if (status != TRIB_OK) {
        trib_shm_guard_detach(shm, &p->control, false);
        trib_process_watch_close(&p->watch);
        return status;
    }
    connect_rings(shm, peer, slots);
    trib_log(shm->log, TRIB_LOG_DEBUG, SHM_NAME, "connected to peer %d, process %d%s",
             peer, a.pid, p->same_process ? " (this one)" : "");
    return TRIB_OK;
}

void trib_shm_disconnect(struct trib_transport *t, int peer)
{
    struct shm *shm = shm_of(t);

    if (peer < 0 || peer >= shm->size)
        return;
    struct shm_peer *p = &shm->peers[peer];
    if (p->state == TRIB_PEER_LEFT)
        return;
    uint32_t here = TRIB_SHM_HERE; /* if set already, the earlier value remains */
    atomic_compare_exchange_strong(&p->in->left, &here, TRIB_SHM_LEFT);
    if (p->state == TRIB_PEER_CONNECTED)
        trib_shm_wake_peer(shm, peer);
    if (p->state == TRIB_PEER_DRAINING)
        shm->n_draining--;
    if (p->active)
        trib_shm_deactivate(shm, peer);
    trib_process_watch_close(&p->watch);
    trib_handout_drop(&p->call);
    p->state = TRIB_PEER_LEFT;
}

void trib_shm_leave(struct trib_transport *t, const bool *which)
{
    for (int i = 0; i < shm_of(t)->size; i++)
        if (!which || which[i])
            trib_shm_disconnect(t, i);
}

/* Return the peer's pipe, opened on first use. Return -1 on failure: the peer's sleep
 * then ends by time-out. Two threads may call this at once. */
static int peer_pipe(struct shm *shm, int peer, const struct trib_shm_header *header)
{
    struct shm_peer *p = &shm->peers[peer];
    int fd = atomic_load_explicit(&p->pipe, memory_order_acquire), none = -1;
    char path[64];
    struct stat st;

    if (fd >= 0 || trib_guard_bars(shm->guard, peer))
        return fd;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", trib_process_number(p->who.pid),
             (int)atomic_load(&header->pipe));
    /* Open for reading, too: a pipe with no reader but its owner raises SIGPIPE once
     * that process is gone. */
    fd = trib_fd_keep(open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode)) {
        close(fd);
        return -1;
    }
    if (atomic_compare_exchange_strong(&p->pipe, &none, fd))
        return fd;
    close(fd);
    return none;
}

void trib_shm_wake_peer(struct shm *shm, int peer)
{
    struct trib_shm_header *h =
        peer == shm->self
            ? shm->header
            : atomic_load_explicit(&shm->peers[peer].header, memory_order_acquire);
    uint32_t how;

    if (!h || !atomic_load_explicit(&h->sleeping, memory_order_relaxed) ||
        !(how = atomic_exchange(&h->sleeping, TRIB_SHM_AWAKE)))
        return;
    atomic_fetch_add(&h->doorbell, 1);
    if (how == TRIB_SHM_ON_FUTEX) {
        syscall(SYS_futex, &h->doorbell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        return;
    }
    int fd = peer == shm->self ? shm->pipe[1] : peer_pipe(shm, peer, h);
    if (trib_guard_bars(shm->guard, peer)) {
        trib_shm_guard_wake(fd);
        return;
    }
    if (fd >= 0 && write(fd, "", 1) < 0)
        return; /* full: the peer wakes anyway; or the peer has ended */
}

static void peer_left(struct shm *shm, struct shm_peer *p)
{
    p->given_up = atomic_load(&p->out->left) == TRIB_SHM_GAVE_UP;
    p->left = !p->given_up;
    if (p->given_up)
        trib_shm_peer_drain(shm, p, TRIB_PEER_GAVE_UP, p->who.pid);
    else
        trib_shm_peer_drain(shm, p, "process %d has left", p->who.pid);
}

/* A process closes its transport before it ends, so "left" takes precedence over
 * "died". */
static void peer_ended(struct shm *shm, struct shm_peer *p)
{
    assert(p->state == TRIB_PEER_CONNECTED);
    p->dead = true;
    if (trib_shm_has_left(p))
        peer_left(shm, p);
    else
        trib_shm_peer_drain(shm, p, "process %d has died", p->who.pid);
}

/* One system call for all peers. */
static void check_deaths(struct shm *shm)
{
    nfds_t n = 0;

    for (int i = 0; i < shm->n_active; i++) {
        struct shm_peer *p = &shm->peers[shm->active[i]];
        if (p->state != TRIB_PEER_CONNECTED)
            continue;
        if (trib_shm_has_left(p)) {
            peer_left(shm, p);
        } else if (p->watch.pidfd >= 0) {
            shm->pidfds[n] = (struct pollfd){.fd = p->watch.pidfd, .events = POLLIN};
            shm->pidfd_peer[n++] = shm->active[i];
        } else if (!p->same_process && trib_process_watch_dead(&p->watch)) {
            peer_ended(shm, p);
        }
    }
    /* poll() fails if memory is short or the limit of open files is exceeded: then read
     * /proc. */
    const int found = n == 0 ? 0 : poll(shm->pidfds, n, 0);
    for (nfds_t i = 0; i < n && found != 0; i++) {
        struct shm_peer *p = &shm->peers[shm->pidfd_peer[i]];
        if (found > 0 ? shm->pidfds[i].revents != 0
                      : trib_process_watch_query(&p->watch) == TRIB_PROCESS_DEAD)
            peer_ended(shm, p);
    }
}

/*
 * Count only time during which this process watched: when a whole job resumes after
 * suspension, its peers must not appear lost.
 */
static void check_stops(struct shm *shm, uint64_t now)
{
    uint64_t elapsed = now - shm->stops_checked_at;

    if (elapsed < shm->stop_check_ns)
        return;
    if (elapsed > 4 * shm->stop_check_ns)
        elapsed = 4 * shm->stop_check_ns;
    shm->stops_checked_at = now;
    for (int i = 0; i < shm->n_active; i++) {
        struct shm_peer *p = &shm->peers[shm->active[i]];
        if (p->state != TRIB_PEER_CONNECTED || p->same_process)
            continue;
        if (trib_process_watch_query(&p->watch) != TRIB_PROCESS_STOPPED) {
            p->stopped_ns = 0;
            continue;
        }
        p->stopped_ns += p->stopped_ns ? elapsed : 1;
        if (p->stopped_ns >= shm->stop_timeout_ns)
            trib_shm_peer_drain(shm, p, "process %d has been stopped for %.1f s",
                                p->who.pid, (double)p->stopped_ns / 1e9);
    }
}

void trib_shm_liveness(struct shm *shm, uint64_t now)
{
    if (now < shm->tick_at)
        return;
    shm->tick_at = now + TICK_NS;
    serve_requests(shm);
    check_deaths(shm);
    check_stops(shm, now);
}
