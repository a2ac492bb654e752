/* SPDX-License-Identifier: BSD-3-Clause */
/* The text that describes a rank. */
#include <inttypes.h>

#include "base/text.h"
#include "inspect/rank_pages.h"

#define TEXT p->text, sizeof(p->text)

static void add_age(struct trib_rank_page *p, const char *before)
{
    const double s = p->age_s;

    (void)trib_text_append(TEXT, "%s", before);
    if (p->at_most)
        (void)trib_text_append(TEXT, "at most ");
    if (s < 9.95)
        (void)trib_text_append(TEXT, "%.1f s", s);
    else if (s < 600)
        (void)trib_text_append(TEXT, "%.0f s", s);
    else
        (void)trib_text_append(TEXT, "%.0f min", s / 60);
}

static void add_size(char *text, size_t room, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int unit = 0;

    for (; value >= 1024 && unit < 6; unit++)
        value /= 1024;
    (void)trib_text_append(text, room, "%.*f %s", value < 10 && unit ? 1 : 0, value,
                           units[unit]);
}

static void add_operation(struct trib_rank_page *p)
{
    const struct trib_state_page *page = &p->page;

    (void)trib_text_append(TEXT, "%s %" PRIu64,
                           page->coll[0] ? page->coll : "operation", page->op / 2);
    if (page->plan[0])
        (void)trib_text_append(TEXT, " \"%s\"", page->plan);
    if (page->op_bytes) {
        (void)trib_text_append(TEXT, ", ");
        add_size(TEXT, page->op_bytes);
    }
    if (page->algorithm[0])
        (void)trib_text_append(TEXT, ", %s", page->algorithm);
}

static void add_wait(struct trib_rank_page *p)
{
    if (p->page.phase[0])
        (void)trib_text_append(TEXT, ", %s", p->page.phase);
    (void)trib_text_append(TEXT, ", waits for %s", p->page.what);
    if (p->peer >= 0)
        (void)trib_text_append(TEXT, " of rank %d", p->peer);
    add_age(p, ", ");
}

static void set_cache(struct trib_rank_page *p)
{
    const struct trib_state_page *page = &p->page;

    p->cache[0] = '\0';
    if (!page->cache_limit)
        return;
    add_size(p->cache, sizeof(p->cache), page->cache_pinned);
    (void)trib_text_append(p->cache, sizeof(p->cache), " of ");
    add_size(p->cache, sizeof(p->cache), page->cache_limit);
    (void)trib_text_append(p->cache, sizeof(p->cache),
                           " registered, %" PRIu64 " hits, %" PRIu64 " misses",
                           page->cache_hits, page->cache_misses);
}

void trib_rank_page_text(struct trib_rank_page *p)
{
    const struct trib_state_page *page = &p->page;

    set_cache(p);
    p->text[0] = '\0';
    if (p->stopped)
        (void)trib_text_append(TEXT, "stopped; ");
    if (page->failed) {
        (void)trib_text_append(TEXT, "failed: %s", page->what);
    } else if (page->op & 1) {
        add_operation(p);
        if (p->waits)
            add_wait(p);
        else
            add_age(p, ", for ");
    } else if (p->waits) {
        (void)trib_text_append(TEXT, "%s", page->what);
        add_age(p, ", ");
    } else {
        add_age(p, "outside the library for ");
    }
}
