/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/boot/boottest.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/resource.h>

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static char root_text[64];

/* Replaces the getaddrinfo of libc: contacts no name server, and never answers for
 * "mute.invalid". */
int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict out)
{
    bool numeric = hints && hints->ai_flags & AI_NUMERICHOST;
    const char *end = node ? strstr(node, ".invalid") : NULL;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    __typeof__(&getaddrinfo) real;

    assert_non_null(symbol);
    memcpy(&real, &symbol, sizeof(real));
    if (!end || numeric)
        return real(node, service, hints, out);
    if (strcmp(node, "mute.invalid") == 0)
        boottest_sleep(100000);
    return EAI_NONAME;
}

/*
 * Start at a separate port. stop_ms is long, so that no rank on a busy machine counts
 * as silent; cases that wait for the limit set a shorter one.
 */
static struct start new_start(int size)
{
    struct start s = {
        .root = root_text, .size = size, .boot_ms = 30000, .stop_ms = 4000};

    snprintf(root_text, sizeof(root_text), "127.0.0.1:%d", boottest_port());
    for (int i = 0; i < BOOTTEST_RANKS; i++)
        s.key[i] = KEY;
    return s;
}

static int connect_stranger(const char *bytes, size_t n)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    uint64_t deadline = trib_deadline_ms(tribtest_patience_ms());
    int fd = -1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(strrchr(root_text, ':') + 1));
    while (fd < 0 && !trib_deadline_passed(deadline)) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
            break;
        close(fd);
        fd = -1;
        boottest_sleep(2);
    }
    if (fd >= 0 && n)
        send(fd, bytes, n, MSG_NOSIGNAL);
    return fd;
}

TEST(test_meets)
{
    for (int size = 1; size <= 5; size += 2) {
        struct start s = new_start(size);
        boottest_run(&s);
        boottest_all_well(&s);
        boottest_free(&s);
    }
}

TEST(test_any_order)
{
    static const int orders[][3] = {{0, 40, 80}, {0, 80, 40}, {40, 0, 80},
                                    {80, 0, 40}, {40, 80, 0}, {80, 40, 0}};

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct start s = new_start(3);
        memcpy(s.delay_ms, orders[i], sizeof(orders[i]));
        boottest_run(&s);
        boottest_all_well(&s);
        boottest_free(&s);
    }
}

TEST(test_names_and_ipv6)
{
    static const char *const hosts[] = {"localhost", "[::1]"};
    char text[64];

    for (size_t i = 0; i < 2; i++) {
        struct start s = new_start(2);
        struct addrinfo hints = {.ai_family = AF_INET6, .ai_flags = AI_NUMERICHOST};
        struct addrinfo *list;
        int fd = socket(AF_INET6, SOCK_STREAM, 0);
        struct sockaddr_in6 any = {.sin6_family = AF_INET6,
                                   .sin6_addr = in6addr_loopback};
        bool ipv6 = fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0 &&
                    getaddrinfo("::1", NULL, &hints, &list) == 0;
        close(fd);
        if (i == 1 && !ipv6)
            tribtest_skip("this host has no IPv6");
        if (ipv6)
            freeaddrinfo(list);
        snprintf(text, sizeof(text), "%s%s", hosts[i], strrchr(root_text, ':'));
        s.root = text;
        boottest_run(&s);
        boottest_all_well(&s);
        boottest_free(&s);
    }
}

/* Ranks wait for a rank that takes longer than stop_timeout_ms but is alive. */
TEST(test_slow_rank)
{
    struct start s = new_start(3);

    s.stop_ms = 2000;
    s.pause_ms = 3500;
    boottest_run(&s);
    boottest_all_well(&s);
    boottest_free(&s);
}

TEST(test_port_used_again)
{
    struct start s = new_start(2);

    for (int i = 0; i < 3; i++) {
        boottest_run(&s);
        boottest_all_well(&s);
        boottest_free(&s);
    }
}

