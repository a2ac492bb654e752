/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An aggregator with a guard in this process, and ranks as processes of their own,
 * which are honest or forge what they hand over.
 */
#ifndef TESTS_TRANSPORT_SHM_SHM_GUARD_RIG_H
#define TESTS_TRANSPORT_SHM_SHM_GUARD_RIG_H

#include "tests/transport/pair.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "transport/common/guard.h"
#include "transport/common/handout.h"
#include "transport/common/segment.h"
#include "transport/shm/shm.h"
#include "transport/shm/shm_layout.h"

enum { RANK = 0, NODE = 1, OTHER = 65534, BYTES = 1 << 20 };

/* The words of a rank, as its blobs would have them. */
struct told {
    struct trib_address address;
    struct trib_blob small, large, own; /* own: memory outside of a segment */
};

enum act {
    HONEST,
    UNSEALED, /* its control segment could be made shorter */
    FILE_OF_A_FOLDER,
    SHORT, /* less than it says */
    OTHER_KEY, /* a segment of another key */
    READ_ONLY,
    SILENT, /* no process listens at the socket that it names */
    BELL, /* valid, as the next ones, except for the wake-up descriptor */
    BELL_PIPE,
    BELL_STREAM,
    BELL_INET,
};

struct rank {
    pid_t pid;
    int pipe; /* ends its life when it is closed */
    struct told told;
};

static inline int copy_of(const struct trib_shm_address *a, enum act act,
                          const char *control)
{
    const size_t bytes = (size_t)a->map_len - (act == SHORT ? 4096 : 0);
    char path[48] = "/tmp/trib-guard-XXXXXX";
    int fd = act == FILE_OF_A_FOLDER
                 ? mkstemp(path)
                 : memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (act == FILE_OF_A_FOLDER)
        unlink(path);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 ||
        pwrite(fd, control, bytes, 0) != (ssize_t)bytes)
        _exit(9);
    if (act == OTHER_KEY && pwrite(fd, "otherkey", 8, (off_t)(bytes - 4096 + 8)) != 8)
        _exit(9);
    if (act != UNSEALED && act != FILE_OF_A_FOLDER &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        _exit(9);
    if (act == READ_ONLY) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return fd;
}

/* The descriptor that an aggregator is to write when it wakes the rank. */
static inline int bell_of(enum act act)
{
    int ends[2] = {-1, -1};

    if (act == BELL_PIPE)
        (void)!pipe(ends);
    else if (act == BELL_INET)
        ends[1] = socket(AF_INET, SOCK_DGRAM, 0);
    else
        (void)!socketpair(AF_UNIX, act == BELL_STREAM ? SOCK_STREAM : SOCK_DGRAM, 0,
                          ends);
    if (ends[1] < 0)
        _exit(9);
    return ends[1];
}

/* Another descriptor for the same key, at a socket of its own. */
static inline void forge(enum act act, pid_t node, struct told *told)
{
    struct trib_shm_address a;
    struct trib_error err = {0};
    struct trib_handout *h = trib_handout_open(NULL);
    const int bell = bell_of(act);
    struct trib_shm_export small;

    memcpy(&a, told->address.bytes, sizeof(a));
    memcpy(&small, told->small.bytes, sizeof(small));
    char *control = mmap(NULL, (size_t)a.map_len, PROT_READ, MAP_SHARED, a.fd, 0);
    if (!h || control == MAP_FAILED)
        _exit(9);
    const int fd = copy_of(&a, act, control);
    if (trib_handout_admit(h, node) != TRIB_OK ||
        trib_handout_add(h, a.key, (struct trib_handout_fds){fd, bell}) != TRIB_OK ||
        trib_handout_add(h, small.key, (struct trib_handout_fds){small.fd, bell}) !=
            TRIB_OK ||
        (act != SILENT && trib_handout_serve(h, &err) != TRIB_OK))
        _exit(9);
    a.handout = trib_handout_name(h);
    memcpy(told->address.bytes, &a, sizeof(a));
}

static inline void tell(struct trib_transport *t, struct told *told)
{
    static uint8_t own[4096];
    struct trib_region *region;
    void *ptr;

    if (t->ops->address(t, &told->address) != TRIB_OK ||
        t->ops->alloc(t, 4096, &ptr, &region) != TRIB_OK ||
        t->ops->export_region(t, region, &told->small) != TRIB_OK ||
        t->ops->alloc(t, BYTES, &ptr, &region) != TRIB_OK ||
        t->ops->export_region(t, region, &told->large) != TRIB_OK ||
        t->ops->reg(t, own, sizeof(own), &region) != TRIB_OK ||
        t->ops->export_region(t, region, &told->own) != TRIB_OK)
        _exit(9);
}

