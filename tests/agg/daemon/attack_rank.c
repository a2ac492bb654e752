/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attacks by a rank on the host of tribd. It is a rank of the library that shares
 * memory like any other, but rank 0 edits its addresses on the way to the node. Where
 * the rank claims to be another process, or hands over other memory, its own socket
 * answers in place of that process.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agg/client/agg_comm.h"
#include "base/process.h"
#include "base/time.h"
#include "comm/members/wireup.h"
#include "tests/agg/daemon/attack.h"
#include "transport/common/handout_wire.h"
#include "transport/shm/shm_layout.h"

enum { NOBODY = 65534, DOOR_KEYS = 4, SETTLE_MS = 10000 };

#define MARK "NOBODY-WAS-HERE"

/* A socket that hands out descriptors to any process, like
 * transport/common/handout.c. */
struct listener {
    int fd;
    uint32_t name; /* as in an address: 0 is none */
    _Atomic int n;
    struct {
        uint64_t key;
        int fd;
    } keys[DOOR_KEYS];
};

struct rank {
    struct attack *a;
    uint32_t exchange;
    void (*edit_address)(struct rank *r, struct trib_shm_address *address);
    void (*edit_arena)(struct rank *r, struct trib_shm_export *arena);
    struct listener listener;
    pid_t victim;
    uint64_t place; /* in the victim's memory */
    int memory;     /* a descriptor to read the memory of the victim; -1: none */
};

/* The listener --------------------------------------------------------------------- */

/* Bind without listening: the kernel reports the process that calls listen(). */
static bool listener_open(struct listener *d)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof(at);
    char digits[6] = "";

    d->fd = trib_handout_socket();
    if (d->fd < 0 || bind(d->fd, (struct sockaddr *)&at, sizeof(sa_family_t)) ||
        getsockname(d->fd, (struct sockaddr *)&at, &bytes))
        return false;
    memcpy(digits, at.sun_path + 1, sizeof(digits) - 1);
    d->name = (uint32_t)strtoul(digits, NULL, 16) + 1;
    return true;
}

static void listener_keep(struct listener *d, uint64_t key, int fd)
{
    const int n = atomic_load(&d->n);

    if (n >= DOOR_KEYS)
        return;
    d->keys[n].key = key;
    d->keys[n].fd = fd;
    atomic_store(&d->n, n + 1);
}

static void listener_answer_one(const struct listener *d, int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct trib_handout_request r = {0};
    char byte = TRIB_HANDOUT_HERE;
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    if (recv(fd, &r, sizeof(r), 0) != (ssize_t)sizeof(r))
        return;
    for (int i = 0; i < atomic_load(&d->n); i++) {
        if (d->keys[i].key != r.key)
            continue;
        memcpy(CMSG_DATA(c), &d->keys[i].fd, sizeof(int));
        (void)!sendmsg(fd, &m, MSG_NOSIGNAL);
        return;
    }
}

static void *listener_serve(void *arg)
{
    const struct listener *d = arg;
    struct pollfd p = {.fd = d->fd, .events = POLLIN};

    for (;;) {
        (void)poll(&p, 1, -1);
        const int fd = accept(d->fd, NULL, NULL);
        if (fd < 0)
            continue;
        listener_answer_one(d, fd);
        close(fd);
    }
    return NULL;
}

static bool listener_start(struct listener *d)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, listener_serve, d) == 0 &&
           pthread_detach(thread) == 0;
}

/* The exchanges -------------------------------------------------------------------- */

static void edit(struct rank *r, uint8_t *blob, uint32_t bytes)
{
    size_t at = attack_find(blob, bytes, TRIB_SHM_ADDRESS_MAGIC);
    struct trib_shm_address address;
    struct trib_shm_export arena;

    if (r->exchange == 0 && r->edit_address && at + sizeof(address) <= bytes) {
        memcpy(&address, blob + at, sizeof(address));
        r->edit_address(r, &address);
        memcpy(blob + at, &address, sizeof(address));
    }
    at = attack_find(blob, bytes, TRIB_SHM_EXPORT_MAGIC);
    if (r->exchange == 1 && r->edit_arena && at + sizeof(arena) <= bytes) {
        memcpy(&arena, blob + at, sizeof(arena));
        r->edit_arena(r, &arena);
        memcpy(blob + at, &arena, sizeof(arena));
    }
}