TEST(test_death)
{
    static const int victims[] = {0, 1, 2};
    static const enum fault faults[] = {FAULT_KILL, FAULT_EXIT, FAULT_CLOSE};

    for (int i = 0; i < 9; i++) {
        for (enum point point = POINT_OPEN; point <= POINT_READY; point++) {
            struct start s = new_start(3);
            s.fault = faults[i / 3];
            s.victim = victims[i % 3];
            s.point = point;
            boottest_run(&s);
            /* Rank 0 may end before the others have learned its identity. */
            if (s.victim == 0 && point == POINT_OPEN)
                boottest_all_failed(&s, TRIB_ERR_PEER_LOST, "rank 0", 10000);
            else
                boottest_victim_named(&s, 10000);
            boottest_free(&s);
        }
    }
}

TEST(test_stop)
{
    for (int victim = 0; victim < 3; victim += 2) {
        for (enum point point = POINT_OPEN; point <= POINT_READY; point++) {
            struct start s = new_start(3);
            s.stop_ms = 2000;
            s.fault = FAULT_STOP;
            s.victim = victim;
            s.point = point;
            boottest_run(&s);
            if (victim == 0 && point == POINT_OPEN)
                boottest_all_failed(&s, TRIB_ERR_PEER_LOST, "rank 0", 15000);
            else
                boottest_victim_named(&s, 15000);
            boottest_free(&s);
        }
    }
}

TEST(test_stop_with_defaults)
{
    struct start s = new_start(3);

    s.boot_ms = s.stop_ms = 0;
    s.fault = FAULT_STOP;
    s.victim = 1;
    s.point = POINT_READY;
    boottest_run(&s);
    boottest_victim_named(&s, 20000);
    boottest_free(&s);
}

TEST(test_failure_is_told)
{
    for (int victim = 0; victim < 3; victim++) {
        struct start s = new_start(3);
        s.fault = FAULT_SAY;
        s.victim = victim;
        s.point = POINT_READY;
        boottest_run(&s);
        boottest_victim_named(&s, 10000);
        boottest_all_failed(&s, TRIB_ERR_PEER_LOST, "no device is up", 10000);
        boottest_free(&s);
    }
}

/* Ranks 1, 3 and 4 open after the others have failed. */
static bool too_late(const struct start *s, int rank)
{
    return rank == 0 || rank == 2 || (s->seen[0].done && s->seen[2].done);
}

TEST(test_missing)
{
    struct start s = new_start(5);

    s.boot_ms = 3000;
    s.may_open = too_late;
    boottest_run(&s);
    for (int i = 0; i < 3; i += 2) {
        assert_status(s.seen[i].status, TRIB_ERR_BOOT);
        assert_non_null(strstr(s.seen[i].text, "ranks 1, 3-4 of 5 did not come"));
    }
    boottest_free(&s);
}

TEST(test_no_root)
{
    struct start s = new_start(3);

    s.boot_ms = 500;
    s.fault = FAULT_KILL;
    s.point = POINT_START;
    s.victim = 0;
    boottest_run(&s);
    boottest_all_failed(&s, TRIB_ERR_BOOT, "found no rank 0 at 127.0.0.1 port", 10000);
    boottest_free(&s);
}

TEST(test_unknown_host)
{
    struct start s = new_start(2);

    s.boot_ms = 3000;
    s.root = "no-such-host.invalid:4711";
    s.fault = FAULT_KILL;
    s.point = POINT_START;
    s.victim = 0;
    boottest_run(&s);
    assert_status(s.seen[1].status, TRIB_ERR_BOOT);
    assert_non_null(strstr(s.seen[1].text, "cannot be resolved"));
    boottest_free(&s);
}

TEST(test_resolver_is_mute)
{
    struct start s = new_start(2);
    char text[64];

    snprintf(text, sizeof(text), "mute.invalid%s", strrchr(root_text, ':'));
    s.root = text;
    s.boot_ms = 1000;
    uint64_t began = trib_now_ns();
    boottest_run(&s);
    assert_true(trib_now_ns() - began < UINT64_C(60000000000));
    assert_status(s.seen[1].status, TRIB_ERR_BOOT);
    assert_non_null(strstr(s.seen[1].text, "resolver"));
    assert_non_null(strstr(s.seen[1].text, "mute.invalid"));
    boottest_free(&s);
}

