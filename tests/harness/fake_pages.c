/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/fake_pages.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct fake_pages {
    int ring;
    uint8_t *queues; /* both rings */
    size_t bytes;
    struct io_uring_sqe *sqes;
    struct io_uring_params p;
};

static void release(struct fake_pages *f)
{
    if (f->sqes)
        munmap(f->sqes, f->p.sq_entries * sizeof(*f->sqes));
    if (f->queues)
        munmap(f->queues, f->bytes);
    if (f->ring >= 0)
        close(f->ring);
    free(f);
}

static void *map(const struct fake_pages *f, size_t bytes, off_t at)
{
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                   f->ring, at);

    return m == MAP_FAILED ? NULL : m;
}

struct fake_pages *fake_pages_pin(void *ptr, size_t len)
{
    struct fake_pages *f = calloc(1, sizeof(*f));
    struct iovec range = {ptr, len};

    f->ring = (int)syscall(SYS_io_uring_setup, 1, &f->p);
    if (f->ring >= 0 && f->p.features & IORING_FEAT_SINGLE_MMAP) {
        const size_t sq = f->p.sq_off.array + f->p.sq_entries * sizeof(uint32_t);
        const size_t cq =
            f->p.cq_off.cqes + f->p.cq_entries * sizeof(struct io_uring_cqe);
        f->bytes = sq > cq ? sq : cq;
        f->queues = map(f, f->bytes, IORING_OFF_SQ_RING);
        f->sqes = map(f, f->p.sq_entries * sizeof(*f->sqes), IORING_OFF_SQES);
    }
    if (f->queues && f->sqes &&
        syscall(SYS_io_uring_register, f->ring, IORING_REGISTER_BUFFERS, &range, 1) ==
            0)
        return f;
    const int error = errno;
    release(f);
    errno = error;
    return NULL;
}

void fake_pages_unpin(struct fake_pages *pages)
{
    release(pages);
}

static _Atomic uint32_t *word(const struct fake_pages *f, uint32_t at)
{
    return (_Atomic uint32_t *)(void *)(f->queues + at);
}

/* Move bytes between the pages and the beginning of a file. */
static bool move(const struct fake_pages *f, uint8_t opcode, int fd, const void *at,
                 size_t len)
{
    const uint32_t tail = *word(f, f->p.sq_off.tail);
    const uint32_t slot = tail & *word(f, f->p.sq_off.ring_mask);
    const uint32_t head = *word(f, f->p.cq_off.head);

    f->sqes[slot] = (struct io_uring_sqe){
        .opcode = opcode, .fd = fd, .addr = (uintptr_t)at, .len = (uint32_t)len};
    *word(f, f->p.sq_off.array + slot * (uint32_t)sizeof(uint32_t)) = slot;
    *word(f, f->p.sq_off.tail) = tail + 1;
    while (syscall(SYS_io_uring_enter, f->ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) <
           0)
        if (errno != EINTR)
            return false;
    if (*word(f, f->p.cq_off.tail) == head)
        return false;
    const struct io_uring_cqe *cqe =
        (const struct io_uring_cqe *)(void *)(f->queues + f->p.cq_off.cqes) +
        (head & *word(f, f->p.cq_off.ring_mask));
    const bool good = cqe->res == (int32_t)len;
    *word(f, f->p.cq_off.head) = head + 1;
    return good;
}

bool fake_pages_copy(const struct fake_pages *to, const void *dst,
                     const struct fake_pages *from, const void *src, size_t len)
{
    static int file = -1;

    if (file < 0)
        file = memfd_create("fake_pages", MFD_CLOEXEC);
    return move(from, IORING_OP_WRITE_FIXED, file, src, len) &&
           move(to, IORING_OP_READ_FIXED, file, dst, len);
}

bool fake_pages_work(void)
{
    static uint8_t from[4096], to[4096];
    struct fake_pages *a = fake_pages_pin(from, sizeof(from));
    struct fake_pages *b = fake_pages_pin(to, sizeof(to));

    from[1] = 1;
    const bool good = a && b && fake_pages_copy(b, to, a, from, sizeof(from));
    if (a)
        fake_pages_unpin(a);
    if (b)
        fake_pages_unpin(b);
    return good && to[1] == 1;
}
