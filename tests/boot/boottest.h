/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start several ranks as processes, inject one fault, and record the observations of
 * each rank.
 */
#ifndef TESTS_BOOT_BOOTTEST_H
#define TESTS_BOOT_BOOTTEST_H

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/config.h"
#include "base/error.h"
#include "base/time.h"
#include "boot/boot.h"
#include "tests/harness/tribtest.h"

#define BOOTTEST_RANKS 8

enum fault {
    FAULT_NONE,
    FAULT_KILL, /* the victim raises SIGKILL */
    FAULT_STOP, /* the victim raises SIGSTOP */
    FAULT_EXIT, /* exits without closing the boot */
    FAULT_SAY, /* boot->fail, then close */
    FAULT_CLOSE, /* close only */
};

/* Points at which a fault is injected: before open, after open, between exchanges. */
enum point { POINT_START, POINT_OPEN, POINT_READY };

/* Observations of a rank, in memory that all processes share. */
struct seen {
    _Atomic bool opened;
    _Atomic bool done;
    trib_status_t status;
    char text[512];
    uint64_t at;
};

struct start {
    const char *root;
    trib_local_t *local; /* NULL: no shared-memory rendezvous */
    int size;
    int boot_ms; /* 0: the defaults */
    int stop_ms;
    enum fault fault;
    enum point point;
    int victim;
    int delay_ms[BOOTTEST_RANKS]; /* before open */
    bool (*may_open)(const struct start *s, int rank); /* wait until it returns true; or
                                                        * NULL */
    _Atomic bool *flag; /* for may_open, in shared memory; or NULL */
    const char *key[BOOTTEST_RANKS]; /* 64 hexadecimal digits; NULL: no secret */
    int told_size[BOOTTEST_RANKS]; /* size passed to the rank; 0: size */
    int told_rank[BOOTTEST_RANKS]; /* number passed to the rank plus 1; 0: its own */
    int pause_ms; /* delay of each rank but 0 between the exchanges */
    /* results */
    pid_t pids[BOOTTEST_RANKS];
    struct seen *seen;
    uint64_t *fault_at;
    _Atomic bool *announced; /* the rendezvous lists processes of this run only */
};

static inline void boottest_sleep(int ms)
{
    struct timespec left = {ms / 1000, (ms % 1000) * 1000000L};

    while (nanosleep(&left, &left))
        continue;
}

/* Block until `ready` returns true or the deadline of the rank passes. */
static inline void boottest_await(const struct start *s, int rank,
                                  bool (*ready)(const struct start *s, int rank))
{
    uint64_t deadline = trib_deadline_ms(30000 * (int)tribtest_slowness());

    while (!ready(s, rank) && !trib_deadline_passed(deadline))
        boottest_sleep(1);
}

/*
 * Return a port of 127.0.0.1 that was free a moment ago. It lies below the ephemeral
 * range: another socket could take an ephemeral port before rank 0 listens.
 */
static inline int boottest_port(void)
{
    enum { FIRST = 10000, PORTS = 20000 };
    struct sockaddr_in address = {.sin_family = AF_INET};
    unsigned at = (unsigned)getpid() * 37u + (unsigned)(trib_now_ns() >> 10);
    int bound = -1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 100 && bound; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        address.sin_port = htons((uint16_t)(FIRST + at++ % PORTS));
        bound = bind(fd, (struct sockaddr *)&address, sizeof(address));
        close(fd);
    }
    assert_int_equal(bound, 0);
    return ntohs(address.sin_port);
}

/* Return true once all other ranks have opened. A rank that fails earlier is unknown to
 * the others. */
static inline bool boottest_others_opened(const struct start *s, int rank)
{
    for (int i = 0; i < s->size; i++)
        if (i != rank && !s->seen[i].opened)
            return false;
    return true;
}

/* For may_open: delay a rank with wrong settings until all others have opened, because
 * rank 0 reports errors for a short time only. */
static inline bool boottest_odd_one_last(const struct start *s, int rank)
{
    return !(s->told_rank[rank] || s->told_size[rank]) ||
           boottest_others_opened(s, rank);
}

static inline void boottest_fault(const struct start *s, int rank, enum point point,
                                  struct trib_boot *b)
{
    if (s->fault == FAULT_NONE || rank != s->victim || point != s->point)
        return;
    if (b) {
        boottest_await(s, rank, boottest_others_opened);
        boottest_sleep(100); /* let the others reach the exchange */
    }
    *s->fault_at = trib_now_ns();
    if (s->fault == FAULT_KILL)
        raise(SIGKILL);
    if (s->fault == FAULT_STOP)
        raise(SIGSTOP);
    if (b && s->fault == FAULT_SAY)
        (b->ops->fail)(b, "no device is up"); /* parenthesised: cmocka defines a macro
                                               * fail() */
    if (b && (s->fault == FAULT_SAY || s->fault == FAULT_CLOSE))
        b->ops->close(b);
    _exit(0);
}

static inline trib_status_t boottest_exchange(const struct start *s, int rank,
                                              struct trib_boot *b, const char *phase,
                                              struct trib_error *err)
{
    unsigned char in[40];
    unsigned char out[BOOTTEST_RANKS * sizeof(in)];

