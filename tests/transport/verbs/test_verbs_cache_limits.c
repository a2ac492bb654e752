/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which memory of malloc is registered, for how long, and how much.
 */
#include "base/cache_counts.h"
#include "tests/transport/verbs/verbs_cache_scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/memlock.h"
#include "base/time.h"
#include "tests/harness/limit_locked.h"

/* Memory that is used once is not registered. */
TEST(test_used_once, ready, nothing_left)
{
    enum { BUFFERS = 8 };
    struct scene s;
    uint8_t *p[BUFFERS];

    open_scene(&s, CACHED);
    const int regs = fake->regs;
    for (int i = 0; i < BUFFERS; i++) {
        p[i] = pages(LEN);
        assert_null(borrow(&s.pair, 0, p[i], LEN, false));
    }
    assert_int_equal(fake->regs, regs);
    for (int i = 0; i < BUFFERS; i++) {
        assert_true(sends(&s, p[i], 1));
        munmap(p[i], LEN);
    }
    assert_int_equal(fake->regs, regs + BUFFERS);
    pair_close(&s.pair);
}

/* Memory that is unmapped after each use is soon no longer registered. */
TEST(test_short_lives, ready, nothing_left)
{
    struct scene s;
    uint8_t *p = pages(LEN);

    open_scene(&s, CACHED);
    const int regs = fake->regs;
    for (int i = 0; i < 300; i++) {
        (void)sends(&s, p, (uint8_t)i);
        munmap(p, LEN);
        p = pages_at(p, LEN);
    }
    assert_in_range(fake->regs - regs, 1, 4);
    munmap(p, LEN);
    pair_close(&s.pair);
}

/* Views of one buffer use its registration; a longer one has its own. */
TEST(test_views, ready, nothing_left)
{
    struct scene s;
    uint8_t *p = pages(2 * LEN);

    open_scene(&s, CACHED);
    heat(&s.pair, 0, p + 3, LEN + 5000, false);
    const int regs = fake->regs;
    for (size_t off = 3; off < 5000; off += 777)
        assert_true(sends(&s, p + off, (uint8_t)off));
    assert_int_equal(fake->regs, regs);
    assert_false(sends(&s, p + 2, 1));
    assert_false(sends(&s, p + 6000, 1));
    assert_int_equal(fake->regs, regs);
    heat(&s.pair, 0, p + 2, LEN, false);
    heat(&s.pair, 0, p + 6000, LEN, false);
    assert_int_equal(fake->regs, regs + 2);
    for (size_t off = 2; off < 6001; off += 1500)
        assert_true(sends(&s, p + off, (uint8_t)off));
    munmap(p, 2 * LEN);
    pair_close(&s.pair);
}

/* Peers reach memory only while it is borrowed for their writes. */
TEST(test_access, ready, nothing_left)
{
    struct scene s;
    uint8_t *p = pages(LEN);

    open_scene(&s, CACHED);
    heat(&s.pair, 1, p, LEN, false);
    struct trib_region *input = borrow(&s.pair, 1, p, LEN, false);
    assert_non_null(input);
    struct trib_blob blob;
    struct trib_remote *remote;
    assert_ok(s.pair.t[1]->ops->export_region(s.pair.t[1], input, &blob));
    assert_ok(s.pair.t[0]->ops->import_region(s.pair.t[0], 1, &blob, &remote));
    const struct trib_write w = {.local = s.region[0], .remote = remote, .len = LEN};
    assert_ok(s.pair.t[0]->ops->write(s.pair.t[0], 1, &w));
    expect_loss(&s.pair, 0, "");
    is_all(p, LEN, 0);
    give_back(&s.pair, 1, input);
    munmap(p, LEN);
    pair_close(&s.pair);
}

