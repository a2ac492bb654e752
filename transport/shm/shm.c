/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm: ranks of one host, through memory mapped by both sides.
 *
 * A write is a copy into the peer's segment plus one entry in its ring (shm_layout.h).
 * Memory outside this rank's segments is reached by process_vm_writev, if peers trust
 * each other. shm_peer.c connects and watches peers; shm_mem.c allocates and imports
 * memory.
 */
#include "transport/shm/shm.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/meminfo.h"
#include "base/text.h"
#include "base/time.h"
#include "transport/backends.h"
#include "transport/params.h"

#define STOP_TIMEOUT_MS 3000 /* default without a configuration */
#define WAKES_AT_ONCE 64 /* datagrams read per wait */
/* a power of two; reading the clock costs as much as a poll */
#define POLLS_PER_CLOCK 8u

static trib_status_t parse_params(struct shm *shm, const char *text, bool *cma_out)
{
    int64_t ring = 256, cma = 1;
    const struct trib_param params[] = {
        {.name = "ring", .min = TRIB_SHM_RING_SLOTS_MIN, .max = 65536, .value = &ring},
        {.name = "cma", .min = 0, .max = 1, .value = &cma},
    };
    trib_status_t status = trib_params_parse(SHM_NAME, text, params, 2, shm->err);

    shm->ring_slots = TRIB_SHM_RING_SLOTS_MIN;
    while (shm->ring_slots < ring)
        shm->ring_slots *= 2;
    *cma_out = cma != 0;
    return status;
}

static void set_timeouts(struct shm *shm, const struct trib_config *cfg)
{
    const uint64_t least = 10000000, most = 200000000;

    shm->stop_timeout_ns = trib_limit_ns(cfg ? cfg->stop_timeout_ms : STOP_TIMEOUT_MS);
    shm->stop_check_ns = shm->stop_timeout_ns / 16;
    if (shm->stop_check_ns < least)
        shm->stop_check_ns = least;
    if (shm->stop_check_ns > most)
        shm->stop_check_ns = most;
}

/* Datagram sockets: the holder of the second one can neither shut down nor
 * permanently fill the first. Made at open, since the bell is handed out with the
 * control segment. */
static trib_status_t make_bell(struct shm *shm)
{
    assert(shm->pipe[0] < 0 && shm->pipe[1] < 0);
    if (trib_fd_pair(shm->pipe, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK) == 0)
        return TRIB_OK;
    shm->pipe[0] = shm->pipe[1] = -1;
    return trib_fail(shm->err, TRIB_ERR_SYSTEM, "cannot create a pair of sockets: %m");
}

static void close_bell(struct shm *shm)
{
    for (int i = 0; i < 2; i++) {
        if (shm->pipe[i] >= 0)
            close(shm->pipe[i]);
        shm->pipe[i] = -1;
    }
}

static trib_status_t make_control(struct shm *shm)
{
    uint32_t size = (uint32_t)shm->size;
    size_t len = trib_shm_control_len(size, shm->ring_slots);
    trib_status_t status = trib_segment_create(len, &shm->control, shm->err);

    if (status != TRIB_OK)
        return status;
    struct trib_shm_header *h = (struct trib_shm_header *)shm->control.base;
    h->version = TRIB_SHM_VERSION;
    h->size = size;
    h->ring_slots = shm->ring_slots;
    h->self = (uint32_t)shm->self;
    atomic_store(&h->pipe, -1);
    h->magic = TRIB_SHM_MAGIC;
    atomic_store(&h->state, TRIB_SHM_ALIVE);
    shm->header = h;
    shm->handout = trib_handout_open(shm->guard);
    if (shm->guard)
        status = make_bell(shm);
    if (status == TRIB_OK &&
        trib_handout_add(shm->handout, shm->control.key,
                         (struct trib_handout_fds){shm->control.fd, shm->pipe[1]}))
        status = trib_fail(shm->err, TRIB_ERR_NO_MEMORY, "out of memory");
    if (status != TRIB_OK) {
        trib_handout_close(shm->handout);
        trib_segment_release(&shm->control, false);
        close_bell(shm);
        return status;
    }
    for (uint32_t i = 0; i < size; i++)
        shm->peers[i].in = trib_shm_ring_at(h, i, shm->ring_slots);
    return TRIB_OK;
}

