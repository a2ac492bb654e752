/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_ranks_each: the pages of this host's ranks, sorted by job.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "inspect/rank_pages.h"

enum { ANCESTORS_MOST = 64 };

static int compare(int a, int b)
{
    return (a > b) - (a < b);
}

static int order(const void *x, const void *y)
{
    const struct trib_rank_page *a = x, *b = y;
    int c = strcmp(a->page.root_host, b->page.root_host);

    if (!c)
        c = compare(a->page.root_pid, b->page.root_pid);
    if (!c)
        c = (a->user > b->user) - (a->user < b->user);
    if (!c)
        c = strcmp(a->part, b->part);
    if (!c)
        c = compare(a->page.rank, b->page.rank);
    return c ? c : compare(a->pid, b->pid);
}

static int parent_of(int pid)
{
    char path[64], line[1024];
    int parent = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (!trib_file_line("", path, line, sizeof(line)))
        return 0;
    const char *end = strrchr(line, ')'); /* the name may contain ')' */
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static bool descends(int pid, int from)
{
    for (int i = 0; pid > 0 && i < ANCESTORS_MOST; i++) {
        if (pid == from)
            return true;
        pid = parent_of(pid);
    }
    return false;
}

/* Choose the pages of process `pid` and its descendants, and all other pages of their
 * jobs. Within a job, sub-communicators have their own rank 0. */
static void choose(struct trib_rank_pages *pages, int pid)
{
    for (size_t i = 0; i < pages->n; i++) {
        struct trib_rank_page *p = &pages->list[i];
        p->chosen = !pid || (i && pages->list[i - 1].pid == p->pid
                                 ? pages->list[i - 1].chosen
                                 : descends(p->pid, pid));
    }
    for (size_t i = 0; pid && i < pages->n; i++)
        for (size_t k = 0; pages->list[i].pid == pid && k < pages->n; k++)
            pages->list[k].chosen |=
                trib_rank_same_job(&pages->list[i], &pages->list[k]);
    for (size_t i = 0; pid && i < pages->n; i++)
        for (size_t k = 0; pages->list[i].chosen && k < pages->n; k++)
            pages->list[k].chosen |= pages->list[k].pid == pages->list[i].pid;
}

static bool find_all(struct trib_rank_pages *pages)
{
    DIR *proc = opendir("/proc");
    bool ok = proc;

    for (const struct dirent *d; ok && (d = readdir(proc));) {
        const int pid = atoi(d->d_name);
        if (pid > 0)
            ok = trib_rank_pages_of(pid, pages);
    }
    if (proc)
        closedir(proc);
    return ok;
}

/* A rank outside the library reports only an upper bound of its age; peers that wait
 * for it know the exact one. */
static void ask_peers(struct trib_rank_pages *pages, struct trib_rank_page *p)
{
    if (!p->at_most || p->waits || p->page.op & 1)
        return;
    for (size_t i = 0; i < pages->n; i++) {
        const struct trib_rank_page *q = &pages->list[i];
        if (!q->waits || q->peer != p->page.rank || q->page.op != p->page.op + 3 ||
            !trib_rank_same_job(q, p) || strcmp(q->part, p->part) != 0 ||
            q->age_s > p->age_s)
            continue;
        p->at_most = false;
        p->age_s = q->age_s;
        return;
    }
}

static void give(const struct trib_rank_page *p, trib_rank_state_fn fn, void *arg)
{
    const struct trib_state_page *page = &p->page;
    const trib_rank_state_t state = {.pid = p->pid,
                                     .rank = page->rank,
                                     .ranks = page->ranks,
                                     .root_pid = page->root_pid,
                                     .host = page->host,
                                     .root_host = page->root_host,
                                     .part = p->part,
                                     .text = p->text,
                                     .stopped = p->stopped,
                                     .failed = page->failed != 0,
                                     .busy = page->op & 1,
                                     .operation = page->coll,
                                     .algorithm = page->algorithm,
                                     .plan = page->plan,
                                     .phase = p->waits ? page->phase : "",
                                     .awaits = p->waits ? page->what : "",
                                     .number = page->op / 2,
                                     .bytes = page->op_bytes,
                                     .waits_for = p->peer,
                                     .at_most = p->at_most,
                                     .age_s = p->age_s,
                                     .operations = page->operations,
                                     .sent = page->sent,
                                     .received = page->received,
                                     .user = p->user,
                                     .cache = p->cache};

    fn(arg, &state);
}

trib_status_t trib_ranks_each(int pid, trib_rank_state_fn fn, void *arg)
{
    struct trib_rank_pages pages = {0};

    trib_say_error("");
    if (!fn || pid < 0) {
        trib_say_error("trib_ranks_each: fn is NULL, or pid is negative");
        return TRIB_ERR_INVALID;
    }
    if (!find_all(&pages)) {
        free(pages.list);
        trib_say_error("cannot examine the processes of this host: no /proc, or out of "
                       "memory");
        return TRIB_ERR_SYSTEM;
    }
    choose(&pages, pid);
    if (pages.n)
        qsort(pages.list, pages.n, sizeof(*pages.list), order);
    for (size_t i = 0; i < pages.n; i++)
        ask_peers(&pages, &pages.list[i]);
    for (size_t i = 0; i < pages.n; i++) {
        trib_rank_page_text(&pages.list[i]);
        if (pages.list[i].chosen)
            give(&pages.list[i], fn, arg);
    }
    free(pages.list);
    return TRIB_OK;
}
