/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/memfd.h"
#include "base/process.h"
#include "transport/common/handout.h"
#include "transport/common/own_memory.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/*
 * Pages of an attached segment are mapped at once up to this size. Read faults map 16
 * pages each and leave them writable: 0.4 us per page, against 2 us for write faults in
 * the first operation (measured in a virtual machine). Larger segments may be meant to
 * stay partly unused.
 */
#define POPULATE_MAX ((size_t)64 << 20)

#define SEGMENT_MAGIC UINT64_C(0x7365676d54524942)
#define PAGE ((size_t)4096)
#define HUGE ((size_t)2 << 20)
#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

struct trib_segment_trailer {
    uint64_t magic;
    uint64_t key;
    _Atomic uint32_t abandoned; /* set when the owner releases the segment */
};

static_assert(sizeof(struct trib_segment_trailer) <= 4096, "the trailer is one page");
static_assert(ATOMIC_INT_LOCK_FREE == 2, "atomics must work between processes");

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Return the mapped length of a segment of len bytes: whole pages, small or huge, plus
 * the trailer. */
static size_t map_len_of(size_t len)
{
    return round_up(len, len >= HUGE ? HUGE : PAGE) + PAGE;
}

/* Map fd; align large mappings to 2 MiB. Return MAP_FAILED on error. */
static void *map_aligned(int fd, size_t map_len)
{
    assert(map_len > 0 && map_len % PAGE == 0);
    if (map_len < HUGE)
        return mmap(NULL, map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    uint8_t *room = mmap(NULL, map_len + HUGE, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return MAP_FAILED;
    size_t before = round_up((uintptr_t)room, HUGE) - (uintptr_t)room;
    uint8_t *base = mmap(room + before, map_len, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_FIXED, fd, 0);
    if (base == MAP_FAILED) {
        munmap(room, map_len + HUGE);
        return MAP_FAILED;
    }
    if (before)
        munmap(room, before);
    munmap(base + map_len, HUGE - before);
    madvise(base, map_len - PAGE, MADV_HUGEPAGE); /* if the kernel allows it */
    return base;
}

static struct trib_segment_trailer *trailer_of(void *base, size_t map_len)
{
    assert(map_len > PAGE);
    return (struct trib_segment_trailer *)((uint8_t *)base + map_len - PAGE);
}

trib_status_t trib_segment_owner(struct trib_process *out, struct trib_error *err)
{
    trib_process_self(out);
    if (out->boot && out->start)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_UNSUPPORTED, "cannot read %s; is /proc mounted?",
                     out->boot ? "/proc/self/stat" : "/proc/sys/kernel/random/boot_id");
}

trib_status_t trib_segment_create(size_t len, struct trib_segment *out,
                                  struct trib_error *err)
{
    trib_status_t status;
    uint64_t key;

    memset(out, 0, sizeof(*out));
    out->fd = -1;
    if (len == 0 || len > SIZE_MAX / 4)
        return trib_fail(err, TRIB_ERR_OVERFLOW, "cannot make a segment of %zu bytes",
                         len);
    status = trib_own_memory_key(&key, err);
    if (status != TRIB_OK)
        return status;
    size_t map_len = map_len_of(len);
    len = map_len - PAGE;

    int fd = -1;
    status = trib_memfd_create("tributary", map_len, &fd, err);
    if (status != TRIB_OK)
        return status;
    void *base = map_aligned(fd, map_len);
    if (base == MAP_FAILED) {
        status =
            trib_fail(err, TRIB_ERR_NO_MEMORY, "cannot map %zu bytes: %m", map_len);
        close(fd);
        return status;
    }
    status = trib_own_memory_add(key, base, map_len, err);
    if (status != TRIB_OK) {
        munmap(base, map_len);
        close(fd);
        return status;
    }

    out->base = base;
    out->len = len;
    out->map_len = map_len;
    out->key = key;
    out->fd = fd;
    out->counted = true;
    out->trailer = trailer_of(base, map_len);
    out->trailer->key = key;
    out->trailer->magic = SEGMENT_MAGIC;
    return TRIB_OK;
}

trib_status_t trib_segment_check(size_t len, struct trib_error *err)
{
    if (len > SIZE_MAX / 4)
        return trib_fail(err, TRIB_ERR_OVERFLOW, "cannot make a segment of %zu bytes",
                         len);
    return trib_memfd_check(map_len_of(len), err);
}

struct trib_segment_id trib_segment_id(const struct trib_segment *seg)
{
    assert(seg->fd >= 0);
    return (struct trib_segment_id){
        .key = seg->key, .map_len = seg->map_len, .fd = seg->fd};
}

/* TRIB_ERR_UNSUPPORTED: /proc denies access; the owner can still hand the segment
 * out. */
static trib_status_t open_in_proc(const struct trib_segment_id *id, int pid,
                                  int *fd_out, struct trib_error *err)
{
    char path[64];
    int number = trib_process_number(pid);

    if (number == 0)
        return trib_fail(
            err, TRIB_ERR_UNSUPPORTED,
            "/proc does not show process %d; it must be mounted in the pid "
            "namespace of the ranks (unshare --mount-proc)",
            pid);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", number, id->fd);
    int fd = trib_fd_keep(open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (fd < 0 && (errno == ENOENT || errno == ESRCH))
        return trib_fail(err, TRIB_ERR_PEER_LOST,
                         "process %d has died or closed its memory", pid);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return trib_fail(err, TRIB_ERR_SYSTEM, "cannot open %s: %m (raise %s)", path,
                         errno == EMFILE ? "ulimit -n" : "sysctl fs.file-max");
    if (fd < 0)
        return trib_fail(
            err, TRIB_ERR_UNSUPPORTED,
            "cannot open %s: %m; run the ranks as one user and dumpable, or "
            "grant CAP_SYS_PTRACE",
            path);
    *fd_out = fd;
    return TRIB_OK;
}

/* Request the segment from its owner, a process of the same user. */
static trib_status_t ask(const struct trib_segment_id *id, int pid, int *fd_out,
                         struct trib_error *err)
{
    const struct trib_handout_owner owner = {.name = id->handout, .pid = pid};
    struct trib_handout_fds fds;
    trib_status_t status = trib_handout_ask(&owner, id->key, &fds, err);

    if (status != TRIB_OK)
        return status;
    if (fds.bell >= 0)
        close(fds.bell);
    *fd_out = fds.memory;
    return TRIB_OK;
}

/* Open the owner's descriptor; the caller closes *fd_out. */
static trib_status_t open_peer_fd(const struct trib_segment_id *id, int pid,
                                  int *fd_out, struct trib_error *err)
{
    struct trib_error barred = {0};
    struct stat st;
    int fd;
    trib_status_t status = open_in_proc(id, pid, &fd, &barred);

    if (status == TRIB_ERR_UNSUPPORTED && id->handout)
        status = ask(id, pid, &fd, err);
    else if (status != TRIB_OK)
        trib_fail(err, status, "%s", barred.text);
    if (status != TRIB_OK)
        return status;
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != id->map_len || seals < 0 ||
        (seals & SIZE_SEALS) != SIZE_SEALS) {
        close(fd);
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "descriptor %d of process %d is no longer the exported segment", id->fd,
            pid);
    }
    *fd_out = fd;
    return TRIB_OK;
}

