/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conformance: peers that go, sleep and wake-up, what is left behind.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "tests/transport/conformance.h"

/* A sanitizer keeps freed memory for a while: then growth says nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Much more than anything takes that comes at once: a machine may be busy. That errors
 * come in the time that users are promised is for the fault sweep. */
#define SOON_MS 10000

#define STALE 0xa5

/* By then some heartbeats have come, on a busy machine, too. */
#define HEARTBEATS_MS 700

/* The most rails of a row: notes go over them in turn. */
#define RAILS_AT_MOST 8

static double ms_since(uint64_t start)
{
    return (double)(trib_now_ns() - start) / 1e6;
}

/* Return true if the transport has set all flags of a loss, which were STALE before. */
static bool is_whole(const struct trib_event *e)
{
    const bool *flags[] = {&e->left,      &e->given_up, &e->dead, &e->lives,
                           &e->continues, &e->broken,   &e->final};

    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        if (*(const unsigned char *)flags[i] == STALE)
            return false;
    return true;
}

/* Waits for the loss of a peer, through sleeps as an idle engine does. */
static bool expect_loss(struct rig *rig, int peer, const char *why)
{
    const struct trib_transport_ops *ops = rig->t->ops;
    struct trib_event e;

    memset(&e, STALE, sizeof(e));
    while (ops->poll(rig->t, &e, 1) == 0) {
        if (spawn_expired(rig->s))
            return SPAWN_CHECK(rig->s, !"the loss is noticed");
        ops->arm(rig->t);
        ops->wait(rig->t, 1000);
    }
    SPAWN_CHECK(rig->s, is_whole(&e));
    if (e.kind != TRIB_EVENT_PEER_LOST || e.peer != peer || !strstr(e.why, why) ||
        e.left != (strstr(why, "left") != NULL)) {
        fprintf(stderr, "  event %d of peer %d, left %d: %s\n", (int)e.kind, e.peer,
                e.left, e.kind == TRIB_EVENT_PEER_LOST ? e.why : "");
        return SPAWN_CHECK(rig->s, !"the peer is lost for the right reason");
    }
    SPAWN_CHECK(rig->s, ops->write(rig->t, peer, &(struct trib_write){0}) ==
                            TRIB_ERR_PEER_LOST);
    return true;
}

/* Once and never again. */
static void expect_silence(struct rig *rig, int ms)
{
    struct trib_event e;
    uint64_t until = trib_deadline_ms(ms);

    while (!trib_deadline_passed(until)) {
        SPAWN_CHECK(rig->s, rig->t->ops->poll(rig->t, &e, 1) == 0);
        rig->t->ops->wait(rig->t, 10000);
    }
}

static void check_kill(struct spawn *s, const struct row *row)
{
    struct rig rig;
    struct trib_event e;
    int victim = s->size - 1;
    uint64_t start = trib_now_ns();

    if (!rig_open(&rig, s, row))
        goto out;
    /* A connection sends nothing before the proof of the secret: one note on each rail
     * first. */
    for (int i = 0; i < RAILS_AT_MOST; i++) {
        if (s->rank == victim)
            rig_note(&rig, 0, 76);
        if (s->rank == 0 && !rig_expect(&rig, TRIB_EVENT_ARRIVED, victim, &e))
            goto out;
    }
    if (s->rank == victim) /* messages sent before its death still arrive */
        rig_note(&rig, 0, 77);
    if (!spawn_barrier(s))
        goto out;
    if (s->rank == victim) {
        while (rig_next(&rig, &e))
            continue;
    }
    if (s->rank == 0) {
        start = trib_now_ns();
        spawn_signal(s, victim, SIGKILL);
        if (!rig_expect(&rig, TRIB_EVENT_ARRIVED, victim, &e))
            goto out;
    }
    char why[64];
    /* It "has died" or "closed its connection": the kernel may close its descriptors
     * some time before it reports the death. */
    snprintf(why, sizeof(why), "process %d ", (int)spawn_pid(s, victim));
    expect_loss(&rig, victim, why);
    SPAWN_CHECK(s, s->rank != 0 || ms_since(start) < SOON_MS);
    expect_silence(&rig, 50);
    spawn_meet(s, s->size - 1);
out:
    rig_drop(&rig);
}