/* Struct trib_exchange of one rank and the node: out has the blob of the rank, then the
 * blob of the node. */
static trib_status_t meet(void *arg, const char *phase, const void *in, size_t bytes,
                          void *out)
{
    struct rank *r = arg;
    struct caller *c = &r->a->c;
    uint8_t all[2 * TRIB_CONTROL_BLOB_MAX];

    (void)phase;
    if (!caller_hear(c, TRIB_CONTROL_BLOBS) || c->m.blobs.each != bytes ||
        bytes > TRIB_CONTROL_BLOB_MAX)
        return TRIB_ERR_PROTOCOL;
    memcpy(out, in, bytes);
    memcpy((uint8_t *)out + bytes, c->m.blobs.data.at, bytes);
    memcpy(all, out, 2 * bytes);
    edit(r, all, (uint32_t)bytes);
    const bool good = attack_give(c, r->exchange, all, 2, (uint32_t)bytes);
    r->exchange++;
    return good ? TRIB_OK : TRIB_ERR_PEER_LOST;
}

static bool be_rank(struct rank *r)
{
    struct attack *a = r->a;
    struct trib_control join = caller_join(&a->c, a->name, 1, "shm");
    const struct trib_guard guard = {.ranks = 1};
    struct trib_secret secret = {.is_set = false};
    struct trib_exchange x = {meet, r};
    struct trib_error err = {0};
    struct trib_config cfg;
    struct trib_comm *comm;

    if (trib_config_load(&cfg, "transport=shm", &a->c.log, &err) != TRIB_OK ||
        !attack_secret(&join, &secret) || !attack_join(a, &join))
        return false;
    const struct trib_agg_comm_opts opts = {
        .rank = 0, .ranks = 1, .aggregators = 1, .guard = &guard, .secret = &secret};
    if (trib_agg_comm_open(&cfg, &a->c.log, &opts, &x, &err, &comm) != TRIB_OK) {
        snprintf(a->said, sizeof(a->said), "%s", trib_error_text(&err));
        return false;
    }
    (void)caller_plan(&a->c, MARK); /* no such plan exists: a node that accepts it
                                     * notifies the ranks */
    attack_await_end(a, &a->c, SETTLE_MS);
    return true;
}

/* short, unsealed, pid ------------------------------------------------------------- */

static void shorten(struct rank *r, struct trib_shm_export *arena)
{
    (void)r;
    arena->len = 64;
}

bool attack_short(struct attack *a)
{
    struct rank r = {.a = a, .edit_arena = shorten};

    return be_rank(&r);
}

static void name_listener(struct rank *r, struct trib_shm_address *address)
{
    listener_keep(&r->listener, address->key, address->fd);
    address->handout = r->listener.name;
}

/* Name a memfd of the right size, with a valid trailer, that its owner can truncate. */
static void name_unsealed(struct rank *r, struct trib_shm_export *arena)
{
    const uint64_t trailer[] = {UINT64_C(0x7365676d54524942), arena->key};
    const int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && ftruncate(fd, (off_t)arena->map_len) == 0 &&
        pwrite(fd, trailer, sizeof(trailer), (off_t)arena->map_len - 4096) > 0)
        listener_keep(&r->listener, arena->key, fd);
}

bool attack_unsealed(struct attack *a)
{
    struct rank r = {
        .a = a, .edit_address = name_listener, .edit_arena = name_unsealed};

    return listener_open(&r.listener) && listen(r.listener.fd, 16) == 0 &&
           listener_start(&r.listener) && be_rank(&r);
}

static void name_parent(struct rank *r, struct trib_shm_address *address)
{
    struct trib_process parent;

    (void)r;
    trib_process_find(getppid(), &parent);
    address->pid = parent.pid;
    address->start = parent.start;
}

bool attack_pid(struct attack *a)
{
    struct rank r = {.a = a, .edit_address = name_parent};

    return be_rank(&r);
}

/* cma ------------------------------------------------------------------------------ */