TEST(test_revoked, ready, nothing_left)
{
    struct scene s;
    uint8_t *p = pages(LEN);
    struct trib_blob blob;
    struct trib_remote *remote;

    open_scene(&s, CACHED);
    struct trib_region *to = borrow_hot(&s.pair, 1, p, LEN, true);
    assert_ok(s.pair.t[1]->ops->export_region(s.pair.t[1], to, &blob));
    assert_ok(s.pair.t[0]->ops->import_region(s.pair.t[0], 1, &blob, &remote));
    memset(s.mem[0], 7, LEN);
    const struct trib_write w = {.local = s.region[0], .remote = remote, .len = LEN};
    fake_verbs_hold(true);
    assert_ok(s.pair.t[0]->ops->write(s.pair.t[0], 1, &w));
    s.pair.t[1]->ops->give_back(s.pair.t[1], to, true);
    fake_verbs_hold(false);
    expect_loss(&s.pair, 0, "");
    is_all(p, LEN, 0);
    munmap(p, LEN);
    pair_close(&s.pair);
}

/* Two communicators share registrations, except of memory that peers write. */
TEST(test_shared, ready, nothing_left)
{
    struct scene s, other;
    uint8_t *p = pages(LEN);

    open_scene(&s, CACHED);
    open_scene(&other, CACHED);
    heat(&s.pair, 1, p, LEN, true);
    const int regs = fake->regs;
    struct trib_region *first = borrow(&s.pair, 1, p, LEN, false);
    struct trib_region *second = borrow(&other.pair, 1, p, LEN, false);
    assert_true(first && second);
    give_back(&s.pair, 1, first);
    give_back(&other.pair, 1, second);
    first = borrow(&s.pair, 1, p, LEN, true);
    assert_non_null(first);
    assert_null(borrow(&other.pair, 1, p, LEN, true));
    assert_null(borrow(&other.pair, 1, p, LEN, false));
    give_back(&s.pair, 1, first);
    assert_true(receives(&other, p, 5));
    assert_int_equal(fake->regs, regs);
    pair_close(&s.pair);
    assert_true(receives(&other, p, 6));
    assert_int_equal(fake->regs, regs);
    munmap(p, LEN);
    pair_close(&other.pair);
}

/* The oldest goes first, and none that is in use. */
TEST(test_small_cache, ready, nothing_left)
{
    enum { BUFFERS = 6 };
    struct scene s;
    uint8_t *p[BUFFERS];

    open_scene(&s, ALONE ",cache=1"); /* MiB */
    for (int i = 0; i < BUFFERS; i++)
        p[i] = pages(LEN);
    struct trib_region *held = borrow_hot(&s.pair, 0, p[0], LEN, false);
    for (int i = 0; i < 5 * BUFFERS; i++) {
        uint8_t *x = p[1 + i % (BUFFERS - 1)];
        heat(&s.pair, 0, x, LEN, false);
        assert_true(sends(&s, x, (uint8_t)i));
        assert_int_equal(trib_verbs_cache_pinned(), 2 * LEN);
        assert_int_equal(trib_cache_counts.pinned, 2 * LEN);
    }
    assert_int_equal(trib_cache_counts.limit, 1 << 20);
    memset(p[0], 77, LEN);
    carry(&s.pair, held, s.region[1], LEN);
    is_all(s.mem[1], LEN, 77);
    give_back(&s.pair, 0, held);
    const uint64_t hits = trib_cache_counts.hits, misses = trib_cache_counts.misses;
    give_back(&s.pair, 0, borrow(&s.pair, 0, p[0], LEN, false));
    assert_int_equal(trib_cache_counts.hits, hits + 1);
    uint8_t *large = pages(3 * LEN);
    for (int i = 0; i < TRIES; i++)
        assert_null(borrow(&s.pair, 0, large, 3 * LEN, false));
    assert_int_equal(trib_cache_counts.hits, hits + 1);
    assert_int_equal(trib_cache_counts.misses, misses + TRIES);
    for (int i = 0; i < BUFFERS; i++)
        munmap(p[i], LEN);
    munmap(large, 3 * LEN);
    pair_close(&s.pair);
}

TEST(test_no_cache, ready, nothing_left)
{
    struct scene s;
    uint8_t *p = pages(LEN);

    open_scene(&s, ALONE ",cache=0");
    for (int i = 0; i < 10; i++)
        assert_null(borrow(&s.pair, 0, p, LEN, false));
    munmap(p, LEN);
    pair_close(&s.pair);
    pair_refuses("verbs:cache=-1", TRIB_ERR_CONFIG, "cache=-1 is not a whole number");
}

