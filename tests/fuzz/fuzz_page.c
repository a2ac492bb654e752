/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as the state page of a rank, or edits of a valid page, as in its file:
 * every field read is terminated, printable and within its range, and so is the error
 * message.
 *
 * A first byte of 0 means edits; the second byte says whether the rank is stopped.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "inspect/rank_pages.h"
#include "tests/fuzz/edits.h"

unsigned fuzz_reached; /* accepted pages */

#define NOW UINT64_C(1000000000000)

static void fill(struct trib_state_page *page)
{
    memset(page, 0, sizeof(*page));
    memcpy(page->magic, TRIB_STATE_PAGE_MAGIC, sizeof(page->magic));
    page->version = TRIB_STATE_PAGE_VERSION;
    page->bytes = sizeof(*page);
    page->pid = page->root_pid = 77;
    page->rank = 1;
    page->ranks = 4;
    memcpy(page->host, "here", 5);
    memcpy(page->label, "1-split2", 9);
    memcpy(page->coll, "allreduce", 10);
    memcpy(page->algorithm, "ring", 5);
    memcpy(page->what, "a contribution", 15);
    memcpy(page->phase, "start", 6);
    page->op = 2 * 12 + 1;
    page->awaits = page->op << 32 | (TRIB_STATE_PEER + 3);
    page->since_ns = NOW - 12000000000u;
    page->polled_ns = NOW - 1000;
    page->left_ns = page->begun_ns = page->since_ns;
}

/* Write the bytes of the file. Return their number. */
static size_t make(const uint8_t *data, size_t size, struct trib_state_page *page)
{
    const uint64_t special[] = {
        page->op, NOW, UINT64_MAX, page->op << 32 | TRIB_STATE_ANY, 0, INT32_MAX};
    struct edits e = {.at = data + 2,
                      .left = size - 2,
                      .special = special,
                      .n_special = sizeof(special) / sizeof(special[0])};
    struct edit one;

    if (data[0] == 0) {
        while (edits_next(&e, &one))
            (void)edit_apply(&e, &one, page, sizeof(*page));
        return sizeof(*page);
    }
    memset(page, 0, sizeof(*page));
    memcpy(page, data + 2, size - 2 < sizeof(*page) ? size - 2 : sizeof(*page));
    return size - 2 < sizeof(*page) ? size - 2 : sizeof(*page);
}

static void is_plain(const char *text, size_t bytes)
{
    need(memchr(text, 0, bytes) != NULL);
    for (; *text; text++)
        need((unsigned char)*text >= ' ' && *text != 127);
}

static void check(struct trib_rank_page *p)
{
    const struct trib_state_page *page = &p->page;

    trib_rank_page_judge(p);
    trib_rank_page_text(p);
    is_plain(page->host, sizeof(page->host));
    is_plain(page->root_host, sizeof(page->root_host));
    is_plain(page->label, sizeof(page->label));
    is_plain(page->coll, sizeof(page->coll));
    is_plain(page->algorithm, sizeof(page->algorithm));
    is_plain(page->plan, sizeof(page->plan));
    is_plain(page->what, sizeof(page->what));
    is_plain(page->phase, sizeof(page->phase));
    is_plain(p->part, sizeof(p->part));
    is_plain(p->text, sizeof(p->text));
    need(p->text[0] != 0);
    need(page->rank >= 0 && page->rank < page->ranks);
    need(p->peer >= -1 && p->peer < page->ranks);
    need(p->waits || p->peer == -1);
    need(p->age_s >= 0 && p->age_s <= (double)NOW * 1e-9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct trib_state_page page;
    struct trib_rank_page p;

    if (size < 2)
        return 0;
    if (fd < 0)
        fd = memfd_create("page", MFD_CLOEXEC);
    fill(&page);
    const size_t n = make(data, size, &page);
    need(ftruncate(fd, (off_t)n) == 0 && pwrite(fd, &page, n, 0) == (ssize_t)n);
    const bool taken = trib_rank_page_read(fd, &p);
    need(!taken || n == sizeof(page));
    if (!taken)
        return 0;
    p.now = NOW;
    p.stopped = data[1] & 1;
    check(&p);
    fuzz_reached++;
    return 0;
}