static void check_stop(struct spawn *s, const struct row *row)
{
    struct rig rig;
    int victim = s->size - 1;

    bool remote = row->flags & ROW_REMOTE;
    if (!rig_open(&rig, s, row))
        goto out;
    if (remote) /* whose heartbeat never came is not missed when it stops */
        usleep(HEARTBEATS_MS * 1000);
    if (!spawn_barrier(s))
        goto out;
    if (s->rank == victim) {
        while (!spawn_expired(s))
            usleep(1000);
    }
    uint64_t start = trib_now_ns();
    if (s->rank == 0)
        spawn_signal(s, victim, SIGSTOP);
    int stop_ms = rig.cfg.stop_timeout_ms;
    expect_loss(&rig, victim,
                remote ? "no heartbeat from process" : "has been stopped for");
    /* Rank 0 knows when the stop began. */
    SPAWN_CHECK(s, s->rank != 0 ||
                       ms_since(start) > stop_ms - (remote ? stop_ms / 4 : 50));
    SPAWN_CHECK(s, ms_since(start) < SOON_MS);
    spawn_meet(s, s->size - 1);
    if (s->rank == 0)
        spawn_signal(s, victim, SIGKILL);
out:
    rig_drop(&rig);
}

/* A short stop is no loss, nor are two that are together a long one. */
static void check_short_stop(struct spawn *s, const struct row *row)
{
    enum { LONG_MS = 3000, SHORT_MS = 1700, PAUSE_MS = 1200 };
    struct rig rig;
    struct trib_event e;

    if (!rig_open_patient(&rig, s, row, LONG_MS) || !spawn_barrier(s))
        goto out;
    if (s->rank == 0) {
        for (int i = 0; i < 2; i++) {
            spawn_signal(s, 1, SIGSTOP);
            expect_silence(&rig, SHORT_MS);
            spawn_signal(s, 1, SIGCONT);
            expect_silence(&rig, PAUSE_MS);
        }
        rig_note(&rig, 1, 3);
    } else if (rig_expect(&rig, TRIB_EVENT_ARRIVED, 0, &e)) {
        SPAWN_CHECK(s, e.imm == 3);
    }
out:
    rig_close(&rig);
}

/* close() and leave(): peers get all that was sent, then "has left". */
static void check_leave(struct spawn *s, const struct row *row)
{
    enum { COUNT = 3 };
    struct rig rig;
    struct trib_event e;
    int leaver = s->size - 1;

    if (!rig_open(&rig, s, row))
        goto out;
    if (s->rank == leaver) {
        fill(rig.mem, 100, 5);
        struct trib_write w = {
            .local = rig.region, .remote = rig.remote[0], .len = 100};
        rig_write(&rig, 0, &w, NULL, NULL);
        rig_drop(&rig);
        spawn_barrier(s);
        spawn_barrier(s);
        return;
    }
    if (!spawn_barrier(s))
        goto out;
    uint64_t start = trib_now_ns();
    if (s->rank == 0) {
        if (!rig_expect(&rig, TRIB_EVENT_ARRIVED, leaver, &e))
            goto out;
        SPAWN_CHECK(s, filled(rig.mem, 100, 5));
    }
    expect_loss(&rig, leaver, "has left");
    SPAWN_CHECK(s, ms_since(start) < SOON_MS);
    spawn_barrier(s);
    /* The two that remain part one from the other only. */
    if (s->rank == 0) {
        const bool which[] = {false, true, false};
        rig.t->ops->leave(rig.t, which);
        rig.t->ops->disconnect(rig.t, 1); /* done before: nothing happens */
        SPAWN_CHECK(s, rig.t->ops->write(rig.t, 1, &(struct trib_write){0}) ==
                           TRIB_ERR_PEER_LOST);
        expect_silence(&rig, 30);
    } else {
        expect_loss(&rig, 0, "has left");
    }
    spawn_meet(s, s->size - 1);
out:
    rig_drop(&rig);
}

/* A forked child that closes its copy does not speak for its parent. */
static void check_fork(struct spawn *s, const struct row *row)
{
    struct rig rig;
    struct trib_event e;
    int status = -1;

    if (!rig_open(&rig, s, row))
        goto out;
    if (s->rank == 0) {
        pid_t pid = fork();
        if (pid == 0) {
            rig_drop(&rig);
            _exit(0);
        }
        SPAWN_CHECK(s, waitpid(pid, &status, 0) == pid && status == 0);
        expect_silence(&rig, 60);
        rig_note(&rig, 1, 9);
    } else if (rig_expect(&rig, TRIB_EVENT_ARRIVED, 0, &e)) {
        SPAWN_CHECK(s, e.imm == 9);
    }
out:
    rig_close(&rig);
}