/* Start a process of a user that listens at the listener and then becomes root: su
 * waits for a password. */
static void become_victim(const struct listener *d, const int input[2])
{
    const bool root = geteuid() == 0;

    (void)setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (root &&
        (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
        _exit(1);
    if (listen(d->fd, 16) || dup2(input[0], 0) < 0)
        _exit(1);
    close(input[0]);
    close(input[1]);
    (void)!freopen("/dev/null", "w", stdout);
    (void)!freopen("/dev/null", "w", stderr);
    if (root)
        execl("/usr/bin/su", "su", (char *)NULL);
    execl("/bin/sleep", "sleep", "60", (char *)NULL);
    _exit(1);
}

/* Return the end of its heap; 0: it has none yet. */
static uint64_t heap_of(pid_t pid, uint64_t *from_out)
{
    char path[64], line[512];
    unsigned long long from, to = 0;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (!strstr(line, "[heap]") || sscanf(line, "%llx-%llx", &from, &to) != 2)
            continue;
        *from_out = from;
        break;
    }
    if (f)
        fclose(f);
    return to;
}

static bool sleeps(pid_t pid)
{
    char path[64], line[512] = "", *name;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    const bool read_it = f && fgets(line, sizeof(line), f);
    if (f)
        fclose(f);
    name = strchr(line, '(');
    return read_it && name &&
           (strncmp(name, "(su) S", 6) == 0 || strncmp(name, "(sleep) S", 9) == 0);
}

static bool start_victim(struct rank *r)
{
    const uint64_t until = trib_deadline_ms(SETTLE_MS);
    uint64_t from = 0, end = 0;
    char path[64];
    int input[2]; /* stays open: the victim waits for input */

    if (!listener_open(&r->listener) || pipe(input) != 0)
        return false;
    r->victim = fork();
    if (r->victim == 0)
        become_victim(&r->listener, input);
    while (r->victim > 0 && !(sleeps(r->victim) && (end = heap_of(r->victim, &from)))) {
        if (trib_deadline_passed(until) || waitpid(r->victim, NULL, WNOHANG) != 0)
            return false;
        usleep(1000);
    }
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)r->victim);
    r->memory = open(path, O_RDONLY | O_CLOEXEC);
    r->place = end - 4096;
    return r->memory >= 0;
}

static void name_victim(struct rank *r, struct trib_shm_address *address)
{
    struct trib_process victim;

    trib_process_find(r->victim, &victim);
    name_listener(r, address);
    address->pid = victim.pid;
    address->start = victim.start;
}

static void name_memory(struct rank *r, struct trib_shm_export *arena)
{
    arena->kind = TRIB_SHM_FOREIGN;
    arena->pid = r->victim;
    arena->fd = -1;
    arena->off = 0;
    arena->addr = r->place;
    arena->len = UINT64_C(1) << 40;
}

static void look_for_harm(struct rank *r)
{
    static char page[4096];

    const ssize_t got = pread(r->memory, page, sizeof(page), (off_t)r->place);
    if (got != (ssize_t)sizeof(page))
        snprintf(r->a->harm, sizeof(r->a->harm),
                 "the victim's memory cannot be read: is it gone?");
    else if (memmem(page, sizeof(page), MARK, strlen(MARK)))
        snprintf(r->a->harm, sizeof(r->a->harm), "tribd has written into process %d",
                 (int)r->victim);
}

bool attack_cma(struct attack *a)
{
    struct rank r = {
        .a = a, .edit_address = name_victim, .edit_arena = name_memory, .memory = -1};
    const bool root = geteuid() == 0;

    if (!start_victim(&r)) {
        snprintf(a->said, sizeof(a->said), "there is no victim");
        return false;
    }
    printf("%s: the victim is process %d%s\n", a->name, (int)r.victim,
           root ? ", which is root's, and the attacker is nobody" : "");
    if (root &&
        (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
        return false;
    prctl(PR_SET_DUMPABLE, 1); /* as if the user had started it */
    const bool ran = listener_start(&r.listener) && be_rank(&r);
    look_for_harm(&r);
    kill(r.victim, SIGKILL);
    return ran;
}
