/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Malicious pages: text read from them is terminated and printable, and values are
 * within range.
 */
#include "tests/harness/tribtest.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/memfd.h"
#include "base/process.h"
#include "base/time.h"
#include "inspect/rank_pages.h"

/* A page of this process that is right. */
static void fill(struct trib_state_page *page)
{
    struct trib_process self;

    memset(page, 0, sizeof(*page));
    trib_process_self(&self);
    memcpy(page->magic, TRIB_STATE_PAGE_MAGIC, sizeof(page->magic));
    page->version = TRIB_STATE_PAGE_VERSION;
    page->bytes = sizeof(*page);
    page->pid = self.pid;
    page->start = self.start;
    page->space = self.space;
    page->rank = 1;
    page->ranks = 4;
    page->root_pid = 77;
    strcpy(page->host, "here");
    strcpy(page->root_host, "there");
    strcpy(page->label, "1-split2");
    strcpy(page->coll, "allreduce");
    strcpy(page->algorithm, "ring");
    strcpy(page->what, "a contribution");
    strcpy(page->phase, "start");
    page->op_bytes = 3 << 20;
    page->op = 2 * 12 + 1;
    page->awaits = page->op << 32 | (TRIB_STATE_PEER + 3);
    page->since_ns = trib_now_ns() - 12000000000u;
    page->polled_ns = trib_now_ns();
}

static int put(const struct trib_state_page *page, bool sealed)
{
    int fd;

    if (sealed)
        assert_int_equal(
            trib_memfd_create(TRIB_STATE_PAGE_NAME, sizeof(*page), &fd, NULL), TRIB_OK);
    else
        fd = memfd_create(TRIB_STATE_PAGE_NAME, MFD_CLOEXEC);
    assert_true(fd > 2);
    assert_int_equal(pwrite(fd, page, sizeof(*page), 0), sizeof(*page));
    return fd;
}

/* Reads it as trib_ranks_each does. */
static bool read_back(const struct trib_state_page *page, struct trib_rank_page *out)
{
    const int fd = put(page, true);
    const bool ok = trib_rank_page_read(fd, out);

    close(fd);
    if (!ok)
        return false;
    trib_rank_page_judge(out);
    trib_rank_page_text(out);
    assert_true(memchr(out->text, '\0', sizeof(out->text)) != NULL);
    return true;
}

TEST(test_right)
{
    struct trib_state_page page;
    struct trib_rank_page p;

    fill(&page);
    assert_true(read_back(&page, &p));
    assert_string_equal(p.part, "split2");
    assert_int_equal(p.peer, 3);
    assert_string_equal(p.text, "allreduce 12, 3.0 MiB, ring, start, waits for "
                                "a contribution of rank 3, 12 s");
    p.stopped = true;
    trib_rank_page_judge(&p);
    assert_false(p.waits); /* the contribution may have arrived since */
    page.polled_ns = trib_now_ns() - 1000000000u; /* the rank has made progress since */
    page.begun_ns = page.since_ns;
    assert_true(read_back(&page, &p));
    assert_string_equal(p.text, "allreduce 12, 3.0 MiB, ring, for 12 s");
    page.op = 2 * 12;
    page.left_ns = page.since_ns;
    page.left_op = 2 * 11;
    assert_true(read_back(&page, &p));
    assert_string_equal(p.text, "outside the library for at most 12 s");
    page.failed = 1;
    assert_true(read_back(&page, &p));
    assert_string_equal(p.text, "failed: a contribution");
    assert_string_equal(p.cache, ""); /* it is off */
    page.cache_limit = UINT64_C(4) << 30;
    page.cache_pinned = 300 << 20;
    page.cache_hits = 90;
    page.cache_misses = 10;
    assert_true(read_back(&page, &p));
    assert_string_equal(p.cache, "300 MiB of 4.0 GiB registered, 90 hits, 10 misses");
}

static void refused(void (*spoil)(struct trib_state_page *page))
{
    struct trib_state_page page;
    struct trib_rank_page p;

    fill(&page);
    spoil(&page);
    assert_false(read_back(&page, &p));
}