trib_status_t trib_segment_reach(const struct trib_segment_id *id, int pid,
                                 struct trib_error *err)
{
    struct trib_error barred = {0};
    int fd;
    trib_status_t status = open_in_proc(id, pid, &fd, &barred);

    if (status == TRIB_OK)
        close(fd);
    if (status == TRIB_ERR_UNSUPPORTED && id->handout)
        return trib_handout_probe(
            &(struct trib_handout_owner){.name = id->handout, .pid = pid}, err);
    return status == TRIB_OK ? TRIB_OK : trib_fail(err, status, "%s", barred.text);
}

/* In the owner's process, replace the mapping just made by the owner's mapping. Its
 * address and users come from the process's own table, since others can write to the
 * segment. */
static bool join_owner(struct trib_segment *seg)
{
    uint8_t *own = trib_own_memory_join(seg->key, seg->map_len);

    assert(!seg->counted);
    if (!own)
        return false;
    munmap(seg->base, seg->map_len);
    seg->base = own;
    seg->trailer = trailer_of(own, seg->map_len);
    seg->counted = true;
    return true;
}

/*
 * Map the pages that exist at once: a fault on each page costs far more. Untouched
 * pages are not allocated. Kernels before 5.14 refuse; then pages are mapped one by
 * one.
 */
static void populate(const struct trib_segment *seg, int fd)
{
    assert(seg->base && fd >= 0);
    off_t end = (off_t)(seg->len < POPULATE_MAX ? seg->len : POPULATE_MAX), to;

    for (off_t at = 0; (at = lseek(fd, at, SEEK_DATA)) >= 0 && at < end; at = to) {
        to = lseek(fd, at, SEEK_HOLE);
        if (to <= at) /* the owner is changing it */
            return;
        size_t bytes = (size_t)((to < end ? to : end) - at);
        madvise(seg->base + at, bytes, MADV_POPULATE_READ);
    }
}