    memset(in, phase[0] + rank, sizeof(in));
    trib_status_t status = b->ops->allgather(b, phase, in, sizeof(in), out);
    for (size_t i = 0; status == TRIB_OK && i < (size_t)s->size * sizeof(in); i++)
        if (out[i] != (unsigned char)(phase[0] + (int)(i / sizeof(in))))
            return trib_fail(err, TRIB_ERR_PROTOCOL, "rank %d: byte %zu is wrong", rank,
                             i);
    return status;
}

/* Open and use a boot as trib_init does. */
static inline trib_status_t boottest_rank(const struct start *s, int rank,
                                          struct trib_error *err)
{
    struct trib_config cfg = {.boot_timeout_ms = s->boot_ms ? s->boot_ms : 30000,
                              .stop_timeout_ms = s->stop_ms ? s->stop_ms : 4000};
    struct trib_secret secret = {.is_set = false};
    struct trib_boot_opts opts = {
        .rank = s->told_rank[rank] ? s->told_rank[rank] - 1 : rank,
        .size = s->told_size[rank] ? s->told_size[rank] : s->size,
        .root = s->root,
        .cfg = &cfg,
        .err = err,
        .secret = &secret,
    };
    struct trib_boot *b;

    if (s->key[rank])
        assert_true(trib_secret_parse(s->key[rank], strlen(s->key[rank]), &secret));
    boottest_sleep(s->delay_ms[rank]);
    if (s->may_open)
        boottest_await(s, rank, s->may_open);
    boottest_fault(s, rank, POINT_START, NULL);
    trib_status_t status = trib_boot_open(&opts, &b);
    if (status != TRIB_OK)
        return status;
    if (s->seen)
        s->seen[rank].opened = true;
    boottest_fault(s, rank, POINT_OPEN, b);
    status = boottest_exchange(s, rank, b, "address", err);
    if (status == TRIB_OK) {
        if (rank)
            boottest_sleep(s->pause_ms);
        boottest_fault(s, rank, POINT_READY, b);
        status = boottest_exchange(s, rank, b, "ready", err);
    }
    b->ops->close(b);
    return status;
}

static inline void __attribute__((noreturn))
boottest_child(const struct start *s, int rank)
{
    struct trib_error err = {0};

    tribtest_deadline(100);
    while (!*s->announced)
        boottest_sleep(1);
    s->seen[rank].status = boottest_rank(s, rank, &err);
    s->seen[rank].at = trib_now_ns();
    snprintf(s->seen[rank].text, sizeof(s->seen[rank].text), "%s",
             trib_error_text(&err));
    s->seen[rank].done = true;
    _exit(0);
}

static inline void *boottest_shared(size_t bytes)
{
    void *p =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

/* Run all ranks. Kill those that a fault left stopped. */
static inline void boottest_run(struct start *s)
{
    s->seen = boottest_shared(BOOTTEST_RANKS * sizeof(*s->seen));
    s->fault_at = boottest_shared(sizeof(*s->fault_at));
    s->announced = boottest_shared(sizeof(*s->announced));
    fflush(NULL);
    for (int i = 0; i < s->size; i++) {
        s->pids[i] = fork();
        assert_true(s->pids[i] >= 0);
        if (s->pids[i] == 0)
            boottest_child(s, i);
        if (s->local)
            trib_local_set_pid(s->local, i, s->pids[i]);
    }
    *s->announced = true;
    for (int i = 0; i < s->size; i++)
        if (s->fault == FAULT_NONE || i != s->victim)
            waitpid(s->pids[i], NULL, 0);
    if (s->fault != FAULT_NONE) {
        kill(s->pids[s->victim], SIGKILL);
        waitpid(s->pids[s->victim], NULL, 0);
    }
}

static inline void boottest_free(struct start *s)
{
    munmap(s->seen, BOOTTEST_RANKS * sizeof(*s->seen));
    munmap(s->fault_at, sizeof(*s->fault_at));
    munmap(s->announced, sizeof(*s->announced));
}

static inline void boottest_all_well(const struct start *s)
{
    for (int i = 0; i < s->size; i++) {
        assert_true(s->seen[i].done);
        if (s->seen[i].status != TRIB_OK)
            fail_msg("rank %d: %s", i, s->seen[i].text);
    }
}

/* Check that each survivor failed within the time with `status` and a text with
 * `part`. */
static inline void boottest_all_failed(const struct start *s, trib_status_t status,
                                       const char *part, int within_ms)
{
    for (int i = 0; i < s->size; i++) {
        if (s->fault != FAULT_NONE && i == s->victim)
            continue;
        const struct seen *seen = &s->seen[i];
        if (!seen->done)
            fail_msg("rank %d hung", i);
        if (seen->status != status || !strstr(seen->text, part))
            fail_msg("rank %d: %s: \"%s\", wanted %s: \"...%s...\"", i,
                     trib_status_name(seen->status), seen->text,
                     trib_status_name(status), part);
        int ms = *s->fault_at ? (int)((seen->at - *s->fault_at) / 1000000) : 0;
        int most = within_ms * (int)tribtest_slowness();
        if (ms > most)
            fail_msg("rank %d was told after %d ms, more than %d", i, ms, most);
    }
}

/* Also check that the error names the victim and its process. */
static inline void boottest_victim_named(const struct start *s, int within_ms)
{
    char part[64];

    snprintf(part, sizeof(part), "rank %d (process %d", s->victim,
             (int)s->pids[s->victim]);
    boottest_all_failed(s, TRIB_ERR_PEER_LOST, part, within_ms);
}

#endif
