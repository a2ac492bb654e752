/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs without a connection manager: requests over TCP, GIDs chosen for each
 * pair, impostors at the port of a peer. The device is one in memory, the sockets are
 * real.
 */
#include "tests/transport/verbs/verbs_oob_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>

static void expect_route(struct pair *pair, int side, const char *words)
{
    struct trib_route route;

    pair->t[side]->ops->route(pair->t[side], !side, &route);
    assert_string_equal(route.name, "verbs");
    contains(route.why, words);
}

static void works(struct pair *pair)
{
    assert_ok(pair_write(pair, 8, 7));
    expect_arrival(pair, 1, 7, 8);
}

TEST(test_connect, clean, nothing_left)
{
    struct pair pair;

    pair_open(&pair, BY_GID, BY_GID);
    works(&pair);
    for (int i = 0; i < 2; i++)
        expect_route(&pair, i,
                     "GID 3 (10.9.0.1) to GID 10.9.0.1: RoCE v2, same subnet");
    pair.t[0]->ops->disconnect(pair.t[0], 1);
    expect_loss(&pair, 1, "has left");
    pair_close(&pair);
}

/* A driver that reports an MTU unknown to the verbs: the largest known one is used. */
TEST(test_odd_mtu, clean, nothing_left)
{
    struct pair pair;

    fake_verbs_reset()->mtu = IBV_MTU_4096 + 1;
    pair_open(&pair, BY_GID, BY_GID);
    works(&pair);
    assert_int_equal(inside(&pair, 0)->peers[1].out.path.mtu, IBV_MTU_4096);
    pair_close(&pair);
}

/* If both have a connection manager that works, it is asked. */
TEST(test_choice, clean, nothing_left)
{
    struct pair pair;

    pair_open(&pair, "verbs", "verbs:connect=auto");
    expect_route(&pair, 0, "librdmacm, 127.9.0.1");
    pair_close(&pair);
    fake_verbs_reset()->no_connection_manager = true;
    pair_open(&pair, "verbs", "verbs");
    works(&pair);
    expect_route(&pair, 0, "RoCE v2, same subnet");
    pair_close(&pair);
    fake_verbs_reset()->address_less = true;
    pair_open(&pair, "verbs", "verbs");
    works(&pair);
    pair_close(&pair);
    fake_verbs_reset()->no_rdmacm = true;
    pair_open(&pair, "verbs", BY_GID);
    works(&pair);
    pair_close(&pair);
}

/* One rank has a connection manager, the other has none. */
TEST(test_one_manager, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address[2];
    struct pair pair = {0};

    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts o = pair_opts(&pair, i);
        opts->no_connection_manager = i == 1;
        assert_ok(trib_transport_open("verbs", &o, &pair.t[i]));
        assert_ok(pair.t[i]->ops->address(pair.t[i], &address[i]));
    }
    expect_route(&pair, 1, "by GIDs: librdmacm cannot be used");
    for (int i = 0; i < 2; i++)
        assert_ok(pair.t[i]->ops->connect(pair.t[i], !i, &address[!i]));
    expect_route(&pair, 0, "RoCE v2");
    pair_close(&pair);
}

/* The connection manager finds no route, or no process answers. */
TEST(test_manager_fails, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address, shut;
    struct verbs_address a;
    struct pair pair;

    open_apart(&pair, ALONE, &address);
    opts->address_errors = true;
    shut = address;
    memcpy(&a, address.bytes, sizeof(a));
    a.oob_port = 0;
    memcpy(shut.bytes, &a, sizeof(a));
    connect_fails(&pair, &shut, TRIB_ERR_PEER_LOST,
                  "No such device; check ip route get and ip neigh; by GIDs: the peer "
                  "accepts no requests over TCP");
    connects(&pair, &address);
    expect_route(&pair, 0, "RoCE v2, same subnet");
    pair_close(&pair);
}

