/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake's hub. A test has it alone. Processes that load the fake as a library share
 * it by the file that FAKE_FABRIC names; FAKE_HOST is the number of their host.
 *
 * A process executes the requests that arrive at its own queue pairs, on a device
 * thread: it reads the sender's memory and writes its own. A process holds a robust
 * mutex while it lives, so others detect its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "tests/harness/fake_hub.h"

enum { WAIT_SECONDS = 10, TICK_MS = 20 };

struct fake_hub *fake_hub;

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int self, live;
static _Thread_local int host_of_thread = -1;
static bool is_shared, has_thread;
static pthread_t thread; /* of the device */
static _Atomic bool stops;

/* Locks ---------------------------------------------------------------------------- */

static void init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attr);
    pthread_mutexattr_destroy(&attr);
}

/* A process may be killed while it holds the lock. Tests that kill processes do not
 * check what it was changing. */
void fake_lock(void)
{
    if (pthread_mutex_lock(&fake_hub->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&fake_hub->lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&fake_hub->lock);
}

bool fake_wait(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    return pthread_cond_timedwait(&changed, &fake_hub->lock, &until) == 0;
}

void fake_changed(void)
{
    pthread_cond_broadcast(&changed);
}

/* The hub -------------------------------------------------------------------------- */

static void clear(struct fake_hub *hub)
{
    init_mutex(&hub->lock);
    hub->next_qp_num = FAKE_FIRST_QP;
    hub->next_id = 1;
    hub->next_port = 40000;
    hub->n_messages = 1;
    for (int i = 0; i < FAKE_PROCESSES_MAX; i++)
        hub->processes[i].next_due = UINT64_MAX;
}

/* A forked child has its own copy of a private hub, and no threads of its parent, of
 * which another one may hold the lock. */
static void lock_private(void)
{
    if (!is_shared)
        fake_lock();
}

static void unlock_private(void)
{
    if (!is_shared)
        fake_unlock();
}

static void begin_child(void)
{
    if (is_shared)
        return;
    init_mutex(&fake_hub->lock);
    changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    if (has_thread)
        init_mutex(&fake_hub->processes[self].life);
    has_thread = false;
}

static void stop_device(void);

void fake_hub_reset(void)
{
    static bool is_prepared;

    if (!is_prepared)
        is_prepared = pthread_atfork(lock_private, unlock_private, begin_child) == 0;
    if (fake_hub)
        stop_device();
    if (!fake_hub)
        fake_hub = mmap(NULL, sizeof(*fake_hub), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fake_hub == MAP_FAILED ||
        madvise(fake_hub, sizeof(*fake_hub), MADV_DONTNEED) != 0) /* all zero */
        abort();
    clear(fake_hub);
    fake_clock_reset();
    fake_hub->n_processes = 1;
    init_mutex(&fake_hub->processes[0].life);
    live = 0;
    host_of_thread = -1;
}

bool fake_hub_create(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, sizeof(*fake_hub)) != 0)
        return false;
    fake_hub = mmap(NULL, sizeof(*fake_hub), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (fake_hub == MAP_FAILED)
        return false;
    clear(fake_hub);
    fake_clock_reset();
    return true;
}