static trib_status_t make_tables(struct shm *shm)
{
    size_t n = (size_t)shm->size;

    assert(shm->size > 0 && shm->self >= 0 && shm->self < shm->size);
    shm->peers = calloc(n, sizeof(*shm->peers));
    shm->active = calloc(n, sizeof(*shm->active));
    shm->pidfds = calloc(n, sizeof(*shm->pidfds));
    shm->pidfd_peer = calloc(n, sizeof(*shm->pidfd_peer));
    if (!shm->peers || !shm->active || !shm->pidfds || !shm->pidfd_peer)
        return trib_fail(shm->err, TRIB_ERR_NO_MEMORY, "out of memory for %zu peers",
                         n);
    for (size_t i = 0; i < n; i++) {
        atomic_init(&shm->peers[i].pipe, -1);
        shm->peers[i].watch.pidfd = -1;
        shm->peers[i].watch.stat_fd = -1;
    }
    return TRIB_OK;
}

static void free_tables(struct shm *shm)
{
    free(shm->peers);
    free(shm->active);
    free(shm->pidfds);
    free(shm->pidfd_peer);
    free(shm);
}

static trib_status_t shm_open_transport(const struct trib_transport_opts *opts,
                                        struct trib_transport **out)
{
    struct shm *shm = calloc(1, sizeof(*shm));
    trib_status_t status;

    if (!shm)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory");
    shm->base.ops = &trib_shm_ops;
    shm->pipe[0] = shm->pipe[1] = -1;
    shm->self = opts->self;
    shm->size = opts->size;
    shm->log = opts->log;
    shm->err = opts->err;
    set_timeouts(shm, opts->cfg);
    shm->guard = opts->guard;
    status = parse_params(shm, opts->params, &shm->cma);
    shm->cma &= !shm->guard;
    if (status == TRIB_OK)
        status = trib_segment_check(TRIB_SHM_ARENA_LEN, shm->err);
    if (status == TRIB_OK)
        status = trib_segment_owner(&shm->me, shm->err);
    if (status == TRIB_OK)
        status = make_tables(shm);
    if (status == TRIB_OK)
        status = make_control(shm);
    if (status != TRIB_OK) {
        free_tables(shm);
        return status;
    }
    *out = &shm->base;
    return TRIB_OK;
}

/* A forked child that closes its copy must not signal to peers that this rank
 * closed. */
static void shm_close(struct trib_transport *t)
{
    struct shm *shm = shm_of(t);
    bool in_child = getpid() != shm->me.pid;

    if (!in_child)
        atomic_store(&shm->header->state, TRIB_SHM_CLOSED);
    trib_handout_close(shm->handout);
    shm->handout = NULL;
    trib_shm_free_memory(shm, in_child);
    for (int i = 0; i < shm->size; i++) {
        struct shm_peer *p = &shm->peers[i];
        if (!in_child && p->state == TRIB_PEER_CONNECTED)
            trib_shm_wake_peer(shm, i);
        if (p->pipe >= 0)
            close(p->pipe);
        trib_process_watch_close(&p->watch);
        trib_handout_drop(&p->call);
        trib_segment_release(&p->control, in_child);
    }
    if (!in_child)
        atomic_store(&shm->header->pipe, -1);
    close_bell(shm);
    trib_segment_release(&shm->control, in_child);
    free_tables(shm);
}

static bool ring_full(struct shm_peer *p)
{
    if (p->tail - p->head_seen < p->out_slots)
        return false;
    /* Acquire: the consumer has read the entry before it is overwritten. */
    p->head_seen = atomic_load_explicit(&p->out->head, memory_order_acquire);
    return p->tail - p->head_seen >= p->out_slots;
}

static void ring_push(struct shm_peer *p, uint64_t len, uint32_t imm)
{
    struct trib_shm_entry *e = &p->out->entries[p->tail & (p->out_slots - 1)];

    e->len = len;
    e->imm = imm;
    p->tail++;
    /* Release: a reader of the entry sees the bytes copied before. */
    atomic_store_explicit(&e->seq, p->tail, memory_order_release);
}

static trib_status_t shm_write(struct trib_transport *t, int peer,
                               const struct trib_write *write)
{
    struct shm *shm = shm_of(t);

    assert(peer >= 0 && peer < shm->size);
    struct shm_peer *p = &shm->peers[peer];
    if (p->state != TRIB_PEER_CONNECTED)
        return p->state == TRIB_PEER_UNKNOWN ? TRIB_ERR_INVALID : TRIB_ERR_PEER_LOST;
    if (!write->quiet && ring_full(p))
        return TRIB_ERR_NO_RESOURCE;
    if (write->signal && shm->done_tail - shm->done_head == SHM_DONE_SLOTS)
        return TRIB_ERR_NO_RESOURCE;
    if (write->len) {
        trib_status_t status = trib_shm_copy(shm, peer, write);
        if (status != TRIB_OK)
            return status;
    }
    if (!write->quiet) {
        ring_push(p, write->len, write->imm);
        trib_shm_wake_peer(shm, peer);
    }
    if (write->signal)
        shm->done[shm->done_tail++ % SHM_DONE_SLOTS] =
            (struct shm_done){.token = write->token, .peer = peer};
    return TRIB_OK;
}