TEST(test_unusable, clean, nothing_left)
{
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"verbs:connect=ip", "connect=ip must be auto, rdmacm or gid"},
        {BY_GID, "port 1 of fake0 is not active"},
        {BY_GID, "libibverbs is older than rdma-core 33"},
        {BY_GID, "port 1 of fake0 has no GID that peers can reach"},
        {"verbs",
         "the RDMA device fake0 has no IP address: assign one to its network "
         "interface (rdma link shows which one); by GIDs: port 1 of fake0 has no GID"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_verbs_opts *fake = fake_verbs_reset();
        fake->port_down = i == 1;
        fake->no_gid_query = i == 2;
        fake->address_less = i == 4;
        for (int k = 0; k < 4 && i >= 3; k++)
            fake_verbs_gid(0, k, NULL, IBV_GID_TYPE_IB);
        trib_error_clear(&pair.err);
        assert_true(trib_transport_open(cases[i].text, &opts, &pair.t[0]) < 0);
        contains(pair.err.text, cases[i].words);
        assert_int_equal(fake_verbs_live(), 0);
    }
}

TEST(test_refusals, clean, nothing_left)
{
    struct trib_address address, other;
    struct verbs_address a;
    struct pair pair;

    open_apart(&pair, BY_GID, &address);
    other = address;
    memcpy(&a, address.bytes, sizeof(a));
    a.key++;
    memcpy(other.bytes, &a, sizeof(a));
    connect_fails(&pair, &other, TRIB_ERR_PEER_LOST, "it belongs to another job");
    inside(&pair, 0)->settings++;
    connect_fails(&pair, &address, TRIB_ERR_MISMATCH, "it has different settings");
    inside(&pair, 0)->settings--;
    a.layer = VERBS_INFINIBAND;
    memcpy(other.bytes, &a, sizeof(a));
    connect_fails(&pair, &other, TRIB_ERR_PEER_LOST, "one port is InfiniBand");
    a.more = VERBS_ADDRESSES + 1;
    memcpy(other.bytes, &a, sizeof(a));
    connect_fails(&pair, &other, TRIB_ERR_INVALID, "not an address of verbs");
    connects(&pair, &address);
    pair.t[1]->ops->disconnect(pair.t[1], 0);
    expect_loss(&pair, 0, "has left");
    pair_close(&pair);
}

/* A port that neither accepts nor refuses a connection, as behind a firewall that drops
 * packets. */
static uint16_t silent_port(int fds[4])
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);

    for (int i = 0; i < 4; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (i == 0) {
            assert_int_equal(bind(fds[i], (struct sockaddr *)&at, sizeof(at)), 0);
            assert_int_equal(listen(fds[i], 0), 0);
            assert_int_equal(getsockname(fds[i], (struct sockaddr *)&at, &len), 0);
            at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        } else {
            (void)connect(fds[i], (struct sockaddr *)&at, sizeof(at));
        }
    }
    usleep(100000);
    return ntohs(at.sin_port);
}

/* reach_ms is for all addresses of a peer, not for each. */
TEST(test_silent_addresses, clean, nothing_left)
{
    struct trib_address address;
    struct verbs_address a;
    struct pair pair;
    int fds[4];

    open_apart(&pair, BY_GID ",reach_ms=100", &address);
    memcpy(&a, address.bytes, sizeof(a));
    a.boot++; /* of another host */
    a.oob_port = silent_port(fds);
    a.n = 0;
    a.more = VERBS_ADDRESSES;
    for (int i = 0; i < VERBS_ADDRESSES; i++)
        a.ip[i] = (struct verbs_ip){{[10] = 0xff, 0xff, 127, 9, 8, (uint8_t)(i + 1)}};
    memcpy(address.bytes, &a, sizeof(a));
    uint64_t begin = trib_now_ns();
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, "(TCP) cannot be reached");
    assert_in_range((trib_now_ns() - begin) / 1000000, 0, 8000);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    pair_close(&pair);
}

TEST(test_left, clean, nothing_left)
{
    struct trib_address address;
    struct pair pair;

    open_apart(&pair, BY_GID, &address);
    pair.t[1]->ops->disconnect(pair.t[1], 0);
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, "it has disconnected");
    pair_close(&pair);
}

/* Sides with a device each. */
static void open_two(struct pair *pair, struct trib_address *address)
{
    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        struct trib_transport_opts o = pair_opts(pair, i);
        assert_ok(trib_transport_open(i ? BY_GID ",device=fake1"
                                        : BY_GID ",device=fake0",
                                      &o, &pair->t[i]));
    }
    assert_ok(pair->t[1]->ops->address(pair->t[1], address));
}

