/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of malloc that is unmapped, and mapped again, while it is registered.
 */
#include "tests/transport/verbs/verbs_cache_scene.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

#include "base/time.h"

/* Changes of the mapping ---------------------------------------------------------- */

static uint8_t *unmap(uint8_t *p)
{
    assert_int_equal(munmap(p, LEN), 0);
    return pages_at(p, LEN);
}

static uint8_t *map_over(uint8_t *p)
{
    return pages_at(p, LEN);
}

static uint8_t *map_over_a_page(uint8_t *p)
{
    pages_at(p + LEN / 2, PAGE);
    return p;
}

static uint8_t *unmap_last_page(uint8_t *p)
{
    assert_int_equal(munmap(p + LEN - PAGE, PAGE), 0);
    pages_at(p + LEN - PAGE, PAGE);
    return p;
}

static uint8_t *move_away(uint8_t *p)
{
    void *to = pages(LEN);

    assert_ptr_equal(mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
    pages_at(p, LEN);
    assert_int_equal(munmap(to, LEN), 0);
    return p;
}

static uint8_t *move_over(uint8_t *p)
{
    void *from = pages(LEN);

    assert_ptr_equal(mremap(from, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, p), p);
    return p;
}

static uint8_t *move_and_stay(uint8_t *p)
{
    void *to = mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

    assert_true(to != MAP_FAILED);
    assert_int_equal(munmap(to, LEN), 0);
    return p;
}

static uint8_t *shrink_and_grow(uint8_t *p)
{
    assert_ptr_equal(mremap(p, LEN, LEN / 2, 0), p);
    pages_at(p + LEN / 2, LEN / 2);
    return p;
}

static uint8_t *empty(uint8_t *p)
{
    assert_int_equal(madvise(p, LEN, MADV_DONTNEED), 0);
    return p;
}

static uint8_t *empty_a_page(uint8_t *p)
{
    assert_int_equal(madvise(p + 3 * PAGE, PAGE, MADV_DONTNEED), 0);
    return p;
}

static uint8_t *set_free(uint8_t *p)
{
    assert_int_equal(madvise(p, LEN, MADV_FREE), 0);
    return p;
}

/* The child writes to its copy, and unmaps it. */
static uint8_t *fork_here(uint8_t *p)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        memset(p, 99, LEN);
        _exit(munmap(p, LEN) != 0);
    }
    assert_true(child > 0);
    memset(p, 98, LEN);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return p;
}

static const struct {
    const char *name;
    uint8_t *(*change)(uint8_t *p);
    bool stays; /* registered */
} changes[] = {
    {.name = "unmap", .change = unmap},
    {.name = "map over", .change = map_over},
    {.name = "map over a page", .change = map_over_a_page},
    {.name = "unmap the last page", .change = unmap_last_page},
    {.name = "move away", .change = move_away},
    {.name = "move over", .change = move_over},
    {.name = "move and stay", .change = move_and_stay},
    {.name = "shrink and grow", .change = shrink_and_grow},
    {.name = "empty", .change = empty},
    {.name = "empty a page", .change = empty_a_page},
    {.name = "free", .change = set_free},
    {.name = "fork", .change = fork_here, .stays = true},
};

enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

static void change_all(const char *text,
                       bool (*works)(struct scene *, uint8_t *, uint8_t))
{
    struct scene s;
    const bool written = works == receives;

    assert_null(trib_map_watch_start(NULL)); /* the doctor may have begun the watch */
    open_scene(&s, text);
    for (int i = 0; i < CHANGES; i++) {
        uint8_t *p = pages(LEN);
        now = changes[i].name;
        heat(&s.pair, written, p, LEN, written);
        assert_true(works(&s, p, 1));
        p = changes[i].change(p);
        if (works(&s, p, 2) != changes[i].stays)
            fail_msg("after %s", now);
        heat(&s.pair, written, p, LEN, written);
        assert_true(works(&s, p, 3));
        assert_int_equal(munmap(p, LEN), 0);
    }
    trib_map_watch_stop();
    pair_close(&s.pair);
}

TEST(test_sends_what_is_mapped_now, ready, nothing_left)
{
    change_all(CACHED, sends);
}

TEST(test_receives_where_is_mapped_now, ready, nothing_left)
{
    change_all(CACHED, receives);
}

TEST(test_over_paths, ready, nothing_left)
{
    change_all("verbs:qps=3,cache=1024", sends);
}

TEST(test_over_rails, ready, nothing_left)
{
    fake->devices = 2;
    change_all("verbs:cache=1024", receives);
}

