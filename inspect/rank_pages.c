/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/rank_pages.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/plain.h"
#include "base/process.h"
#include "base/time.h"

enum {
    TRIES = 16, /* to read a page between two changes */
    FRESH_NS = 200000000, /* a wait not confirmed within this time has ended */
};

static uint64_t word(_Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_relaxed);
}

static bool read_page(int fd, struct trib_state_page *to)
{
    return pread(fd, to, sizeof(*to), 0) == (ssize_t)sizeof(*to);
}

static bool same_texts(const struct trib_state_page *a, const struct trib_state_page *b)
{
    return a->guard == b->guard && !(a->guard & 1);
}

/* Read strings and numbers of one moment. If a rank changes them constantly, they are
 * of different moments: then report no wait, and no strings if these are
 * inconsistent. */
static bool read_steady(int fd, struct trib_state_page *page)
{
    struct trib_state_page before, after;
    bool texts = false;

    for (int i = 0; i < TRIES; i++) {
        if (!read_page(fd, &before) || !read_page(fd, page) || !read_page(fd, &after))
            return false;
        texts = same_texts(&before, &after) && page->guard == before.guard;
        if (texts && before.op == after.op && before.awaits == after.awaits)
            return true;
    }
    page->awaits = 0;
    if (!texts)
        page->coll[0] = page->algorithm[0] = page->plan[0] = page->what[0] = '\0';
    return true;
}

/* Terminate a string and make it printable in place. */
static void clean(char *text, size_t bytes)
{
    char plain[sizeof(((struct trib_state_page *)0)->what)] = {0};

    text[bytes - 1] = '\0';
    (void)trib_plain(text, plain, bytes);
    memcpy(text, plain, bytes);
}

static void clean_texts(struct trib_state_page *page)
{
    clean(page->host, sizeof(page->host));
    clean(page->root_host, sizeof(page->root_host));
    clean(page->label, sizeof(page->label));
    clean(page->coll, sizeof(page->coll));
    clean(page->algorithm, sizeof(page->algorithm));
    clean(page->plan, sizeof(page->plan));
    clean(page->what, sizeof(page->what));
    clean(page->phase, sizeof(page->phase));
}

bool trib_rank_page_read(int fd, struct trib_rank_page *out)
{
    struct trib_state_page *page = &out->page;

    struct stat st;

    memset(out, 0, sizeof(*out));
    if (fstat(fd, &st) == 0)
        out->inode = st.st_ino;
    if (!read_steady(fd, page) ||
        memcmp(page->magic, TRIB_STATE_PAGE_MAGIC, sizeof(page->magic)) != 0 ||
        page->version != TRIB_STATE_PAGE_VERSION || page->bytes != sizeof(*page) ||
        page->ranks < 1 || page->ranks > TRIB_RANK_RANKS_MOST || page->rank < 0 ||
        page->rank >= page->ranks)
        return false;
    clean_texts(page);
    const char *part = strchr(page->label, '-');
    snprintf(out->part, sizeof(out->part), "%s", part ? part + 1 : "");
    out->now = trib_now_ns();
    return true;
}

static double seconds_since(const struct trib_rank_page *p, uint64_t then)
{
    return p->now > then ? (double)(p->now - then) * 1e-9 : 0;
}

void trib_rank_page_judge(struct trib_rank_page *p)
{
    struct trib_state_page *page = &p->page;
    const uint64_t awaits = word(&page->awaits), op = word(&page->op);
    const uint64_t left = word(&page->left_ns), begun = word(&page->begun_ns);
    const uint32_t who = (uint32_t)awaits;

    /* A stopped rank may already have what it waited for. */
    p->waits = who && awaits >> 32 == (uint32_t)op && !p->stopped &&
               p->now < word(&page->polled_ns) + FRESH_NS;
    p->peer = -1;
    p->at_most = false;
    if (p->waits) {
        p->age_s = seconds_since(p, word(&page->since_ns));
        if (who >= TRIB_STATE_PEER && who - TRIB_STATE_PEER < (uint32_t)page->ranks)
            p->peer = (int)(who - TRIB_STATE_PEER);
    } else if (op & 1 && begun > left) {
        p->age_s = seconds_since(p, begun);
    } else {
        p->age_s = seconds_since(p, left);
        p->at_most = word(&page->left_op) != op;
    }
}