TEST(test_no_pair, clean, nothing_left)
{
    struct trib_address address;
    struct pair pair;

    fake_verbs_reset()->devices = 2;
    open_two(&pair, &address);
    for (int i = 0; i < 4; i++)
        fake_verbs_gid(i % 2 == 0, i, NULL, IBV_GID_TYPE_IB);
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST,
                  "no pair of GIDs: one port has only RoCE v1 GIDs, the other only v2: "
                  "give all ranks the same verbs:roce=");
    for (int i = 0; i < 4; i++)
        fake_verbs_gid(1, i, NULL, IBV_GID_TYPE_IB);
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST,
                  "the port of the peer has no GID");
    pair_close(&pair);
}

/* Each side uses its table of the time of the connection. */
TEST(test_gid_change, clean, nothing_left)
{
    struct trib_address address;
    struct pair pair;

    fake_verbs_reset()->devices = 2;
    open_two(&pair, &address);
    fake_verbs_gid(0, 2, NULL, IBV_GID_TYPE_IB);
    fake_verbs_gid(0, 3, NULL, IBV_GID_TYPE_IB);
    fake_verbs_gid(0, 7, "10.66.0.1", IBV_GID_TYPE_ROCE_V2);
    fake_verbs_gid(1, 9, "10.66.0.2", IBV_GID_TYPE_ROCE_V2);
    fake_verbs_async(0, IBV_EVENT_GID_CHANGE);
    connects(&pair, &address);
    expect_route(&pair, 0, "GID 7 (10.66.0.1) to GID 10.66.0.2: RoCE v2, same subnet");
    pair_close(&pair);
}

TEST(test_infiniband, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address;
    struct pair pair;

    opts->devices = 2;
    opts->infiniband = true;
    opts->lid = 40;
    for (int d = 0; d < 2; d++) {
        for (int i = 1; i < 4; i++)
            fake_verbs_gid(d, i, NULL, IBV_GID_TYPE_IB);
        fake_verbs_gid(d, 0, d ? "fe80::24:2" : "fe80::24:1", IBV_GID_TYPE_IB);
    }
    open_two(&pair, &address);
    connects(&pair, &address);
    expect_route(&pair, 0, "InfiniBand, same subnet");
    assert_false(inside(&pair, 0)->peers[1].out.path.global);
    assert_int_equal(inside(&pair, 0)->peers[1].out.path.lid, 41);
    pair_close(&pair);
}

/* TCP gets through, RDMA does not: that is no connection. */
TEST(test_proof, clean, nothing_left)
{
    struct trib_address address;
    struct pair pair;

    open_apart(&pair, BY_GID, &address);
    fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST,
                  "no RDMA packet gets through from GID 3 (10.9.0.1) to GID 10.9.0.1");
    contains(pair.err.text, "its host no longer answers");
    contains(pair.err.text, "UDP port 4791");
    fake_verbs_hold(true);
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, "no RDMA packet gets through");
    fake_verbs_hold(false);
    connects(&pair, &address); /* nothing of the others is left */
    pair_close(&pair);
}

/* An acknowledgement that comes when its connection was given up is of no write. */
TEST(test_late_proof, clean, nothing_left)
{
    struct fake_verbs_opts *opts = fake_verbs_reset();
    struct trib_address address;
    struct trib_event e;
    struct pair pair;

    open_apart(&pair, BY_GID ",reach_ms=100", &address);
    opts->late_ends = true;
    fake_verbs_hold(true);
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, "no RDMA packet gets through");
    assert_int_equal(pair_poll(&pair, 0, 20, &e), 0);
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, "no RDMA packet gets through");
    opts->late_ends = false;
    fake_verbs_hold(false);
    connects(&pair, &address); /* now it is notified */
    assert_int_equal(pair_poll(&pair, 0, 20, &e), 0);
    pair_close(&pair);
}

/* The kernel of a process that dies closes its sockets. */
TEST(test_death, clean, nothing_left)
{
    struct trib_write w = {.imm = 3};
    struct pair pair;

    pair_open(&pair, BY_GID, BY_GID);
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
    assert_int_equal(shutdown(inside(&pair, 0)->peers[1].out.oob_fd, SHUT_RDWR), 0);
    expect_arrival(&pair, 1, 3, 0);
    expect_loss(&pair, 1, "closed its connection");
    expect_loss(&pair, 0, "closed its connection");
    pair_close(&pair);
}