TEST(test_wrong_size)
{
    struct start s = new_start(3);

    s.told_size[1] = 4;
    s.may_open = boottest_odd_one_last;
    boottest_run(&s);
    boottest_all_failed(&s, TRIB_ERR_MISMATCH, "was started with 4 ranks, rank 0", 0);
    boottest_free(&s);

    s = new_start(3);
    s.told_size[2] = 9;
    s.told_rank[2] = 7 + 1;
    s.may_open = boottest_odd_one_last;
    boottest_run(&s);
    boottest_all_failed(&s, TRIB_ERR_MISMATCH, "rank 7 (process", 0);
    boottest_free(&s);
}

TEST(test_duplicate)
{
    struct start s = new_start(4);

    s.told_rank[3] = 1 + 1;
    s.may_open = boottest_odd_one_last;
    boottest_run(&s);
    boottest_all_failed(&s, TRIB_ERR_MISMATCH, "has joined already as process", 0);
    boottest_free(&s);
}

TEST(test_port_taken)
{
    struct start s = new_start(1);
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(strrchr(root_text, ':') + 1));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1), 0);
    boottest_run(&s);
    boottest_all_failed(&s, TRIB_ERR_BOOT, "is in use on", 0);
    boottest_free(&s);
    close(fd);
}

TEST(test_foreign_address)
{
    struct start s = new_start(1);

    s.root = "192.0.2.1:4711"; /* reserved for documentation, never assigned */
    boottest_run(&s);
    boottest_all_failed(&s, TRIB_ERR_BOOT, "is no address of", 0);
    boottest_free(&s);
}

/* Rank 1 opens after the unauthenticated peers have connected. */
static bool after_strangers(const struct start *s, int rank)
{
    return rank == 0 || *s->flag;
}

static void free_flag(struct start *s)
{
    munmap(s->flag, sizeof(*s->flag));
    boottest_free(s);
}

/* Unauthenticated peers: port scanners, browsers, half a hello, many at once. */
TEST(test_strangers)
{
    static const char http[] = "GET / HTTP/1.1\r\n\r\n";
    static const char half[] = "Trib\4\1\0\0\0";
    static const char huge[] = "Trib\4\4\0\0\0\0\0\0\377\377\377\377";
    static const char tick[] = "Trib\4\6\0\0\0\0\0\0\0\0\0\0";
    struct start s = new_start(2);
    pid_t pid;

    s.boot_ms = 30000;
    s.flag = boottest_shared(sizeof(*s.flag));
    s.may_open = after_strangers;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 25; i++) {
            connect_stranger("", 0);
            connect_stranger(http, sizeof(http) - 1);
            connect_stranger(half, sizeof(half) - 1);
            connect_stranger(huge, sizeof(huge) - 1);
            close(connect_stranger(tick, sizeof(tick) - 1));
        }
        *s.flag = true;
        pause();
    }
    boottest_run(&s);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    boottest_all_well(&s);
    free_flag(&s);
}

/* A job's first moment: all ranks have connected, and their HELLOs are still on the
 * way. None of them is evicted, nor by as many unauthenticated peers as fit beside
 * them. */
TEST(test_all_at_once)
{
    enum { SIZE = 200, STRANGERS = 64, ALL = SIZE - 1 + STRANGERS };
    const struct trib_config cfg = {.boot_timeout_ms = 30000, .stop_timeout_ms = 4000};
    struct start s = new_start(SIZE);
    struct trib_secret secret = {.is_set = false};
    struct trib_error err = {0};
    const struct trib_boot_opts opts = {
        .size = SIZE, .root = s.root, .cfg = &cfg, .err = &err, .secret = &secret};
    struct trib_boot *b;
    int fds[ALL + 1];
    char byte;

    assert_int_equal(trib_boot_open(&opts, &b), TRIB_OK);
    for (int i = 0; i < ALL; i++)
        fds[i] = connect_stranger("", 0);
    boottest_sleep(300);
    for (int i = 0; i < ALL; i++)
        assert_int_equal(recv(fds[i], &byte, 1, MSG_DONTWAIT), -1);
    /* One more evicts the first. */
    fds[ALL] = connect_stranger("", 0);
    assert_int_equal(recv(fds[0], &byte, 1, 0), 0);
    for (int i = 1; i <= ALL; i++)
        assert_int_equal(recv(fds[i], &byte, 1, MSG_DONTWAIT), -1);
    for (int i = 0; i <= ALL; i++)
        close(fds[i]);
    b->ops->close(b);
}