/* The end of the heap goes and comes back. */
TEST(test_heap, ready, nothing_left)
{
    struct scene s;

    mallopt(M_TOP_PAD, 8 << 20); /* malloc does not extend the heap */
    free(malloc(4 << 20));
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    free(malloc(900 << 10));
    open_scene(&s, CACHED);
    for (int i = 0; i < 3; i++) {
        uint8_t *p = sbrk(LEN);
        assert_true(p != (void *)-1);
        heat(&s.pair, 0, p, LEN, false);
        assert_true(sends(&s, p, 1));
        assert_true(sbrk(-LEN) != (void *)-1);
        assert_ptr_equal(sbrk(LEN), p);
        assert_false(sends(&s, p, 2));
        assert_true(sbrk(-LEN) != (void *)-1);
    }
    pair_close(&s.pair);
}

/* Threads ------------------------------------------------------------------------- */

struct crowd {
    struct scene s;
    pthread_mutex_t lock; /* a transport has one user at a time */
    _Atomic int n;
    _Atomic int registered;
    uint64_t until;
};

/* Memory comes and goes in all threads at once, so addresses pass from one to the
 * other. */
static void *come_and_go(void *arg)
{
    struct crowd *c = arg;

    while (!trib_deadline_passed(c->until)) {
        const uint8_t value = (uint8_t)(1 + c->n++ % 250);
        uint8_t *p = value % 2 ? pages(LEN) : malloc(LEN);
        for (int i = 0; i < 4; i++) {
            pthread_mutex_lock(&c->lock);
            c->registered += sends(&c->s, p, value);
            c->registered += receives(&c->s, p, value);
            pthread_mutex_unlock(&c->lock);
        }
        if (value % 2)
            munmap(p, LEN);
        else
            free(p);
    }
    return NULL;
}

static void *use_addresses(void *arg)
{
    struct crowd *c = arg;

    while (!trib_deadline_passed(c->until)) {
        void *p[3];
        for (int i = 0; i < 3; i++) {
            p[i] = pages(LEN);
            memset(p[i], 200, PAGE);
        }
        for (int i = 0; i < 3; i++)
            munmap(p[i], LEN);
    }
    return NULL;
}

TEST(test_threads, ready, nothing_left)
{
    enum { THREADS = 4 };
    static struct crowd c;
    pthread_t of[THREADS];

    c = (struct crowd){.lock = PTHREAD_MUTEX_INITIALIZER};
    open_scene(&c.s, CACHED);
    mallopt(M_MMAP_THRESHOLD, LEN / 2); /* malloc maps and unmaps */
    c.until = trib_deadline_ms(1500);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&of[i], NULL, i == 3 ? use_addresses : come_and_go, &c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(of[i], NULL);
    pair_close(&c.s.pair);
}

/* Children of a process whose threads free memory, and use the cache. */
TEST(test_forks_of_threads, ready, nothing_left)
{
    static struct crowd c;
    pthread_t of[2];

    c = (struct crowd){.lock = PTHREAD_MUTEX_INITIALIZER};
    open_scene(&c.s, CACHED);
    mallopt(M_TRIM_THRESHOLD, 64 << 10); /* free() empties memory with a lock held */
    c.until = trib_deadline_ms(1500);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&of[i], NULL, come_and_go, &c), 0);
    while (!trib_deadline_passed(c.until)) {
        const pid_t child = fork();
        int status;
        if (child == 0) {
            void *p = malloc(LEN);
            memset(p, 1, LEN);
            free(p);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(of[i], NULL);
    pair_close(&c.s.pair);
}

/* Huge pages ---------------------------------------------------------------------- */

/* Return true if the kernel was asked for huge pages at this address. */
static bool wants_huge_pages(const void *p)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[1000];
    bool within = false, wants = false;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        unsigned long lo, hi;
        if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2)
            within = (uintptr_t)p >= lo && (uintptr_t)p < hi;
        else if (within && strncmp(line, "VmFlags:", 8) == 0)
            wants |= strstr(line, " hg") != NULL;
    }
    fclose(f);
    return wants;
}

/* Memory for slots and vectors is registered and pinned as a whole. From a huge page on
 * it uses huge pages. */
TEST(test_huge_pages, ready, nothing_left)
{
    static const size_t sizes[] = {4096, (2 << 20) - 4096, 2 << 20, (5 << 20) + 1};
    struct pair pair;

    open_pair(&pair);
    const struct trib_transport_ops *ops = pair.t[0]->ops;
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0)
        tribtest_skip("no huge pages");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct trib_region *region;
        void *mem;
        const bool huge = sizes[i] >= 2 << 20;
        assert_status(ops->alloc(pair.t[0], sizes[i], &mem, &region), TRIB_OK);
        memset(mem, 1, sizes[i]);
        assert_int_equal(wants_huge_pages(mem), huge);
        if (huge)
            assert_int_equal((uintptr_t)mem % (2 << 20), 0);
        ops->dereg(pair.t[0], region);
    }
    pair_close(&pair);
}