TEST(test_words_on_wire, clean, nothing_left)
{
    struct pair pair;

    pair_open(&pair, BY_GID, BY_GID);
    assert_int_equal(
        send(inside(&pair, 0)->peers[1].out.oob_fd, "8 bytes.", 8, MSG_NOSIGNAL), 8);
    expect_loss(&pair, 1, "closed its connection");
    pair_close(&pair);
}

/* An address that was removed is no fault of the library: the reason names it. */
TEST(test_address_gone, clean, nothing_left)
{
    static const enum ibv_wc_status statuses[] = {IBV_WC_LOC_QP_OP_ERR,
                                                  IBV_WC_RETRY_EXC_ERR};
    struct pair pair;

    for (int i = 0; i < 2; i++) {
        (void)fake_verbs_reset();
        pair_open(&pair, BY_GID, BY_GID);
        fake_verbs_gid(0, 3, NULL, IBV_GID_TYPE_ROCE_V2);
        fake_verbs_gid(0, 2, NULL, IBV_GID_TYPE_ROCE_V1);
        fake_verbs_fail(statuses[i]);
        assert_ok(pair_write(&pair, 8, 1));
        expect_loss(&pair, 0, "no route: this host no longer has GID 3 (10.9.0.1)");
        contains(pair.logged, "no route: this host no longer has GID 3 (10.9.0.1)");
        expect_loss(&pair, 1, "closed its connection");
        pair_close(&pair);
    }
}

/* The reason of a refusal has words at both ends, and the log of the refusing rank does
 * not call a rank of its own job unauthenticated. */
TEST(test_refusal_words, clean, nothing_left)
{
    struct trib_address address;
    struct pair pair;

    for (int i = VERBS_WELCOME; i <= VERBS_NOT_PROVED; i++) {
        const struct verbs_hello hello = {.rank = 1, .pid = 4711};
        char text[200];
        assert_true(strlen(trib_verbs_refusal_text((enum verbs_refusal)i)) > 10);
        trib_verbs_describe_refusal(&hello, (enum verbs_refusal)i, text, sizeof(text));
        contains(text, "as rank 1 (process 4711), but ");
        assert_null(strstr(text, "reason "));
    }
    open_apart(&pair, BY_GID, &address);
    struct verbs *v = inside(&pair, 1);
    const struct verbs_hello hello = {.rank = 0, .pid = 4711};
    trib_verbs_log_refusal(v, &hello, VERBS_NO_WAY);
    contains(pair.logged, "rank 0 (process 4711) requested a connection, but no GIDs");
    assert_null(strstr(pair.logged, "unauthenticated"));
    pair_close(&pair);
}

TEST(test_sentence, clean, nothing_left)
{
    struct pair pair;

    pair_open(&pair, BY_GID, BY_GID);
    fake_verbs_fail(IBV_WC_RETRY_EXC_ERR);
    assert_ok(pair_write(&pair, 8, 1));
    expect_loss(&pair, 0,
                "retries exceeded: its host no longer answers, to GID 10.9.0.1 over "
                "fake0");
    contains(pair.logged, "GID 3 (10.9.0.1) on fake0 to rank 1");
    contains(pair.logged, "at GID 10.9.0.1:");
    expect_loss(&pair, 1, "closed its connection");
    pair_close(&pair);
}

/* A child cannot free or request the resources of its parent. */
static int close_in_child(int rank, int size, void *arg)
{
    struct pair *pair = arg;
    const struct trib_transport_ops *ops = pair->t[0]->ops;
    int live = fake_verbs_live();
    struct trib_region *region;
    void *ptr;

    (void)rank;
    (void)size;
    if (ops->alloc(pair->t[0], 4096, &ptr, &region) != TRIB_ERR_INVALID ||
        !strstr(pair->err.text, "is a forked child"))
        return 1;
    ops->dereg(pair->t[0], pair->region[0]);
    ops->release(pair->t[0], pair->remote[0]);
    ops->disconnect(pair->t[0], 1);
    ops->close(pair->t[0]);
    return fake_verbs_live() != live ? 2 : 0;
}

TEST(test_fork, clean, nothing_left)
{
    struct pair pair;

    pair_open(&pair, BY_GID, BY_GID);
    assert_int_equal(tribtest_forks(1, 30, close_in_child, &pair), 0);
    works(&pair);
    pair_close(&pair);
}