bool fake_hub_open(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return false;
    fake_hub = mmap(NULL, sizeof(*fake_hub), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    self = -1;
    is_shared = true;
    return fake_hub != MAP_FAILED;
}

bool fake_hub_attach(const char *path, int host)
{
    if (host < 0 || host >= FAKE_HOSTS_MAX || !fake_hub_open(path))
        return false;
    fake_lock();
    self = fake_hub->n_processes++;
    if (self < FAKE_PROCESSES_MAX) {
        struct fake_process *p = &fake_hub->processes[self];
        p->pid = getpid();
        p->host = host;
        init_mutex(&p->life);
    }
    fake_unlock();
    return self < FAKE_PROCESSES_MAX;
}

int fake_self(void)
{
    return self;
}

bool fake_is_shared(void)
{
    return is_shared;
}

int fake_host(void)
{
    return host_of_thread >= 0 ? host_of_thread : fake_hub->processes[self].host;
}

void fake_verbs_host(int host)
{
    host_of_thread = host;
}

bool fake_has_ended(int process)
{
    struct fake_process *p = &fake_hub->processes[process];

    if (p->ended || process == self || !is_shared)
        return p->ended;
    switch (pthread_mutex_trylock(&p->life)) {
    case EOWNERDEAD:
        pthread_mutex_consistent(&p->life);
        pthread_mutex_unlock(&p->life);
        p->ended = true;
        fake_unuse_all(p);
        fake_clock_ended(p);
        break;
    case 0: /* its thread has not started yet */
        pthread_mutex_unlock(&p->life);
        break;
    default:
        break;
    }
    return p->ended;
}

/* Messages ------------------------------------------------------------------------- */

struct fake_message *fake_message(uint32_t row)
{
    return &fake_hub->messages[row];
}

static uint32_t new_message(void)
{
    const uint32_t row = fake_hub->free_message;

    if (row) {
        fake_hub->free_message = fake_message(row)->next;
        return row;
    }
    return fake_hub->n_messages < FAKE_MESSAGES_MAX ? fake_hub->n_messages++ : 0;
}

void fake_append(struct fake_list *list, uint32_t row)
{
    fake_message(row)->next = 0;
    if (list->tail)
        fake_message(list->tail)->next = row;
    else
        list->head = row;
    list->tail = row;
}

static uint32_t take_out(struct fake_list *list)
{
    const uint32_t row = list->head;

    list->head = fake_message(row)->next;
    if (!list->head)
        list->tail = 0;
    return row;
}

static void free_message(uint32_t row)
{
    fake_message(row)->next = fake_hub->free_message;
    fake_hub->free_message = row;
}

void fake_drop(struct fake_list *list)
{
    free_message(take_out(list));
}

static void wake(uint32_t *bell)
{
    __atomic_add_fetch(bell, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void fake_wake(int process)
{
    wake(&fake_hub->processes[process].bell);
}

bool fake_send(int process, const struct fake_message *message)
{
    struct fake_process *p = &fake_hub->processes[process];

    if (process == self && (message->kind == FAKE_RESULT || message->kind == FAKE_CM)) {
        if (message->kind == FAKE_CM)
            fake_rdmacm_event(message);
        else
            fake_queues_result(message);
        return true;
    }
    const uint32_t row = new_message();
    if (!row)
        return false;
    memcpy(fake_message(row), message, sizeof(*message));
    fake_message(row)->from = self;
    fake_append(&p->inbox, row);
    fake_hub->under_way++;
    wake(&p->bell);
    return true;
}

bool fake_read(int process, void *to, uint64_t from, size_t len)
{
    uint8_t *at = to;

    while (len) {
        struct iovec local = {at, len}, remote = {(void *)(uintptr_t)from, len};
        const ssize_t n = process_vm_readv(fake_hub->processes[process].pid, &local, 1,
                                           &remote, 1, 0);
        if (n <= 0)
            return false;
        at += n;
        from += (uint64_t)n;
        len -= (size_t)n;
    }
    return true;
}

void fake_announce(int host, struct fake_event event)
{
    const struct fake_message m = {.kind = FAKE_EVENT, .event = event};

    if (!is_shared) {
        fake_device_event(host, &event);
        return;
    }
    for (int i = 0; i < fake_hub->n_processes; i++)
        if (fake_hub->processes[i].host == host && !fake_has_ended(i) &&
            !fake_send(i, &m))
            fake_mistake("no room for an event");
}

/* The device thread ---------------------------------------------------------------- */

static void empty_inbox(struct fake_list *inbox)
{
    while (inbox->head) {
        const uint32_t row = take_out(inbox);
        fake_hub->under_way--;
        const struct fake_message *m = fake_message(row);
        if (m->kind == FAKE_REQUEST && fake_queues_request(row))
            continue;
        if (m->kind == FAKE_RESULT)
            fake_queues_result(m);
        else if (m->kind == FAKE_CM)
            fake_rdmacm_event(m);
        else if (m->kind == FAKE_EVENT)
            fake_device_event(fake_host(), &m->event);
        free_message(row);
    }
}

/* Sleep until a time of the fabric's clock, a call of fake_wake, or a tick. */
static void sleep_until(uint32_t *bell, uint32_t seen, uint64_t due)
{
    const uint64_t now = trib_now_ns(), tick = TICK_MS * UINT64_C(1000000);
    const uint64_t ns = due <= now ? 0 : due - now < tick ? due - now : tick;
    const struct timespec left = {.tv_nsec = (long)ns};

    syscall(SYS_futex, bell, FUTEX_WAIT, seen, &left, NULL, 0);
}

static void *run_device(void *arg)
{
    struct fake_process *p = arg;

    pthread_mutex_lock(&p->life);
    while (!stops) {
        fake_lock();
        empty_inbox(&p->inbox);
        (void)fake_queues_run();
        fake_rdmacm_check();
        fake_clock_try();
        const uint64_t due = fake_opts.virtual_time ? UINT64_MAX : p->next_due;
        const uint32_t bell = __atomic_load_n(&p->bell, __ATOMIC_SEQ_CST);
        fake_unlock();
        sleep_until(&p->bell, bell, due);
    }
    pthread_mutex_unlock(&p->life);
    return NULL;
}

void fake_device_start(void)
{
    if (has_thread || (!is_shared && !fake_hub->is_timed))
        return;
    stops = false;
    has_thread =
        pthread_create(&thread, NULL, run_device, &fake_hub->processes[self]) == 0;
}

static void stop_device(void)
{
    if (!has_thread)
        return;
    stops = true;
    fake_wake(self);
    pthread_join(thread, NULL);
    has_thread = false;
}

/* For the other files -------------------------------------------------------------- */

void fake_mistake(const char *format, ...)
{
    va_list args;

    fake_hub->mistakes++;
    va_start(args, format);
    fprintf(stderr, "fake verbs: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

int fake_verbs_mistakes(void)
{
    fake_lock();
    int n = fake_hub->mistakes;
    fake_unlock();
    return n;
}

void fake_count(int objects)
{
    live += objects;
}

int fake_verbs_live(void)
{
    fake_lock();
    int n = live;
    fake_unlock();
    return n;
}

int fake_bell(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
}

void fake_ring(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof(one)) < 0)
        fake_mistake("a bell that cannot be rung: %m");
}

void fake_unring(int fd)
{
    uint64_t one;

    if (read(fd, &one, sizeof(one)) < 0)
        fake_mistake("a bell that did not ring: %m");
}