/* More ranges than rows. */
TEST(test_many_ranges, ready, nothing_left)
{
    enum { RANGES = 1500, STEP = 64 };
    struct scene s;
    uint8_t *p = pages(LEN + RANGES * STEP);

    fake->real_pages = false;
    open_scene(&s, CACHED);
    for (int round = 0; round < 3; round++)
        for (size_t i = RANGES; i-- > 0;) {
            struct trib_region *r = borrow(&s.pair, 0, p + i * STEP, LEN + i, false);
            if (r)
                give_back(&s.pair, 0, r);
        }
    heat(&s.pair, 0, p, LEN + RANGES * STEP, false);
    munmap(p, LEN + RANGES * STEP);
    pair_close(&s.pair);
}

/* Slots find room although the cache has taken the memory that may be locked. */
static int leave_room(int rank, int size, void *arg)
{
    const size_t limit = 8 << 20;
    struct scene s;
    struct trib_region *slots;
    struct trib_memlock m;
    void *ptr;

    (void)rank, (void)size, (void)arg;
    if (!limit_locked(limit))
        return 3;
    open_scene(&s, CACHED);
    trib_memlock_read(&m);
    if (!m.limited)
        return 4;
    for (int i = 0; i < 10; i++) {
        uint8_t *p = pages(LEN);
        for (int k = 0; k < 3; k++) {
            struct trib_region *r = borrow(&s.pair, 0, p, LEN, false);
            if (r)
                give_back(&s.pair, 0, r);
        }
    }
    if (trib_verbs_cache_pinned() < 2 * LEN || trib_verbs_cache_pinned() > limit / 2)
        return 1;
    struct trib_pinned_limit left;
    s.pair.t[0]->ops->pinned_limit(s.pair.t[0], false, &left);
    if (trib_verbs_cache_pinned() || left.bytes < limit - (2 << 20))
        return 2;
    for (int k = 0; k < 3; k++)
        heat(&s.pair, 0, pages(LEN), LEN, false);
    return s.pair.t[0]->ops->alloc(s.pair.t[0], left.bytes, &ptr, &slots) != TRIB_OK;
}

TEST(test_locked_memory, ready)
{
    need_watch();
    fake->real_pages = false;
    fake->memlock = true;
    assert_int_equal(tribtest_forks(1, 60, leave_room, NULL), 0);
}

/* Memory that the kernel cannot watch is not registered; the log has the reason. */
TEST(test_other_memory, ready, nothing_left)
{
    struct scene s;
    const int fd = memfd_create("shared", MFD_CLOEXEC);

    open_scene(&s, CACHED);
    assert_int_equal(ftruncate(fd, LEN), 0);
    for (int flags = MAP_SHARED; flags <= MAP_PRIVATE; flags++) {
        void *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, flags, fd, 0);
        assert_true(p != MAP_FAILED);
        for (int i = 0; i < 3 * TRIES; i++)
            assert_null(borrow(&s.pair, 0, p, LEN, false));
        munmap(p, LEN);
    }
    assert_true(pair_has_logged(&s.pair, "not private anonymous memory"));
    close(fd);
    pair_close(&s.pair);
}

/* Without the kernel's copies at forks, children would miss the memory. */
TEST(test_old_kernel, ready, nothing_left)
{
    struct scene s;
    uint8_t *p = pages(LEN);

    fake->fork_unneeded = false;
    open_scene(&s, CACHED);
    for (int i = 0; i < 10; i++)
        assert_null(borrow(&s.pair, 0, p, LEN, false));
    munmap(p, LEN);
    pair_close(&s.pair);
}

static bool is_of_io_uring(const char *task)
{
    char path[300], name[32] = "";

    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
    FILE *file = fopen(path, "re");
    if (file) {
        (void)!fgets(name, sizeof(name), file);
        fclose(file);
    }
    return strncmp(name, "iou-", 4) == 0;
}