/* Let rank 0 open at most `more` files in addition to those already open. */
static void limit_files(int more)
{
    const int lowest = open("/dev/null", O_RDONLY);
    struct rlimit limit = {(rlim_t)(lowest + more), (rlim_t)(lowest + more)};

    close(lowest);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static bool with_few_files(const struct start *s, int rank)
{
    (void)s;
    if (rank == 0)
        limit_files(12);
    return true;
}

static bool with_too_few_files(const struct start *s, int rank)
{
    (void)s;
    if (rank == 0)
        limit_files(6);
    return true;
}

/* poll() rejects more entries than files may be open, so only open entries are
 * passed. */
TEST(test_few_files)
{
    struct start s = new_start(8);

    s.may_open = with_few_files;
    boottest_run(&s);
    boottest_all_well(&s);
    boottest_free(&s);
}

static bool with_few_files_after_strangers(const struct start *s, int rank)
{
    return with_few_files(s, rank) && after_strangers(s, rank);
}

/* Unauthenticated peers that use up rank 0's descriptors end no start: they are
 * evicted. */
TEST(test_strangers_and_few_files)
{
    struct start s = new_start(2);
    pid_t pid;

    s.flag = boottest_shared(sizeof(*s.flag));
    s.may_open = with_few_files_after_strangers;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 40; i++)
            connect_stranger("", 0);
        *s.flag = true;
        pause();
    }
    boottest_run(&s);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    boottest_all_well(&s);
    free_flag(&s);
}

/* All ranks get the error about the limit at once, also those whose connection is
 * refused. */
TEST(test_too_few_files)
{
    const uint64_t begin = trib_now_ns();
    struct start s = new_start(8);

    s.may_open = with_too_few_files;
    boottest_run(&s);
    boottest_all_failed(&s, TRIB_ERR_SYSTEM, "raise its limit (ulimit -n", 0);
    for (int i = 0; i < s.size; i++)
        assert_true((s.seen[i].at - begin) / 1000000 < 4000 * tribtest_slowness());
    boottest_free(&s);
}

/* Five bytes are enough. Only the sender gets the error; rank 0 logs it and reports it
 * at the end. */
TEST(test_other_version)
{
    static const char bytes[] = "Trib\7\1\0\0\0\0\0\0\0\0\0\0";
    struct start s = new_start(3);
    pid_t pid;

    s.flag = boottest_shared(sizeof(*s.flag));
    s.may_open = after_strangers;
    s.boot_ms = 2000;
    s.fault = FAULT_EXIT;
    s.victim = 2;
    s.point = POINT_START;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        connect_stranger(bytes, sizeof(bytes) - 1);
        *s.flag = true;
        pause();
    }
    boottest_run(&s);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 2; i++) {
        assert_status(s.seen[i].status, TRIB_ERR_BOOT);
        assert_non_null(strstr(s.seen[i].text, "rank 2 of 3 did not come"));
        assert_non_null(
            strstr(s.seen[i].text, "speaks version 7 of the start's protocol"));
    }
    free_flag(&s);
}

/* Another server listens at the port: rank 1 reports that. */
TEST(test_foreign_server)
{
    struct start s = new_start(2);
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    pid_t pid;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)atoi(strrchr(root_text, ':') + 1));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1), 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int peer = accept(fd, NULL, NULL);
        send(peer, "SSH-2.0-OpenSSH\r\n", 17, MSG_NOSIGNAL);
        pause();
    }
    s.fault = FAULT_EXIT;
    s.victim = 0;
    s.point = POINT_START;
    boottest_run(&s);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(fd);
    boottest_all_failed(&s, TRIB_ERR_BOOT, "is not rank 0 of Tributary", 15000);
    boottest_free(&s);
}