static void other_magic(struct trib_state_page *page)
{
    page->magic[7]++;
}
static void other_version(struct trib_state_page *page)
{
    page->version++;
}
static void other_size(struct trib_state_page *page)
{
    page->bytes--;
}
static void no_ranks(struct trib_state_page *page)
{
    page->ranks = page->rank = 0;
}
static void rank_beyond(struct trib_state_page *page)
{
    page->rank = page->ranks;
}
static void rank_below(struct trib_state_page *page)
{
    page->rank = -1;
}
static void too_many(struct trib_state_page *page)
{
    page->ranks = INT32_MAX;
}

TEST(test_refused)
{
    struct trib_rank_page p;

    refused(other_magic);
    refused(other_version);
    refused(other_size);
    refused(no_ranks);
    refused(rank_beyond);
    refused(rank_below);
    refused(too_many);
    const int fd = memfd_create(TRIB_STATE_PAGE_NAME, MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 64), 0); /* shorter than a page */
    assert_false(trib_rank_page_read(fd, &p));
    close(fd);
}

/* Bytes that no page has: texts without an end, control characters, any numbers. */
TEST(test_hostile)
{
    struct trib_state_page page;
    struct trib_rank_page p;

    fill(&page);
    memset(page.host, 0x1b, sizeof(page.host));
    memset(page.root_host, 'a', sizeof(page.root_host));
    memset(page.label, '-', sizeof(page.label));
    memset(page.coll, '\n', sizeof(page.coll));
    memset(page.algorithm, 0xff, sizeof(page.algorithm));
    memset(page.plan, 0x1b, sizeof(page.plan));
    memset(page.what, 0x1b, sizeof(page.what));
    memset(page.phase, '%', sizeof(page.phase));
    page.since_ns = page.polled_ns = UINT64_MAX;
    page.op_bytes = UINT64_MAX;
    page.cache_limit = page.cache_pinned = UINT64_MAX;
    page.cache_hits = page.cache_misses = UINT64_MAX;
    page.awaits = page.op << 32 | UINT32_MAX;
    assert_true(read_back(&page, &p));
    assert_int_equal(p.peer, -1);
    for (const char *c = p.text; *c; c++)
        assert_true(*c >= ' ' && *c < 0x7f);
    assert_true(p.age_s >= 0);
    for (const char *c = p.page.host; *c; c++)
        assert_true(*c >= ' ');
    page.guard = 1; /* it changes for ever: no text counts */
    assert_true(read_back(&page, &p));
    assert_int_equal(p.page.coll[0], 0);
    assert_int_equal(p.page.host[sizeof(p.page.host) - 1], 0);
    assert_false(p.waits);
}

/* Pages of this process: its own, which is open twice, a copy of another process's, one
 * that can shrink. */
TEST(test_of_process)
{
    struct trib_rank_pages pages = {0};
    struct trib_state_page page;

    fill(&page);
    const int own = put(&page, true);
    const int fds[] = {own, dup(own), (page.start += 1000, put(&page, true)),
                       (page.start -= 1000, put(&page, false))};
    assert_true(trib_rank_pages_of(getpid(), &pages));
    assert_int_equal(pages.n, 1);
    assert_int_equal(pages.list[0].pid, getpid());
    free(pages.list);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

/* The page names its job; the kernel reports its owner. */
TEST(test_users)
{
    struct trib_rank_page a = {0}, b;

    fill(&a.page);
    a.user = 1000;
    b = a;
    assert_true(trib_rank_same_job(&a, &b));
    b.user = 65534;
    assert_false(trib_rank_same_job(&a, &b));
}

/* One user's pages do not use up the room of all. */
TEST(test_limit_of_user)
{
    struct trib_rank_pages pages = {0};
    struct trib_state_page page;

    fill(&page);
    const int own = put(&page, true);
    pages.room = TRIB_RANK_PAGES_OF_USER + 1;
    pages.list = calloc(pages.room, sizeof(*pages.list));
    assert_non_null(pages.list);
    pages.n = TRIB_RANK_PAGES_OF_USER;
    for (size_t i = 0; i < pages.n; i++)
        pages.list[i].user = geteuid();
    assert_true(trib_rank_pages_of(getpid(), &pages));
    assert_int_equal(pages.n, TRIB_RANK_PAGES_OF_USER);
    for (size_t i = 0; i < pages.n; i++)
        pages.list[i].user = geteuid() + 1;
    assert_true(trib_rank_pages_of(getpid(), &pages));
    assert_int_equal(pages.n, TRIB_RANK_PAGES_OF_USER + 1);
    assert_int_equal(pages.list[pages.n - 1].user, geteuid());
    free(pages.list);
    close(own);
}