/* Import the memory that the aggregator has announced, and report the result. */
static inline void import_told(struct trib_transport *t, int pipe)
{
    struct trib_blob blob;
    struct trib_remote *remote;

    if (recv(pipe, &blob, sizeof(blob), MSG_DONTWAIT) != (ssize_t)sizeof(blob))
        return;
    const trib_status_t st = t->ops->import_region(t, NODE, &blob, &remote);
    if (write(pipe, &st, sizeof(st)) != (ssize_t)sizeof(st))
        _exit(0);
}

/* A rank's process: it sends its address, receives the node's, connects, polls, and
 * imports. */
static inline void live(enum act act, uid_t uid, pid_t node, const int ends[2])
{
    struct trib_guard guard = {.ranks = 1};
    struct pair pair = {.lines = 0};
    struct trib_transport_opts opts = pair_opts(&pair, RANK);
    struct trib_transport *t;
    struct trib_address address;
    struct told told;
    struct trib_event e;
    uint32_t caps[2] = {0};

    if (geteuid() == 0 && setresuid(uid, uid, uid))
        _exit(9);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* becoming another user forgets it */
    opts.guard = &guard;
    if (trib_transport_open("shm", &opts, &t) != TRIB_OK)
        _exit(9);
    tell(t, &told);
    if (act != HONEST)
        forge(act, node, &told);
    if (write(ends[1], &told, sizeof(told)) != (ssize_t)sizeof(told) ||
        read(ends[1], &address, sizeof(address)) != (ssize_t)sizeof(address))
        _exit(0);
    (void)t->ops->reach(t, NODE, &address);
    char byte = 1;
    if (write(ends[1], &byte, 1) != 1 || read(ends[1], &byte, 1) != 1) /* all have
                                                                        * surveyed */
        _exit(0);
    t->ops->agree(t, caps);
    if (act == HONEST && t->ops->connect(t, NODE, &address) != TRIB_OK)
        fprintf(stderr, "# the rank does not reach the node: %s\n", pair.err.text);
    shm_of(t)->untrusted_bytes = UINT64_C(256)
                                 << 30; /* a rank imports the memory of its
                                             * aggregators */
    for (;;) {
        (void)t->ops->poll(t, &e, 1);
        import_told(t, ends[1]);
        usleep(1000);
    }
}

static inline struct trib_transport *open_node(struct pair *pair,
                                               struct trib_guard *guard)
{
    struct trib_transport_opts opts = pair_opts(pair, NODE);
    struct trib_transport *t;

    *guard =
        (struct trib_guard){.serves = true, .ranks = 1, .user = TRIB_GUARD_ANYBODY};
    opts.guard = guard;
    assert_status(trib_transport_open("shm", &opts, &t), TRIB_OK);
    return t;
}

static inline void start(enum act act, uid_t uid, struct rank *out)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    fflush(NULL);
    const pid_t node = getpid();
    out->pid = fork();
    if (out->pid == 0) {
        close(ends[0]);
        live(act, uid, node, ends);
    }
    close(ends[1]);
    out->pipe = ends[0];
    assert_int_equal(read(ends[0], &out->told, sizeof(out->told)), sizeof(out->told));
}

static inline void end(struct rank *r)
{
    kill(r->pid, SIGKILL);
    assert_int_equal(waitpid(r->pid, NULL, 0), r->pid);
    close(r->pipe);
}

/* The ranks survey, then the node does, and all know of it. */
static inline trib_status_t survey(struct trib_transport *t, struct rank *r)
{
    struct trib_address address;
    uint32_t caps[2] = {0};
    char byte;

    assert_status(t->ops->address(t, &address), TRIB_OK);
    assert_int_equal(write(r->pipe, &address, sizeof(address)), sizeof(address));
    assert_int_equal(read(r->pipe, &byte, 1), 1);
    trib_status_t st = t->ops->reach(t, RANK, &r->told.address);
    t->ops->agree(t, caps);
    assert_int_equal(write(r->pipe, &byte, 1), 1);
    return st;
}

static inline void assert_said(struct pair *pair, const char *sentence)
{
    if (!strstr(pair->err.text, sentence))
        fail_msg("\"%s\", not \"%s\"", pair->err.text, sentence);
    trib_error_clear(&pair->err);
}

/* A node to which an honest rank of another user is connected. */
static inline struct trib_transport *open_connected(struct pair *pair,
                                                    struct trib_guard *guard,
                                                    struct rank *r)
{
    struct trib_transport *t = open_node(pair, guard);

    start(HONEST, OTHER, r);
    assert_status(survey(t, r), TRIB_OK);
    assert_status(t->ops->connect(t, RANK, &r->told.address), TRIB_OK);
    return t;
}

/* Imports a region of the rank, which has yet to hand it out. */
static inline trib_status_t import_awaited(struct trib_transport *t,
                                           const struct trib_blob *blob,
                                           struct trib_remote **out)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
    trib_status_t st;

    while ((st = t->ops->import_region(t, RANK, blob, out)) == TRIB_INPROGRESS)
        assert_false(trib_deadline_passed(until));
    return st;
}

#endif