/* How many descriptors the door of a side waits for. */
static int waited_for(struct pair *pair, int side)
{
    char path[64], line[128];
    int n = 0;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", inside(pair, side)->oob.epoll);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        n += strncmp(line, "tfd:", 4) == 0;
    fclose(file);
    return n;
}

/* A wire that a child holds open would be ready for ever. */
TEST(test_child_keeps_wires, clean, nothing_left)
{
    struct pair pair;

    pair_open(&pair, BY_GID, BY_GID);
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_true(child > 0);
    assert_true(waited_for(&pair, 0) > 1);
    pair.t[0]->ops->disconnect(pair.t[0], 1);
    int left = waited_for(&pair, 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(left, 1); /* the pending connection */
    pair_close(&pair);
}

/* Another program, or none, at the port of the peer. */
struct impostor {
    struct trib_net_port at;
    const void *says;
    size_t bytes;
};

static void *pose(void *arg)
{
    struct impostor *impostor = arg;
    struct pollfd fd = {.fd = impostor->at.fd, .events = POLLIN};
    char heard[4096];

    if (poll(&fd, 1, 60000) <= 0)
        return NULL;
    int guest = accept(impostor->at.fd, NULL, NULL);
    (void)!recv(guest, heard, sizeof(heard), 0);
    (void)!send(guest, impostor->says, impostor->bytes, MSG_NOSIGNAL);
    (void)shutdown(guest, SHUT_WR);
    (void)!recv(guest, heard, sizeof(heard), 0);
    close(guest);
    return NULL;
}

static void expect_impostor(struct pair *pair, struct trib_address *address,
                            struct impostor *impostor, const char *words)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, pose, impostor), 0);
    connect_fails(pair, address, TRIB_ERR_PEER_LOST, words);
    pthread_join(thread, NULL);
}

TEST(test_impostors, clean, nothing_left)
{
    struct verbs_oob_reply reply = {
        .answer = {.magic = VERBS_MAGIC, .version = VERBS_VERSION}, .mtu = 6};
    struct impostor impostor = {0};
    struct trib_address address;
    struct verbs_address a;
    struct pair pair;
    char text[100] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";

    open_apart(&pair, BY_GID, &address);
    memcpy(&a, address.bytes, sizeof(a));
    assert_ok(trib_net_bind("test", SOCK_STREAM, 0, 1, &impostor.at, &pair.err));
    a.oob_port = 1;
    memcpy(address.bytes, &a, sizeof(a));
    connect_fails(&pair, &address, TRIB_ERR_PEER_LOST, "(TCP) cannot be reached");
    a.oob_port = impostor.at.port;
    memcpy(address.bytes, &a, sizeof(a));
    expect_impostor(&pair, &address, &impostor, "it closed the connection");
    impostor.says = text;
    impostor.bytes = sizeof(text);
    expect_impostor(&pair, &address, &impostor,
                    "the process that answers there is not a rank");
    impostor.says = &reply;
    impostor.bytes = sizeof(reply);
    expect_impostor(&pair, &address, &impostor,
                    "the process that answers there is not the peer");
    reply.answer.key = a.key;
    expect_impostor(&pair, &address, &impostor, "its reply is invalid");
    reply.mtu = 5;
    reply.global = 1;
    reply.position = 200;
    expect_impostor(&pair, &address, &impostor, "its reply is invalid");
    reply.answer.refusal = VERBS_NO_WAY;
    reply.way = 77;
    expect_impostor(&pair, &address, &impostor, "unknown to this version");
    close(impostor.at.fd);
    pair_close(&pair);
}

/* By calls and by the connection manager: one secret, another one, one on one side
 * alone. */
TEST(test_secrets, clean, nothing_left)
{
    static const char *const texts[] = {BY_GID, "verbs:connect=rdmacm"};
    static const uint8_t numbers[][2] = {{4, 4}, {4, 5}, {0, 5}, {4, 0}};

    for (size_t i = 0; i < 8; i++) {
        const uint8_t *n = numbers[i / 2];
        struct pair pair;
        struct trib_address address;
        open_with_secrets(&pair, texts[i % 2], n, &address);
        if (n[0] == n[1])
            connects(&pair, &address);
        else
            connect_fails(&pair, &address, TRIB_ERR_PEER_LOST,
                          n[0] && n[1] ? "does not have this job's secret"
                                       : "only one of the two has a secret");
        pair_close(&pair);
    }
}