static trib_status_t check_len(const struct trib_segment_id *id, struct trib_error *err)
{
    if (id->map_len >= 2 * PAGE && id->map_len <= SIZE_MAX / 2 &&
        id->map_len % PAGE == 0)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_INVALID, "invalid segment of %llu bytes",
                     (unsigned long long)id->map_len);
}

/* TRIB_ERR_INVALID, without a message: it is another segment. */
static trib_status_t map(const struct trib_segment_id *id, int fd,
                         struct trib_segment *out, struct trib_error *err)
{
    size_t map_len = (size_t)id->map_len;
    void *base = map_aligned(fd, map_len);

    if (base == MAP_FAILED)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "cannot map %zu bytes: %m", map_len);
    out->base = base;
    out->map_len = map_len;
    out->len = map_len - PAGE;
    out->key = id->key;
    out->trailer = trailer_of(base, map_len);
    if (out->trailer->magic == SEGMENT_MAGIC && out->trailer->key == id->key)
        return TRIB_OK;
    munmap(base, map_len);
    return TRIB_ERR_INVALID;
}

static trib_status_t is_another(const struct trib_segment_id *id, int pid,
                                struct trib_error *err)
{
    return trib_fail(err, TRIB_ERR_INVALID,
                     "descriptor %d of process %d is no longer the exported segment",
                     id->fd, pid);
}

trib_status_t trib_segment_attach(const struct trib_segment_id *id,
                                  const struct trib_process *owner,
                                  const struct trib_process *self,
                                  struct trib_segment *out, struct trib_error *err)
{
    int fd = -1;

    memset(out, 0, sizeof(*out));
    out->fd = -1;
    trib_status_t status = check_len(id, err);
    if (status == TRIB_OK)
        status = open_peer_fd(id, owner->pid, &fd, err);
    if (status != TRIB_OK)
        return status;
    status = map(id, fd, out, err);
    const bool shared = status == TRIB_OK && trib_process_same(owner, self);
    if (shared && !join_owner(out)) {
        munmap(out->base, out->map_len);
        status = TRIB_ERR_INVALID;
    } else if (status == TRIB_OK && !shared) {
        populate(out, fd);
    }
    close(fd);
    if (status == TRIB_OK)
        return TRIB_OK;
    memset(out, 0, sizeof(*out));
    out->fd = -1;
    return status == TRIB_ERR_INVALID ? is_another(id, owner->pid, err) : status;
}

/* Return why a descriptor is rejected; NULL: it is accepted. Pages of hugetlbfs are
 * rejected: a hole punched into them may be impossible to fill again. */
static const char *fault_of(int fd, uint64_t map_len)
{
    struct statfs fs;
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || fstatfs(fd, &fs) != 0 || fs.f_type != TMPFS_MAGIC)
        return "it is not a memfd";
    if ((seals & SIZE_SEALS) != SIZE_SEALS)
        return "its size is not sealed (F_SEAL_SHRINK, F_SEAL_GROW)";
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != map_len)
        return "its size differs from the size in its address or region";
    return NULL;
}

trib_status_t trib_segment_adopt(const struct trib_segment_id *id, int fd, int pid,
                                 struct trib_segment *out, struct trib_error *err)
{
    memset(out, 0, sizeof(*out));
    out->fd = -1;
    trib_status_t status = check_len(id, err);
    if (status != TRIB_OK)
        return status;
    const char *fault = fault_of(fd, id->map_len);
    if (fault)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "process %d handed over a descriptor that is rejected: %s",
                         pid, fault);
    status = map(id, fd, out, err);
    if (status == TRIB_ERR_INVALID)
        status = trib_fail(err, status,
                           "process %d handed over a segment other than the announced "
                           "one",
                           pid);
    if (status == TRIB_OK)
        populate(out, fd);
    else
        *out = (struct trib_segment){.fd = -1};
    return status;
}

bool trib_segment_abandoned(const struct trib_segment *seg)
{
    return atomic_load_explicit(&seg->trailer->abandoned, memory_order_relaxed);
}

void trib_segment_release(struct trib_segment *seg, bool in_child)
{
    if (!seg->base)
        return;
    if (seg->fd >= 0) {
        if (!in_child)
            atomic_store_explicit(&seg->trailer->abandoned, 1, memory_order_relaxed);
        close(seg->fd);
    }
    if (in_child || !seg->counted || trib_own_memory_leave(seg->key))
        munmap(seg->base, seg->map_len);
    memset(seg, 0, sizeof(*seg));
    seg->fd = -1;
}
