/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process.h"
#include "transport/handout.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/*
 * The pages of an attached segment are mapped at once up to this size. Read faults
 * fetch 16 pages each and leave them writable: 0.4 us a page against 2 us for the write
 * faults that the first operation would take (measured in a virtual machine). What is
 * larger may be meant to stay partly unused.
 */
#define POPULATE_MAX ((size_t)64 << 20)

#define SEGMENT_MAGIC UINT64_C(0x7365676d54524942)
#define PAGE ((size_t)4096)
#define HUGE ((size_t)2 << 20)
#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

struct trib_segment_trailer {
    uint64_t magic;
    uint64_t key;
    uint64_t owner_base; /* address of the data in the owner's process */
    _Atomic uint32_t refs; /* owner and the threads of its process that attached */
    _Atomic uint32_t abandoned; /* the owner has released it */
};

static_assert(sizeof(struct trib_segment_trailer) <= 4096, "the trailer is one page");
static_assert(ATOMIC_INT_LOCK_FREE == 2, "atomics must work between processes");

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Kernels before 6.3 do not know NOEXEC_SEAL, later ones warn when it is absent. */
static int memfd_make(void)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create("tributary", flags | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("tributary", flags);
    return fd;
}

/* Maps fd; large mappings begin at a multiple of 2 MiB. MAP_FAILED on error. */
static void *map_aligned(int fd, size_t map_len)
{
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
    madvise(base, map_len - PAGE, MADV_HUGEPAGE); /* where the kernel allows it */
    return base;
}

static struct trib_segment_trailer *trailer_of(void *base, size_t map_len)
{
    return (struct trib_segment_trailer *)((uint8_t *)base + map_len - PAGE);
}

static trib_status_t random_key(uint64_t *out, struct trib_error *err)
{
    if (getrandom(out, sizeof(*out), 0) != (ssize_t)sizeof(*out))
        return trib_fail(err, TRIB_ERR_SYSTEM, "getrandom failed: %m");
    return TRIB_OK;
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
    status = random_key(&key, err);
    if (status != TRIB_OK)
        return status;
    len = round_up(len, len >= HUGE ? HUGE : PAGE);
    size_t map_len = len + PAGE;

    int fd = memfd_make();
    if (fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "memfd_create failed: %m%s",
                         errno == EMFILE ? " (raise ulimit -n)" : "");
    if (ftruncate(fd, (off_t)map_len) != 0 || fcntl(fd, F_ADD_SEALS, SIZE_SEALS) != 0) {
        status = trib_fail(err, TRIB_ERR_SYSTEM, "cannot size a memfd to %zu bytes: %m",
                           map_len);
        goto err_close;
    }
    void *base = map_aligned(fd, map_len);
    if (base == MAP_FAILED) {
        status =
            trib_fail(err, TRIB_ERR_NO_MEMORY, "cannot map %zu bytes: %m", map_len);
        goto err_close;
    }

    out->base = base;
    out->len = len;
    out->map_len = map_len;
    out->key = key;
    out->fd = fd;
    out->counted = true;
    out->trailer = trailer_of(base, map_len);
    out->trailer->key = key;
    out->trailer->owner_base = (uintptr_t)base;
    out->trailer->magic = SEGMENT_MAGIC;
    atomic_store(&out->trailer->refs, 1);
    return TRIB_OK;

err_close:
    close(fd);
    return status;
}

struct trib_segment_id trib_segment_id(const struct trib_segment *seg)
{
    assert(seg->fd >= 0);
    return (struct trib_segment_id){
        .key = seg->key, .map_len = seg->map_len, .fd = seg->fd};
}

/* TRIB_ERR_UNSUPPORTED: /proc bars it; the owner can still hand it out. */
static trib_status_t open_in_proc(const struct trib_segment_id *id, int pid, int *fd_out,
                                  struct trib_error *err)
{
    char path[64];
    int number = trib_process_number(pid);

    if (number == 0)
        return trib_fail(err, TRIB_ERR_UNSUPPORTED,
                         "/proc does not show process %d; it must be mounted in the pid "
                         "namespace of the ranks (unshare --mount-proc)",
                         pid);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", number, id->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
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

/* Opens the owner's descriptor; the caller closes *fd_out. */
static trib_status_t open_peer_fd(const struct trib_segment_id *id, int pid, int *fd_out,
                                  struct trib_error *err)
{
    struct trib_error barred = {0};
    struct stat st;
    int fd;
    trib_status_t status = open_in_proc(id, pid, &fd, &barred);