static int take_done(struct shm *shm, struct trib_event *events, int max)
{
    int n = 0;

    while (n < max && shm->done_head != shm->done_tail) {
        const struct shm_done *done = &shm->done[shm->done_head++ % SHM_DONE_SLOTS];
        events[n].kind = TRIB_EVENT_WRITE_DONE;
        events[n].peer = done->peer;
        events[n].token = done->token;
        n++;
    }
    return n;
}

static bool ring_empty(const struct shm *shm, const struct shm_peer *p)
{
    const struct trib_shm_entry *e = &p->in->entries[p->head & (shm->ring_slots - 1)];

    return atomic_load_explicit(&e->seq, memory_order_acquire) != p->head + 1;
}

static int drain(struct shm *shm, int peer, struct trib_event *events, int max)
{
    struct shm_peer *p = &shm->peers[peer];
    int n = 0;

    while (n < max && !ring_empty(shm, p)) {
        const struct trib_shm_entry *e =
            &p->in->entries[p->head & (shm->ring_slots - 1)];
        events[n].kind = TRIB_EVENT_ARRIVED;
        events[n].peer = peer;
        events[n].imm = e->imm;
        events[n].len = e->len;
        p->head++;
        n++;
    }
    if (n)
        atomic_store_explicit(&p->in->head, p->head, memory_order_release);
    return n;
}

/* Report a lost peer only after everything that it sent. */
static int report_losses(struct shm *shm, struct trib_event *events, int max)
{
    int n = 0;

    assert(shm->n_draining > 0);
    for (int i = shm->n_active - 1; i >= 0 && n < max; i--) {
        int peer = shm->active[i];
        struct shm_peer *p = &shm->peers[peer];
        if (p->state != TRIB_PEER_DRAINING || !ring_empty(shm, p))
            continue;
        events[n] = (struct trib_event){.kind = TRIB_EVENT_PEER_LOST,
                                        .peer = peer,
                                        .left = p->left,
                                        .given_up = p->given_up,
                                        .dead = p->dead};
        memcpy(events[n].why, p->why, sizeof(p->why));
        n++;
        if (!p->left)
            atomic_store(&p->in->left, TRIB_SHM_GAVE_UP);
        trib_shm_peer_lost(shm, peer);
    }
    return n;
}

static void find_attached(struct shm *shm, uint32_t attached)
{
    shm->attached_seen = attached;
    for (int i = 0; i < shm->size; i++) {
        if (atomic_load(&shm->peers[i].in->attached))
            trib_shm_activate(shm, i);
    }
}

static void disarm(struct shm *shm)
{
    atomic_store_explicit(&shm->armed, false, memory_order_relaxed);
    atomic_store_explicit(&shm->header->sleeping, 0, memory_order_relaxed);
}

static int shm_poll(struct trib_transport *t, struct trib_event *events, int max)
{
    struct shm *shm = shm_of(t);
    int n = take_done(shm, events, max);
    uint32_t attached =
        atomic_load_explicit(&shm->header->attached, memory_order_acquire);

    if (attached != shm->attached_seen)
        find_attached(shm, attached);
    if ((++shm->polls & (POLLS_PER_CLOCK - 1)) == 0 || shm->tick_at == 0 ||
        atomic_load_explicit(&shm->slept, memory_order_relaxed)) {
        atomic_store_explicit(&shm->slept, false, memory_order_relaxed);
        trib_shm_liveness(shm, trib_now_coarse_ns());
    }
    for (int left = shm->n_active; left > 0 && n < max; left--) {
        n += drain(shm, shm->active[shm->next], events + n, max - n);
        if (++shm->next >= shm->n_active)
            shm->next = 0;
    }
    if (shm->n_draining)
        n += report_losses(shm, events + n, max - n);
    if (n && atomic_load_explicit(&shm->armed, memory_order_relaxed))
        disarm(shm);
    return n;
}

static void shm_arm(struct trib_transport *t)
{
    struct shm *shm = shm_of(t);

    atomic_store_explicit(&shm->doorbell_seen, atomic_load(&shm->header->doorbell),
                          memory_order_relaxed);
    atomic_store_explicit(&shm->armed, true, memory_order_relaxed);
    /* Sequentially consistent: the flag is visible before the caller checks once
     * more. */
    atomic_store(&shm->header->sleeping,
                 shm->on_pipe ? TRIB_SHM_ON_PIPE : TRIB_SHM_ON_FUTEX);
    atomic_thread_fence(memory_order_seq_cst);
}

static int shm_event_fd(struct trib_transport *t)
{
    struct shm *shm = shm_of(t);

    if (shm->pipe[0] < 0 && trib_fd_pipe(shm->pipe, O_CLOEXEC | O_NONBLOCK) == 0)
        atomic_store(&shm->header->pipe, shm->pipe[1]);
    shm->on_pipe = shm->pipe[0] >= 0;
    return shm->pipe[0];
}