static int count(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        n += !is_of_io_uring(e->d_name);
    closedir(d);
    return n;
}

/* A thread that was joined may be listed for a moment. */
static bool count_becomes(const char *folder, int n)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (count(folder) != n && !trib_deadline_passed(until))
        usleep(1000);
    return count(folder) == n;
}

/* The thread and the descriptors of the watch begin with the first registration and end
 * with the last domain that needs them. */
TEST(test_ends, ready, nothing_left)
{
    static const char tasks[] = "/proc/self/task", files[] = "/proc/self/fd";
    struct scene s, other;
    uint8_t *p = pages(LEN);

    need_watch();
    fake->real_pages = false;
    const int threads = count(tasks), fds = count(files);
    for (int i = 0; i < 2; i++) {
        open_scene(&s, CACHED);
        open_scene(&other, CACHED);
        assert_null(borrow(&s.pair, 0, p, LEN, false));
        const int before = count(tasks);
        heat(&s.pair, 0, p, LEN, false);
        heat(&other.pair, 1, p, LEN, true);
        assert_int_equal(count(tasks), before + 1);
        pair_close(&s.pair);
        heat(&other.pair, 0, p, LEN, false);
        pair_close(&other.pair);
        assert_true(count_becomes(tasks, threads));
        assert_true(count_becomes(files, fds));
    }
    munmap(p, LEN);
}

/* The child keeps the descriptor of the watch. */
static pid_t fork_without_handlers(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* A child frees memory that its parent watches, while and after the parent ends. */
static void outlive(pid_t (*make_child)(void))
{
    struct scene s;
    uint8_t *p = pages(LEN), *q = pages(2 * LEN);
    int go[2], status;
    char byte = 0;

    open_scene(&s, CACHED);
    heat(&s.pair, 0, p, LEN, false);
    heat(&s.pair, 0, q, LEN + PAGE, false);
    heat(&s.pair, 1, q + LEN / 2, LEN, true);
    assert_int_equal(pipe(go), 0);
    const pid_t child = make_child();
    if (child == 0) {
        const ssize_t n = read(go[0], &byte, 1);
        _exit(n != 1 || munmap(p, LEN) != 0);
    }
    pair_close(&s.pair);
    assert_int_equal(munmap(p, LEN), 0); /* no thread reads events */
    assert_int_equal(munmap(q, 2 * LEN), 0);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(go[0]);
    close(go[1]);
}

TEST(test_child_outlives, ready, nothing_left)
{
    need_watch();
    outlive(fork);
    outlive(fork_without_handlers);
}

/* Memory that was watched may be in other places when the parent ends. */
TEST(test_child_outlives_moves, ready, nothing_left)
{
    enum { HANGS_S = 20 };
    struct scene s;
    uint8_t *moved = pages(LEN), *to = pages(2 * LEN), *grown = pages(2 * LEN);
    uint8_t *mixed = pages(LEN);
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int status;

    need_watch();
    munmap(grown + LEN, LEN);
    open_scene(&s, CACHED);
    heat(&s.pair, 0, moved, LEN, false);
    heat(&s.pair, 0, grown, LEN, false);
    heat(&s.pair, 0, mixed, LEN, false);
    const pid_t child = fork_without_handlers();
    if (child == 0) {
        alarm(2 * HANGS_S);
        pause();
        _exit(0);
    }
    alarm(HANGS_S);
    assert_ptr_equal(mremap(moved, LEN, 2 * LEN, MREMAP_MAYMOVE | MREMAP_FIXED, to),
                     to);
    (void)mremap(grown, LEN, 2 * LEN, 0); /* fails if the place is taken */
    assert_ptr_equal(
        mmap(mixed + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0),
        mixed + PAGE);
    pair_close(&s.pair);
    assert_int_equal(munmap(to, 2 * LEN), 0); /* no thread reads events */
    assert_int_equal(munmap(grown, 2 * LEN), 0);
    assert_int_equal(munmap(mixed, LEN), 0);
    alarm(0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(file);
}