/* A write and a wake() end a sleep long before its timeout. */
static void check_sleep(struct spawn *s, const struct row *row)
{
    enum { ROUNDS = 12, SLEEP_MS = 2000 };
    struct rig rig;
    struct trib_event e;
    int early = 0;

    if (!rig_open(&rig, s, row))
        goto out;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        int waker = 1 + (int)i / 2 % 2; /* where hosts are made out to be, each of
                                         * one */
        if (!spawn_barrier(s))
            goto out;
        if (s->rank != 0 && s->rank != waker)
            continue;
        if (s->rank == waker) {
            if (!spawn_await(s, 0, i + 1))
                goto out;
            usleep(20000); /* by now the other sleeps, mostly */
            if (i % 2)
                rig.t->ops->wake(rig.t, 0);
            else
                rig_note(&rig, 0, i);
            continue;
        }
        uint64_t start = trib_now_ns();
        rig.t->ops->arm(rig.t);
        SPAWN_CHECK(s, rig.t->ops->poll(rig.t, &e, 1) == 0);
        spawn_tell(s, i + 1); /* from now on nothing may be missed */
        rig.t->ops->wait(rig.t, SLEEP_MS * 1000);
        early += ms_since(start) < SLEEP_MS / 2;
        if (i % 2 == 0)
            rig_expect(&rig, TRIB_EVENT_ARRIVED, waker, &e);
    }
    SPAWN_CHECK(s, s->rank != 0 || early >= ROUNDS - 1);
    /* With nothing to come it ends by itself. */
    uint64_t start = trib_now_ns();
    rig.t->ops->arm(rig.t);
    rig.t->ops->wait(rig.t, 2000);
    SPAWN_CHECK(s, ms_since(start) < SLEEP_MS);
out:
    rig_close(&rig);
}

static void *wake_self(void *arg)
{
    struct rig *rig = arg;

    usleep(5000);
    rig->t->ops->wake(rig->t, rig->s->rank);
    return NULL;
}

static void check_wake_self(struct spawn *s, const struct row *row)
{
    struct rig rig;
    pthread_t thread;

    if (!rig_open(&rig, s, row))
        goto out;
    uint64_t start = trib_now_ns();
    rig.t->ops->arm(rig.t);
    if (!SPAWN_CHECK(s, pthread_create(&thread, NULL, wake_self, &rig) == 0))
        goto out;
    rig.t->ops->wait(rig.t, 2 * SOON_MS * 1000);
    SPAWN_CHECK(s, ms_since(start) < SOON_MS);
    pthread_join(thread, NULL);
out:
    rig_close(&rig);
}