static void wait_on_pipe(struct shm *shm, const struct timespec *ts)
{
    struct pollfd p = {.fd = shm->pipe[0], .events = POLLIN};
    char wakes[64];

    if (ts->tv_sec || ts->tv_nsec)
        (void)ppoll(&p, 1, ts, NULL);
    /* One datagram at a time, with a limit in case a peer sends without end. */
    for (int i = 0; shm->guard && i < WAKES_AT_ONCE; i++)
        if (recv(shm->pipe[0], wakes, sizeof(wakes), MSG_DONTWAIT) < 0)
            return;
    while (!shm->guard &&
           read(shm->pipe[0], wakes, sizeof(wakes)) == (ssize_t)sizeof(wakes))
        continue;
}

static void shm_wait(struct trib_transport *t, int timeout_us)
{
    struct shm *shm = shm_of(t);
    struct timespec ts = {timeout_us / 1000000, timeout_us % 1000000 * 1000L};

    if (timeout_us > 0 && !atomic_load_explicit(&shm->armed, memory_order_relaxed))
        shm_arm(t);
    uint32_t seen = atomic_load_explicit(&shm->doorbell_seen, memory_order_relaxed);
    if (shm->on_pipe)
        wait_on_pipe(shm, &ts);
    else if (timeout_us > 0)
        syscall(SYS_futex, &shm->header->doorbell, FUTEX_WAIT, seen, &ts, NULL, 0);
    disarm(shm);
    atomic_store_explicit(&shm->slept, true, memory_order_relaxed);
}

static void shm_wake(struct trib_transport *t, int peer)
{
    assert(peer >= 0 && peer < shm_of(t)->size);
    trib_shm_wake_peer(shm_of(t), peer);
}

/* A memfd uses memory, not space in /dev/shm. */
static void shm_devices(const char *params, char *text, size_t bytes)
{
    (void)params;
    char scope[16];
    uint64_t has;

    text[0] = '\0';
    if (trib_meminfo_free("", &has))
        trib_text_append(text, bytes, "%.1f GiB of memory free",
                         (double)has / (1 << 30));
    if (trib_file_line("", "/proc/sys/kernel/yama/ptrace_scope", scope,
                       sizeof(scope)) &&
        strcmp(scope, "0") != 0)
        trib_text_append(text, bytes,
                         "; kernel.yama.ptrace_scope=%s denies access to other memory",
                         scope);
}

static const struct trib_transport_text texts[] = {
    {"shm", TRIB_TEXT_MAPS | TRIB_TEXT_CMA},
    {"shm", TRIB_TEXT_MAPS | TRIB_TEXT_THREADS},
    {"shm:ring=8", TRIB_TEXT_MAPS | TRIB_TEXT_CMA},
    {"shm+nomap+delay:us=100", TRIB_TEXT_CMA},
    {"shm+trace+nomap", TRIB_TEXT_THREADS},
    {NULL, 0},
};

const struct trib_transport_ops trib_shm_ops = {
    .name = SHM_NAME,
    .one_host = true,
    .detail =
        "ranks of one host: shared memory (memfd), process_vm_readv and _writev for "
        "other memory",
    .texts = texts,
    .devices = shm_devices,
    .open = shm_open_transport,
    .close = shm_close,
    .address = trib_shm_address,
    .reach = trib_shm_reach,
    .pinned_limit = trib_no_pinned_limit,
    .caps = trib_shm_caps,
    .agree = trib_shm_agree,
    .route = trib_only_route,
    .connect = trib_shm_connect,
    .connect_many = trib_no_connect_many,
    .disconnect = trib_shm_disconnect,
    .leave = trib_shm_leave,
    .alloc = trib_shm_alloc,
    .alloc_user = trib_shm_alloc_user,
    .reg = trib_shm_reg,
    .reg_dmabuf = trib_mapped_reg_dmabuf,
    .release_pages = trib_shm_release_pages,
    .dereg = trib_shm_dereg,
    .export_region = trib_shm_export,
    .import_region = trib_shm_import,
    .release = trib_shm_release,
    .length = trib_shm_length,
    .stale = trib_shm_stale,
    .map = trib_shm_map,
    .reads = trib_shm_reads,
    .read = trib_shm_read,
    .write = shm_write,
    .detach = trib_no_detach,
    .poll = shm_poll,
    .event_fd = shm_event_fd,
    .arm = shm_arm,
    .wait = shm_wait,
    .wake = shm_wake,
    /* a peer that declares this rank lost writes that into shared memory */
    .away = trib_no_away,
    .trouble = trib_no_trouble,
};