    if (status == TRIB_ERR_UNSUPPORTED && id->handout)
        status = trib_handout_ask(id->handout, id->key, pid, &fd, err);
    else if (status != TRIB_OK)
        trib_fail(err, status, "%s", barred.text);
    if (status != TRIB_OK)
        return status;
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != id->map_len || seals < 0 ||
        (seals & SIZE_SEALS) != SIZE_SEALS) {
        close(fd);
        return trib_fail(err, TRIB_ERR_INVALID,
                         "descriptor %d of process %d is not the segment it was",
                         id->fd, pid);
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
        return trib_handout_knock(id->handout, pid, err);
    return status == TRIB_OK ? TRIB_OK : trib_fail(err, status, "%s", barred.text);
}

/* Takes one more reference unless the last one is gone. */
static bool refs_join(struct trib_segment_trailer *trailer)
{
    uint32_t refs = atomic_load(&trailer->refs);

    while (refs > 0) {
        if (atomic_compare_exchange_weak(&trailer->refs, &refs, refs + 1))
            return true;
    }
    return false;
}

/*
 * In the owner's process: exchange the mapping just made for the owner's own. The
 * mapping just made is what keeps the trailer readable until the reference is held.
 */
static bool join_owner(struct trib_segment *seg)
{
    uint8_t *own = (uint8_t *)(uintptr_t)seg->trailer->owner_base;

    if (!refs_join(seg->trailer))
        return false;
    munmap(seg->base, seg->map_len);
    seg->base = own;
    seg->trailer = trailer_of(own, seg->map_len);
    seg->counted = true;
    return true;
}

/*
 * Map the pages that are there at once: a fault on each costs far more. Those that nobody
 * has touched are not made. Kernels before 5.14 refuse: then the pages come one by one.
 */
static void populate(const struct trib_segment *seg, int fd)
{
    off_t end = (off_t)(seg->len < POPULATE_MAX ? seg->len : POPULATE_MAX), to;

    for (off_t at = 0; (at = lseek(fd, at, SEEK_DATA)) >= 0 && at < end; at = to) {
        to = lseek(fd, at, SEEK_HOLE);
        if (to < 0)
            return;
        size_t bytes = (size_t)((to < end ? to : end) - at);
        madvise(seg->base + at, bytes, MADV_POPULATE_READ);
    }
}

trib_status_t trib_segment_attach(const struct trib_segment_id *id,
                                  const struct trib_process *owner,
                                  const struct trib_process *self,
                                  struct trib_segment *out, struct trib_error *err)
{
    int fd = -1;

    memset(out, 0, sizeof(*out));
    out->fd = -1;
    if (id->map_len < 2 * PAGE || id->map_len > SIZE_MAX / 2 || id->map_len % PAGE)
        return trib_fail(err, TRIB_ERR_INVALID, "a segment of %llu bytes cannot be",
                         (unsigned long long)id->map_len);
    trib_status_t status = open_peer_fd(id, owner->pid, &fd, err);
    if (status != TRIB_OK)
        return status;

    size_t map_len = (size_t)id->map_len;
    void *base = map_aligned(fd, map_len);
    if (base == MAP_FAILED) {
        status =
            trib_fail(err, TRIB_ERR_NO_MEMORY, "cannot map %zu bytes: %m", map_len);
        close(fd);
        return status;
    }
    out->base = base;
    out->map_len = map_len;
    out->len = map_len - PAGE;
    out->key = id->key;
    out->trailer = trailer_of(base, map_len);
    bool same = out->trailer->magic == SEGMENT_MAGIC && out->trailer->key == id->key;
    if (same && trib_process_same(owner, self))
        same = join_owner(out);
    else if (same)
        populate(out, fd);
    close(fd);
    if (same)
        return TRIB_OK;

    munmap(base, map_len);
    memset(out, 0, sizeof(*out));
    out->fd = -1;
    return trib_fail(err, TRIB_ERR_INVALID,
                     "descriptor %d of process %d is not the segment it was", id->fd,
                     owner->pid);
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
    if (in_child || !seg->counted || atomic_fetch_sub(&seg->trailer->refs, 1) == 1)
        munmap(seg->base, seg->map_len);
    memset(seg, 0, sizeof(*seg));
    seg->fd = -1;
}