static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file) {
        if (fscanf(file, "%*d %ld", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * 4;
}

static bool maps_mention(const char *text)
{
    char line[512];
    bool found = false;
    FILE *file = fopen("/proc/self/maps", "r");

    while (file && fgets(line, sizeof(line), file))
        found = found || strstr(line, text);
    if (file)
        fclose(file);
    return found;
}

/* 10 000 times alloc, reg, export, dereg (1 000 on a device): no file more, no page
 * each time. */
static void check_no_growth(struct spawn *s, const struct row *row)
{
    static const size_t lens[] = {100, 8192, 70000, (size_t)3 << 20};
    struct rig rig;
    struct trib_region *region, *part;
    struct trib_blob blob;
    int rounds = row->flags & ROW_DEVICE ? 1000 : 10000;
    long before = 0;
    int files = 0;
    void *p;

    if (!rig_open(&rig, s, row))
        goto out;
    for (int i = 0; s->rank == 0 && i < rounds; i++) {
        if (i == rounds / 10) {
            before = resident_kib();
            files = open_files();
        }
        size_t len = lens[i % 100 ? i % 3 : 3];
        if (rig.t->ops->alloc(rig.t, len, &p, &region) != TRIB_OK ||
            rig.t->ops->reg(rig.t, p, len / 2, &part) != TRIB_OK ||
            rig.t->ops->export_region(rig.t, part, &blob) != TRIB_OK) {
            SPAWN_CHECK(s, !"memory is there");
            break;
        }
        ((uint8_t *)p)[len - 1] = 1;
        ((uint8_t *)p)[0] = 1;
        rig.t->ops->dereg(rig.t, part);
        rig.t->ops->dereg(rig.t, region);
    }
    if (s->rank == 0) {
        SPAWN_CHECK(s, open_files() <= files);
        /* A leak would be hundreds of MiB; malloc may keep a few holes of 3 MiB. */
        if (!SPAWN_CHECK(s, SANITIZED || resident_kib() < before + 65536))
            fprintf(stderr, "  %ld KiB, then %ld\n", before, resident_kib());
        SPAWN_CHECK(s, !maps_mention("/dev/shm"));
    }
    /* The same from the importer's side. */
    struct trib_remote *again[RIG_RANKS_MAX];
    for (int i = 0; i < 300; i++) {
        if (!rig_swap(&rig, rig.region, again))
            goto out;
        rig.t->ops->release(rig.t, again[!s->rank]);
        if (i == 10)
            files = open_files();
    }
    SPAWN_CHECK(s, s->threads || open_files() <= files);
out:
    rig_close(&rig);
}

/* Writes that were taken get there though their writer does not poll again: it may wait
 * elsewhere for the very peer that waits for them. They are larger than the buffers of
 * sockets. */
static void check_unpolled(struct spawn *s, const struct row *row)
{
    enum { WRITES = 2, LEN = 4 << 20 };
    struct rig rig;
    struct trib_event e;

    if (!rig_open_len(&rig, s, row, LEN))
        goto out;
    fill(rig.mem, LEN, (uint32_t)s->rank);
    spawn_barrier(s);
    for (uint32_t i = 0; s->rank == 0 && i < WRITES; i++) {
        const struct trib_write w = {
            .local = rig.region, .remote = rig.remote[1], .len = LEN, .imm = i};
        SPAWN_CHECK(s, rig.t->ops->write(rig.t, 1, &w) == TRIB_OK);
    }
    spawn_barrier(s);
    for (uint32_t i = 0; s->rank == 1 && i < WRITES; i++) {
        if (rig_expect(&rig, TRIB_EVENT_ARRIVED, 0, &e))
            SPAWN_CHECK(s, e.imm == i && e.len == LEN);
    }
    SPAWN_CHECK(s, filled(rig.mem, LEN, 0));
    spawn_barrier(s);
out:
    rig_close(&rig);
}

/* The check allows a write of the peer during the read. */
__attribute__((no_sanitize("thread"), noinline)) static uint32_t read_racing(
    const volatile uint32_t *word)
{
    return *word;
}

/* One place is written twice before anybody polls, and once more after an answer. The
 * events come in order; at each of them the place has one of the values that were under
 * way, and after the answer nothing older ends there. */
static void check_place_twice(struct spawn *s, const struct row *row)
{
    enum { ROUNDS = 60, WRITES = 3 };
    struct rig rig;
    struct trib_event e;
    const int peer = !s->rank;

    if (!rig_open(&rig, s, row))
        goto out;
    volatile uint32_t *words = (uint32_t *)(void *)rig.mem;
    for (uint32_t i = 0; i < ROUNDS * WRITES; i++) {
        const struct trib_write w = {.local = rig.region,
                                     .local_off = (16 + i) * sizeof(*words),
                                     .remote = rig.remote[peer],
                                     .len = sizeof(*words),
                                     .imm = i};
        const bool first = i % WRITES == 0, last = i % WRITES == WRITES - 1;
        if (s->rank == 0) {
            words[16 + i] = i;
            if (!rig_write(&rig, peer, &w, NULL, NULL) ||
                (!first && !rig_expect(&rig, TRIB_EVENT_ARRIVED, peer, &e)))
                goto out;
            continue;
        }
        if (!rig_expect(&rig, TRIB_EVENT_ARRIVED, peer, &e))
            goto out;
        const uint32_t has = read_racing(words);
        SPAWN_CHECK(s, e.imm == i);
        SPAWN_CHECK(s, last ? has == i : has / WRITES == i / WRITES && has != i + 2);
        if (!first && !rig_note(&rig, peer, i))
            goto out;
    }
out:
    rig_close(&rig);
}

const struct check life_checks[] = {
    {"kill -9", check_kill, 3, 0, ROW_THREADS | ROW_DECORATED, true, false},
    {"stop", check_stop, 3, 0, ROW_THREADS | ROW_DECORATED, true, false},
    {"short stop", check_short_stop, 2, 0, ROW_THREADS | ROW_DECORATED, false, true},
    {"leave", check_leave, 3, 0, 0, false, false},
    {"fork", check_fork, 2, 0, ROW_THREADS, false, false},
    {"sleep", check_sleep, 3, 0, ROW_DECORATED, false, false},
    {"wake self", check_wake_self, 2, 0, 0, false, false},
    {"no growth", check_no_growth, 2, 0, ROW_DECORATED, false, false},
    {"place twice", check_place_twice, 2, 0, 0, false, false},
    {"unpolled", check_unpolled, 2, 0, ROW_DECORATED, false, false},
    {NULL, NULL, 0, 0, 0, false, false},
};
