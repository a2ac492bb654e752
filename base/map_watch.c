/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/map_watch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/wait.h"

#ifndef UFFD_USER_MODE_ONLY /* before Linux 5.11 */
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_EXACT_ADDRESS /* before Linux 5.18 */
#define UFFD_FEATURE_EXACT_ADDRESS (1 << 11)
#endif

/* trib_map_is_changing requires Linux 5.15, which counts pending changes. No feature
 * indicates that; the last of these indicates Linux 5.18. */
enum {
    EVENTS =
        UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP,
    NEEDED = EVENTS | UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EXACT_ADDRESS,
};

/* Guarded by `life`; constant while the thread runs, except `users`. */
static struct {
    int users;
    int fd; /* userfaultfd */
    int stop; /* eventfd */
    pthread_t reader;
    void *probe; /* a page that is never unmapped */
    size_t page;
    trib_map_gone *gone;
} watch;
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void trib_map_lock(void)
{
    pthread_mutex_lock(&lock);
}

void trib_map_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* The locks are not taken before a fork: a thread that frees memory may hold a lock of
 * malloc, which fork waits for, until the reader has `lock`. The child closes its copy
 * of the descriptor, else its parent's memory would stay registered. */
static void begin_child(void)
{
    if (watch.users) {
        close(watch.fd);
        close(watch.stop);
    }
    watch.users = 0;
    life = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void survive_fork(void)
{
    (void)pthread_atfork(NULL, NULL, begin_child);
}

/* The kernel ----------------------------------------------------------------------- */

#ifdef UFFDIO_WRITEPROTECT /* since Linux 5.7 */

static const char *watch_pages(uintptr_t begin, uintptr_t end)
{
    struct uffdio_register r = {.range = {begin, end - begin},
                                .mode = UFFDIO_REGISTER_MODE_WP};

    assert(begin % watch.page == 0 && end % watch.page == 0 && begin < end);
    if (ioctl(watch.fd, UFFDIO_REGISTER, &r) == 0)
        return NULL;
    return errno == EBUSY ? "another userfaultfd watches this memory"
                          : "the kernel cannot watch this memory";
}

/* Fails if all is unmapped, or if a mapping of another kind has taken the place. Linux
 * before 6.17 also ends the watch of another userfaultfd; watch_pages fails then. */
static void unwatch_pages(uintptr_t begin, uintptr_t end)
{
    struct uffdio_range range = {begin, end - begin};

    if (!watch_pages(begin, end))
        (void)ioctl(watch.fd, UFFDIO_UNREGISTER, &range);
}

/* Return true if an event is about to be sent: its call has changed mappings, and will
 * wait until the event is read. */
static bool is_event_due(void)
{
    return trib_map_is_changing() && errno == EAGAIN;
}

bool trib_map_is_changing(void)
{
    struct uffdio_writeprotect w = {.range = {(uintptr_t)watch.probe, watch.page}};

    /* This removes the write-protection of a page that has none. It fails while a
     * change of any watched memory is pending. */
    return ioctl(watch.fd, UFFDIO_WRITEPROTECT, &w) != 0;
}

/* Valgrind runs one thread at a time and does not expect munmap to wait for another. */
static bool under_valgrind(void)
{
    char line[256];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    while (maps && !found && fgets(line, sizeof(line), maps))
        found = strstr(line, "/vgpreload_core") != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static const char *open_userfaultfd(void)
{
    struct uffdio_api api = {.api = UFFD_API};

    watch.fd = trib_fd_keep(
        (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
    if (watch.fd < 0)
        return errno == EPERM ? "userfaultfd is not permitted here"
                              : "the kernel has no userfaultfd";
    if (ioctl(watch.fd, UFFDIO_API, &api) == 0 && (api.features & NEEDED) == NEEDED) {
        close(watch.fd); /* features are chosen once for each descriptor */
        watch.fd = trib_fd_keep((int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK |
                                                                  UFFD_USER_MODE_ONLY));
        api = (struct uffdio_api){.api = UFFD_API,
                                  .features = EVENTS | UFFD_FEATURE_PAGEFAULT_FLAG_WP};
        if (watch.fd >= 0 && ioctl(watch.fd, UFFDIO_API, &api) == 0)
            return NULL;
    }
    if (watch.fd >= 0)
        close(watch.fd);
    return "events of unmapped memory need Linux 5.18";
}

#else

static const char *watch_pages(uintptr_t begin, uintptr_t end)
{
    (void)begin, (void)end;
    return "built without userfaultfd";
}

static void unwatch_pages(uintptr_t begin, uintptr_t end)
{
    (void)begin, (void)end;
}

static bool is_event_due(void)
{
    return false;
}

bool trib_map_is_changing(void)
{
    return true;
}

static bool under_valgrind(void)
{
    return false;
}

static const char *open_userfaultfd(void)
{
    return "built without userfaultfd";
}

#endif

/* Mappings ------------------------------------------------------------------------- */

struct mapping {
    uintptr_t begin, end;
    bool anonymous; /* private and of no file */
};

static bool next_mapping(FILE *maps, struct mapping *out)
{
    unsigned long from, to, inode;
    char line[512], kind[5];

    while (fgets(line, sizeof(line), maps)) {
        if (!strchr(line, '\n')) { /* a long path: skip the rest */
            int c;
            while ((c = getc(maps)) != EOF && c != '\n')
                continue;
        }
        if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &from, &to, kind, &inode) != 4)
            continue;
        *out = (struct mapping){from, to, kind[3] == 'p' && inode == 0};
        return true;
    }
    return false;
}

/* Return true if all pages are private and of no file. */
static bool is_anonymous(uintptr_t begin, uintptr_t end)
{
    struct mapping m;
    bool good = true;
    FILE *maps = fopen("/proc/self/maps", "re");

    if (!maps)
        return false;
    while (good && begin < end && next_mapping(maps, &m)) {
        if (m.end <= begin)
            continue;
        good = m.begin <= begin && m.anonymous;
        begin = m.end;
    }
    fclose(maps);
    return good && begin >= end;
}

static void unwatch_any(uintptr_t begin, uintptr_t end)
{
    if (begin < end)
        unwatch_pages(begin, end);
}

/* End the watch of all memory except the probe: mremap takes the watch along, and a
 * mapping that grows extends it. */
static void unwatch_rest(void)
{
    const uintptr_t probe = (uintptr_t)watch.probe;
    struct mapping m;
    FILE *maps = fopen("/proc/self/maps", "re");

    while (maps && next_mapping(maps, &m)) {
        if (!m.anonymous)
            continue;
        unwatch_any(m.begin, probe >= m.begin && probe < m.end ? probe : m.end);
        if (probe >= m.begin && probe < m.end)
            unwatch_any(probe + watch.page, m.end);
    }
    if (maps)
        fclose(maps);
}

/* Reading -------------------------------------------------------------------------- */

static void take(const struct uffd_msg *m)
{
    if (m->event == UFFD_EVENT_UNMAP || m->event == UFFD_EVENT_REMOVE)
        watch.gone((uintptr_t)m->arg.remove.start, (uintptr_t)m->arg.remove.end);
    if (m->event != UFFD_EVENT_REMAP)
        return;
    watch.gone((uintptr_t)m->arg.remap.from,
               (uintptr_t)(m->arg.remap.from + m->arg.remap.len));
    watch.gone((uintptr_t)m->arg.remap.to,
               (uintptr_t)(m->arg.remap.to + m->arg.remap.len));
}

static void read_events(void)
{
    struct uffd_msg m;

    pthread_mutex_lock(&lock);
    while (read(watch.fd, &m, sizeof(m)) == sizeof(m))
        take(&m);
    pthread_mutex_unlock(&lock);
}

/* Never calls malloc or free. The end of the thread may empty its stack, so the
 * descriptor, and with it the watch, ends before. */
static void *reader_main(void *arg)
{
    struct pollfd fds[] = {{.fd = watch.stop, .events = POLLIN},
                           {.fd = watch.fd, .events = POLLIN}};

    (void)arg;
    while (!fds[0].revents) {
        if (trib_poll(fds, 2, -1) > 0 && fds[1].revents)
            read_events();
    }
    while (is_event_due())
        read_events();
    unwatch_pages((uintptr_t)watch.probe, (uintptr_t)watch.probe + watch.page);
    close(watch.fd);
    return NULL;
}

/* Beginning and end ---------------------------------------------------------------- */

static const char *start_reader(void)
{
    const char *why = "out of memory";

    watch.probe = mmap(NULL, watch.page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (watch.probe == MAP_FAILED)
        return why;
    watch.stop = trib_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (watch.stop >= 0)
        why = watch_pages((uintptr_t)watch.probe, (uintptr_t)watch.probe + watch.page);
    if (watch.stop >= 0 && !why) {
        if (trib_thread_start(&watch.reader, reader_main, NULL) == 0)
            return NULL;
        why = "no thread can be started";
    }
    if (watch.stop >= 0)
        close(watch.stop);
    return why;
}

static const char *start(void)
{
    const char *why = under_valgrind() ? "not under valgrind" : open_userfaultfd();

    if (why)
        return why;
    why = start_reader();
    if (!why)
        return NULL;
    close(watch.fd);
    if (watch.probe != MAP_FAILED)
        munmap(watch.probe, watch.page);
    return why;
}

static void ignore(uintptr_t begin, uintptr_t end)
{
    (void)begin, (void)end;
}

const char *trib_map_watch_start(trib_map_gone *gone)
{
    const char *why = NULL;

    pthread_once(&once, survive_fork);
    pthread_mutex_lock(&life);
    if (!watch.users) {
        watch.page = (size_t)sysconf(_SC_PAGESIZE);
        watch.gone = ignore;
        why = start();
    }
    assert(watch.gone == ignore || !gone || watch.gone == gone);
    trib_map_lock();
    watch.gone = gone ? gone : watch.gone;
    trib_map_unlock();
    watch.users += why == NULL;
    pthread_mutex_unlock(&life);
    return why;
}

void trib_map_watch_stop(void)
{
    const uint64_t one = 1;

    pthread_mutex_lock(&life);
    assert(watch.users > 0);
    if (watch.users == 1)
        unwatch_rest();
    if (--watch.users == 0 && write(watch.stop, &one, sizeof(one)) == sizeof(one)) {
        pthread_join(watch.reader, NULL);
        close(watch.stop);
        munmap(watch.probe, watch.page);
    }
    pthread_mutex_unlock(&life);
}

/* Adding --------------------------------------------------------------------------- */

static uintptr_t first_page(const void *ptr)
{
    return (uintptr_t)ptr & ~(uintptr_t)(watch.page - 1);
}

static uintptr_t end_of_pages(const void *ptr, size_t len)
{
    return ((uintptr_t)ptr + len + watch.page - 1) & ~(uintptr_t)(watch.page - 1);
}

const char *trib_map_watch_add(const void *ptr, size_t len)
{
    const uintptr_t begin = first_page(ptr), end = end_of_pages(ptr, len);
    const char *why = watch_pages(begin, end);

    assert(len > 0);
    /* Asked after the watch has begun, so a later change is an event. */
    return why || is_anonymous(begin, end) ? why : "not private anonymous memory";
}

void trib_map_watch_drop(const void *ptr, size_t len)
{
    assert(len > 0);
    unwatch_pages(first_page(ptr), end_of_pages(ptr, len));
}
