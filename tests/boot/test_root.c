/* SPDX-License-Identifier: BSD-3-Clause */
/* A root created by trib_root_create: the port is reserved, ranks connect there, and
 * many roots can exist at once. */
#include "tests/harness/tribtest.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <tributary.h>

#include "base/config.h"
#include "base/secret.h"
#include "base/sockets.h"

enum { RANKS = 3, ROOTS = 16 };

struct rank {
    const char *root;
    int rank;
    trib_status_t status;
    float sum;
    pthread_t thread;
};

static void *join_and_sum(void *arg)
{
    struct rank *r = arg;
    trib_comm_t *comm;
    trib_opts_t opts =
        sized(trib_opts_t, .rank_plus_1 = r->rank + 1, .ranks = RANKS, .root = r->root);

    r->sum = (float)r->rank + 1;
    r->status = trib_init(&opts, &comm);
    if (r->status != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return NULL;
    }
    r->status = trib_allreduce(comm, NULL, &r->sum, 1, TRIB_F32, TRIB_SUM);
    trib_free_comm(comm);
    return NULL;
}

static void meet_at(const char *root)
{
    struct rank ranks[RANKS];

    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (struct rank){.root = root, .rank = i};
        assert_int_equal(
            pthread_create(&ranks[i].thread, NULL, join_and_sum, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        assert_status(ranks[i].status, TRIB_OK);
        assert_true(ranks[i].sum == 6.0f);
    }
}

TEST(test_ranks_meet)
{
    trib_root_t *root;

    assert_status(trib_root_create(&root), TRIB_OK);
    assert_true(strlen(trib_root_text(root)) < TRIB_ROOT_TEXT_MAX);
    assert_true(TRIB_ROOT_TEXT_MAX <= TRIB_CONFIG_TEXT_BYTES); /* the variable can hold
                                                                * each text */
    meet_at(trib_root_text(root));
    meet_at(trib_root_text(root)); /* and again: the port is still reserved */
    trib_root_destroy(root);
}

/* The text contains the secret of the job after the address. */
static void parse_text(const trib_root_t *root, struct trib_tcp_root *out)
{
    char text[TRIB_ROOT_TEXT_MAX];
    struct trib_secret secret;

    assert_true(trib_secret_split(trib_root_text(root), text, sizeof(text), &secret));
    assert_true(trib_tcp_root_parse(text, out));
}

/* Another program cannot get the reserved port, by chance or by request. */
TEST(test_port_is_kept)
{
    struct trib_tcp_root parsed;
    struct sockaddr_in at = {.sin_family = AF_INET};
    trib_root_t *root;

    assert_status(trib_root_create(&root), TRIB_OK);
    parse_text(root, &parsed);
    at.sin_port = htons((uint16_t)atoi(parsed.port));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), -1);
    assert_int_equal(errno, EADDRINUSE);
    trib_root_destroy(root);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    close(fd);
}

/* The text lists addresses after the name, because other hosts may not resolve the
 * name. */
TEST(test_names_addresses)
{
    struct trib_tcp_root parsed;
    trib_root_t *root;

    assert_status(trib_root_create(&root), TRIB_OK);
    parse_text(root, &parsed);
    assert_true(parsed.also[0] || strcmp(parsed.host, "127.0.0.1") == 0);
    trib_root_destroy(root);
}

TEST(test_many)
{
    trib_root_t *roots[ROOTS];

    for (int i = 0; i < ROOTS; i++) {
        assert_status(trib_root_create(&roots[i]), TRIB_OK);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(trib_root_text(roots[i]), trib_root_text(roots[j]));
    }
    for (int i = 0; i < ROOTS; i++)
        trib_root_destroy(roots[i]);
}

/* Roots created in a range have different ports of the range, until none is left. */
TEST(test_range)
{
    enum { PORTS = 4 };
    const int base = 12000 + getpid() % 20000;
    struct trib_tcp_root parsed;
    trib_root_t *roots[PORTS + 1];
    char range[40], number[16];
    int n = 0;

    snprintf(range, sizeof(range), ":%d-%d", base, base + PORTS - 1);
    while (n <= PORTS && trib_root_create_at(range, &roots[n]) == TRIB_OK) {
        parse_text(roots[n], &parsed);
        assert_in_range(atoi(parsed.port), base, base + PORTS - 1);
        for (int j = 0; j < n; j++)
            assert_string_not_equal(trib_root_text(roots[n]), trib_root_text(roots[j]));
        n++;
    }
    assert_in_range(n, 1, PORTS); /* other programs may use some of them */
    assert_null(roots[n]);
    snprintf(number, sizeof(number), "%d", base);
    assert_non_null(strstr(trib_last_error(NULL), "in use"));
    assert_non_null(strstr(trib_last_error(NULL), number));
    meet_at(trib_root_text(roots[n - 1]));
    trib_root_destroy(roots[n - 1]);
    assert_status(trib_root_create_at(range, &roots[n - 1]), TRIB_OK);
    for (int i = 0; i < n; i++)
        trib_root_destroy(roots[i]);
}

/* A range of one port, at which another program listens. */
TEST(test_port_in_use)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t bytes = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    trib_root_t *root;
    char one[40];

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    snprintf(one, sizeof(one), ":%d", ntohs(at.sin_port));
    assert_status(trib_root_create_at(one, &root), TRIB_ERR_SYSTEM);
    assert_non_null(strstr(trib_last_error(NULL), one + 1));
    close(fd);
    assert_status(trib_root_create_at(one, &root), TRIB_OK);
    meet_at(trib_root_text(root));
    meet_at(trib_root_text(root)); /* sockets of the first exchange do not block the
                                    * port */
    trib_root_destroy(root);
}

/* The text contains only the requested host. */
TEST(test_host)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]",
                                        "node7.example"};
    struct trib_tcp_root parsed;
    trib_root_t *root;

    for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
        if (trib_root_create_at(hosts[i], &root) != TRIB_OK) {
            assert_string_equal(hosts[i], "[::1]"); /* a host without IPv6 */
            continue;
        }
        const size_t len = strlen(hosts[i]);
        assert_memory_equal(trib_root_text(root), hosts[i], len);
        assert_int_equal(trib_root_text(root)[len], ':');
        parse_text(root, &parsed);
        assert_string_equal(parsed.also, "");
        if (i < 3)
            meet_at(trib_root_text(root));
        trib_root_destroy(root);
    }
    assert_status(trib_root_create_at("192.0.2.1:7000", &root), TRIB_ERR_SYSTEM);
    assert_non_null(strstr(trib_last_error(NULL), "192.0.2.1 is no address of"));
}

TEST(test_bad_places)
{
    static const char *const bad[] = {
        ":",          ":0",     ":70000", ":7000-", ":7100-7000", ":7000-70000",
        "host:7000x", "a b",    "a,b",    "*",      "::1",        "[::1",
        "[::1]7000",  "[host]", "a#b",    "a/b",    "host:-1",    ":7000-7001-7002"};
    char longest[TRIB_ROOT_TEXT_MAX];
    trib_root_t *root;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_status(trib_root_create_at(bad[i], &root), TRIB_ERR_INVALID);
        assert_null(root);
        assert_non_null(strstr(trib_last_error(NULL), bad[i]));
    }
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_status(trib_root_create_at(longest, &root), TRIB_ERR_INVALID);
}

TEST(test_misuse)
{
    assert_status(trib_root_create(NULL), TRIB_ERR_INVALID);
    assert_string_equal(trib_root_text(NULL), "");
    trib_root_destroy(NULL);
}