/* Return true unless a forked child inherited its parent's file. */
static bool is_its_own(const struct trib_rank_page *p, const struct trib_process *who)
{
    return trib_process_same_start(p->page.start, who->start) &&
           (p->page.space != who->space || p->page.pid == who->pid);
}

/* Return true if the file is already listed: a thread of the process may be reading its
 * own pages. */
static bool has(const struct trib_rank_pages *pages, size_t first,
                const struct trib_rank_page *p)
{
    for (size_t i = first; i < pages->n; i++)
        if (pages->list[i].inode == p->inode)
            return true;
    return false;
}

bool trib_rank_same_job(const struct trib_rank_page *a, const struct trib_rank_page *b)
{
    return a->user == b->user && a->page.root_pid == b->page.root_pid &&
           strcmp(a->page.root_host, b->page.root_host) == 0;
}

/* Return the number of pages that can still be added for this user. */
static size_t pages_left(const struct trib_rank_pages *pages, uid_t user)
{
    size_t n = 0;

    for (size_t i = 0; i < pages->n; i++)
        n += pages->list[i].user == user;
    n = n < TRIB_RANK_PAGES_OF_USER ? TRIB_RANK_PAGES_OF_USER - n : 0;
    return n < TRIB_RANK_PAGES_MOST - pages->n ? n : TRIB_RANK_PAGES_MOST - pages->n;
}

static bool add(struct trib_rank_pages *pages, const struct trib_rank_page *p)
{
    if (pages->n == pages->room) {
        const size_t room = pages->room ? 2 * pages->room : 16;
        /* realloc would not keep the alignment of a page. */
        void *more =
            aligned_alloc(_Alignof(struct trib_rank_page), room * sizeof(*pages->list));
        if (!more)
            return false;
        if (pages->n)
            memcpy(more, pages->list, pages->n * sizeof(*pages->list));
        free(pages->list);
        pages->list = more;
        pages->room = room;
    }
    pages->list[pages->n++] = *p;
    return true;
}

/* Open a process's descriptor if it is a page: opening other files might block. Sealed
 * files are on no file system served by an untrusted process. */
static int open_page(int folder, const char *name)
{
    static const char wanted[] = "/memfd:" TRIB_STATE_PAGE_NAME " (deleted)";
    char target[sizeof(wanted) + 1];
    const ssize_t n = readlinkat(folder, name, target, sizeof(target));

    if (n != (ssize_t)sizeof(wanted) - 1 || memcmp(target, wanted, (size_t)n) != 0)
        return -1;
    int fd = trib_fd_keep(
        openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    const int seals = fd >= 0 ? fcntl(fd, F_GET_SEALS) : -1;
    if (seals >= 0 && seals & F_SEAL_SHRINK)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool trib_rank_pages_of(int pid, struct trib_rank_pages *pages)
{
    char path[64];
    struct trib_process who;
    bool ok = true, looked = false;
    const size_t first = pages->n;
    struct trib_rank_page p;
    struct stat owner;

    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return true; /* the process has exited, or is another user's */
    size_t room = 0;
    if (fstat(dirfd(folder), &owner) == 0)
        room = pages_left(pages, owner.st_uid);
    for (const struct dirent *d;
         ok && pages->n < first + room && (d = readdir(folder));) {
        const int fd = d->d_name[0] == '.' ? -1 : open_page(dirfd(folder), d->d_name);
        if (fd < 0)
            continue;
        if (!looked)
            trib_process_find(pid, &who);
        looked = true;
        if (trib_rank_page_read(fd, &p) && is_its_own(&p, &who) &&
            !has(pages, first, &p)) {
            p.pid = pid;
            p.user = owner.st_uid;
            p.stopped = trib_process_query(&who) == TRIB_PROCESS_STOPPED;
            trib_rank_page_judge(&p);
            ok = add(pages, &p);
        }
        close(fd);
    }
    closedir(folder);
    return ok;
}
