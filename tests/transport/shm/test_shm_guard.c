/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm between an aggregator and ranks that it does not trust: what it takes of them,
 * what it refuses, and that it waits for nobody. The ranks are processes of their own,
 * and where the test is root's of a user of their own.
 */
#include "tests/transport/shm/shm_guard_rig.h"

/* An honest rank of another user: its memory comes, and the node's is given to it. */
TEST(test_takes_an_honest_rank)
{
    struct pair pair = {.lines = 0};
    struct trib_remote *small, *large;
    struct trib_guard guard;
    struct rank r;
    size_t len;

    struct trib_transport *t = open_node(&pair, &guard);
    start(HONEST, OTHER, &r);
    assert_status(survey(t, &r), TRIB_OK);
    assert_int_equal(guard.user, geteuid() == 0 ? OTHER : geteuid());
    assert_status(t->ops->connect(t, RANK, &r.told.address), TRIB_OK);
    assert_status(t->ops->import_region(t, RANK, &r.told.small, &small), TRIB_OK);
    assert_non_null(t->ops->map(t, small, &len));
    assert_int_equal(len, 4096);
    /* The first import waited; from now on it does not wait, and is tried again. */
    assert_status(import_awaited(t, &r.told.large, &large), TRIB_OK);
    assert_non_null(t->ops->map(t, large, &len));
    assert_int_equal(len, BYTES);
    t->ops->release(t, small);
    t->ops->release(t, large);
    end(&r);
    t->ops->close(t);
}

/* Two regions of the node, one after the other: a rank waits for each, as it may. */
TEST(test_a_rank_waits)
{
    struct pair pair = {.lines = 0};
    struct trib_guard guard;
    struct trib_event e;
    struct rank r;

    struct trib_transport *t = open_connected(&pair, &guard, &r);
    for (size_t i = 0; i < 2; i++) {
        const uint64_t until = trib_deadline_ms(tribtest_patience_ms());
        struct trib_region *region;
        struct trib_blob blob;
        trib_status_t st;
        void *ptr;
        assert_status(t->ops->alloc(t, BYTES << i, &ptr, &region), TRIB_OK);
        assert_status(t->ops->export_region(t, region, &blob), TRIB_OK);
        assert_int_equal(write(r.pipe, &blob, sizeof(blob)), sizeof(blob));
        while (recv(r.pipe, &st, sizeof(st), MSG_DONTWAIT) != (ssize_t)sizeof(st)) {
            (void)t->ops->poll(t, &e, 1);
            assert_false(trib_deadline_passed(until));
        }
        assert_status(st, TRIB_OK);
    }
    end(&r);
    t->ops->close(t);
}

static int open_files(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void print_open_files(void)
{
    char path[32], target[96];

    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(path, target, sizeof(target));
        if (n > 0)
            fprintf(stderr, "# descriptor %d is %.*s\n", fd, (int)n, target);
    }
}

/* Soon: a thread of the node's may have a connection of the rank's, which asks it for
 * memory. */
static void assert_open_files(int expected)
{
    const uint64_t until = trib_deadline_ms(tribtest_patience_ms());

    while (open_files() != expected && !trib_deadline_passed(until))
        usleep(1000);
    if (open_files() != expected)
        print_open_files();
    assert_int_equal(open_files(), expected);
}

/* The descriptor that wakes a rank is a socket of datagrams of this host or none. */
TEST(test_takes_bells_alone)
{
    static const enum act acts[] = {BELL, BELL_PIPE, BELL_STREAM, BELL_INET};

    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        struct pair pair = {.lines = 0};
        struct trib_remote *small;
        struct trib_guard guard;
        struct rank r;
        struct trib_transport *t = open_node(&pair, &guard);
        start(acts[i], OTHER, &r);
        const int before = open_files();
        assert_status(survey(t, &r), TRIB_OK);
        assert_status(t->ops->connect(t, RANK, &r.told.address), TRIB_OK);
        assert_int_equal(shm_of(t)->peers[RANK].pipe >= 0, acts[i] == BELL);
        /* Two for its process, and the bell: the memory needs no file once it is
         * mapped. */
        assert_open_files(before + 2 + (acts[i] == BELL));
        const int bell = shm_of(t)->peers[RANK].pipe;
        /* With it comes another bell, which is not needed. */
        assert_status(import_awaited(t, &r.told.small, &small), TRIB_OK);
        assert_int_equal(shm_of(t)->peers[RANK].pipe, bell);
        assert_open_files(before + 2 + (acts[i] == BELL));
        end(&r);
        t->ops->close(t);
    }
}

/* Ringing neither waits nor dies, whatever its owner has done to the bell. */
TEST(test_rings)
{
    char byte;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    trib_shm_guard_wake(ends[1]);
    assert_int_equal(recv(ends[0], &byte, 1, MSG_DONTWAIT), 1);
    for (int i = 0; i < 1000; i++) /* no process reads it: the kernel queues a few
                                    * hundred at most */
        trib_shm_guard_wake(ends[1]);
    assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
    trib_shm_guard_wake(ends[1]);
    close(ends[0]);
    close(ends[1]);
    trib_shm_guard_wake(-1);
}

/* A job uses no more of an aggregator's address space than its quota, and returns it.
 */
TEST(test_counts_what_is_given)
{
    const uint64_t most = UINT64_C(256) << 30;
    struct pair pair = {.lines = 0};
    struct trib_remote *small, *large;
    struct trib_guard guard;
    struct rank r;

    struct trib_transport *t = open_connected(&pair, &guard, &r);
    uint64_t *given = &shm_of(t)->untrusted_bytes;
    const uint64_t control = *given;
    assert_true(control > 0);
    *given = most - 4096;
    assert_status(t->ops->import_region(t, RANK, &r.told.small, &small),
                  TRIB_ERR_INVALID);
    assert_said(&pair, "provides more memory than an aggregator maps per job");
    *given = control;
    assert_status(import_awaited(t, &r.told.large, &large), TRIB_OK);
    assert_true(*given >= control + BYTES);
    t->ops->release(t, large);
    assert_int_equal(*given, control);
    end(&r);
    t->ops->close(t);
}

/* A rank admits few aggregators of its host, and reports one too many. */
TEST(test_admits_few)
{
    struct pair pair = {.lines = 0};
    struct trib_guard guard = {.ranks = 1};
    struct trib_transport_opts opts = pair_opts(&pair, RANK);
    struct trib_transport *t;
    struct rank r;
    int pid = 1;

    opts.guard = &guard;
    start(HONEST, geteuid(), &r); /* in the place of an aggregator */
    assert_status(trib_transport_open("shm", &opts, &t), TRIB_OK);
    assert_status(t->ops->reach(t, NODE, &r.told.address), TRIB_OK);
    while (trib_handout_admit(shm_of(t)->handout, 1000000 + pid) == TRIB_OK)
        pid++;
    assert_int_equal(pid, 64); /* with the first */
    assert_status(t->ops->reach(t, NODE, &r.told.address), TRIB_OK); /* it is known */
    end(&r);
    start(HONEST, geteuid(), &r);
    assert_status(t->ops->reach(t, NODE, &r.told.address), TRIB_ERR_UNSUPPORTED);
    assert_said(&pair, "too many aggregators on this host for shared memory");
    end(&r);
    t->ops->close(t);
}

/* The owner of memory, in words of the kernel and of the guard. */
TEST(test_owners)
{
    struct trib_guard guard = {.serves = true, .ranks = 2};
    struct shm shm = {.guard = &guard};

    struct trib_handout_owner rank = trib_shm_owner(&shm, 1, 4711, 7);
    assert_false(rank.aggregator);
    assert_int_equal(rank.pid, 4711);
    assert_int_equal(rank.name, 7);
    assert_ptr_equal(rank.guard, &guard);
    assert_true(trib_shm_owner(&shm, 2, 4711, 7).aggregator);
    shm.guard = NULL;
    assert_false(trib_shm_owner(&shm, 2, 4711, 7).aggregator);
}

/* Memory at an address: neither by process_vm_writev nor at all. */
TEST(test_refuses_addresses)
{
    struct pair pair = {.lines = 0};
    struct trib_guard guard;
    struct trib_remote *remote;
    struct rank r;

    struct trib_transport *t = open_connected(&pair, &guard, &r);
    assert_status(t->ops->import_region(t, RANK, &r.told.own, &remote),
                  TRIB_ERR_UNSUPPORTED);
    assert_said(&pair, "peer 0 exports memory outside a shared segment");
    end(&r);
    t->ops->close(t);
}

static void refuses(enum act act, trib_status_t expected, const char *sentence)
{
    struct pair pair = {.lines = 0};
    struct trib_guard guard;
    struct rank r;

    struct trib_transport *t = open_node(&pair, &guard);
    start(act, OTHER, &r);
    const int before = open_files();
    assert_status(survey(t, &r), TRIB_OK); /* its socket is its own */
    assert_status(t->ops->connect(t, RANK, &r.told.address), expected);
    assert_open_files(before); /* nor is its bell taken */
    assert_true(shm_of(t)->peers[RANK].pipe < 0);
    assert_said(&pair, sentence);
    end(&r);
    t->ops->close(t);
}

TEST(test_refuses_descriptors)
{
    refuses(UNSEALED, TRIB_ERR_INVALID, "its size is not sealed");
    refuses(FILE_OF_A_FOLDER, TRIB_ERR_INVALID, "a descriptor that is rejected");
    refuses(SHORT, TRIB_ERR_INVALID, "its size differs from");
    refuses(OTHER_KEY, TRIB_ERR_INVALID, "a segment other than the announced one");
    refuses(READ_ONLY, TRIB_ERR_NO_MEMORY, "cannot map");
}

/* It waits while the ranks connect, but not without a limit. */
TEST(test_leaves_a_silent_rank)
{
    const uint64_t begin = trib_now_ns();

    refuses(SILENT, TRIB_ERR_PEER_LOST, "has not handed out its memory within 5000 ms");
    assert_true(trib_now_ns() - begin < UINT64_C(30000000000));
}

/* Afterwards it does not wait: a lane continues, and the rank is lost. */
TEST(test_waits_for_nobody)
{
    struct pair pair = {.lines = 0};
    struct trib_guard guard;
    struct trib_remote *small, *large;
    struct trib_event e;
    struct rank r;
    trib_status_t st;

    struct trib_transport *t = open_connected(&pair, &guard, &r);
    assert_status(t->ops->import_region(t, RANK, &r.told.small, &small), TRIB_OK);
    assert_int_equal(kill(r.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(r.pid, NULL, WUNTRACED), r.pid);
    const uint64_t until = trib_deadline_ms(6 * TRIB_HANDOUT_MS);
    do {
        const uint64_t begin = trib_now_ns();
        st = t->ops->import_region(t, RANK, &r.told.large, &large);
        assert_true(trib_now_ns() - begin < UINT64_C(50000000) * tribtest_slowness());
        assert_false(trib_deadline_passed(until));
        usleep(1000);
    } while (st == TRIB_INPROGRESS);
    assert_status(st, TRIB_ERR_PEER_LOST);
    assert_said(&pair, "has not handed out its memory");
    while (!t->ops->poll(t, &e, 1))
        assert_false(trib_deadline_passed(until));
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_non_null(
        strstr(e.why, "has not handed out its memory")); /* not while it is being
                                                          * stopped */
    end(&r);
    t->ops->close(t);
}

/* One says that another's socket is its own, or that its process is another. */
TEST(test_refuses_another_process)
{
    struct pair pair = {.lines = 0};
    struct trib_shm_address a;
    struct trib_guard guard;
    struct rank r, other;

    struct trib_transport *t = open_node(&pair, &guard);
    start(HONEST, OTHER, &r);
    start(HONEST, OTHER, &other);
    memcpy(&a, r.told.address.bytes, sizeof(a));
    a.pid = other.pid;
    memcpy(r.told.address.bytes, &a, sizeof(a));
    assert_status(t->ops->reach(t, RANK, &r.told.address), TRIB_ERR_UNSUPPORTED);
    assert_said(&pair, "does not own the socket in its address");
    assert_status(t->ops->connect(t, RANK, &r.told.address), TRIB_ERR_UNSUPPORTED);
    assert_said(&pair, "does not own the socket in its address");
    a.handout = 0;
    memcpy(r.told.address.bytes, &a, sizeof(a));
    assert_status(t->ops->reach(t, RANK, &r.told.address), TRIB_ERR_UNSUPPORTED);
    assert_said(&pair, "has no socket for handing out its memory");
    end(&r);
    end(&other);
    t->ops->close(t);
}

/* The first socket's owner is the job's user, and all others must be. */
TEST(test_refuses_another_user)
{
    struct pair pair = {.lines = 0};
    struct trib_guard guard;
    struct rank r, other;

    if (geteuid() != 0)
        tribtest_skip("becoming another user needs root");
    struct trib_transport *t = open_node(&pair, &guard);
    start(HONEST, OTHER, &r);
    start(HONEST, OTHER - 1, &other);
    assert_status(t->ops->reach(t, RANK, &r.told.address), TRIB_OK);
    assert_status(t->ops->reach(t, RANK, &other.told.address), TRIB_ERR_UNSUPPORTED);
    assert_said(&pair, "runs as user 65533, but the job belongs to user 65534");
    atomic_store(&guard.user, 12345); /* as MUNGE has said */
    assert_status(t->ops->reach(t, RANK, &r.told.address), TRIB_ERR_UNSUPPORTED);
    assert_said(&pair, "runs as user 65534, but the job belongs to user 12345");
    end(&r);
    end(&other);
    t->ops->close(t);
}

/* A process asks for the node's memory, and knows its key. */
static bool is_given(const struct trib_address *address, uid_t uid)
{
    int status;

    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        struct trib_guard guard = {.ranks = 0};
        struct trib_handout_fds fds;
        struct trib_error err = {0};
        struct trib_shm_address a;
        memcpy(&a, address->bytes, sizeof(a));
        if (setresuid(uid, uid, uid))
            _exit(9);
        const struct trib_handout_owner owner = {
            .name = a.handout, .pid = a.pid, .aggregator = true, .guard = &guard};
        _exit(trib_handout_ask(&owner, a.key, &fds, &err) == TRIB_OK);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status);
}

TEST(test_gives_to_the_job_alone)
{
    struct pair pair = {.lines = 0};
    struct trib_address address;
    struct trib_guard guard;
    struct rank r;

    if (geteuid() != 0)
        tribtest_skip("becoming another user needs root");
    struct trib_transport *t = open_node(&pair, &guard);
    start(HONEST, OTHER, &r);
    assert_status(survey(t, &r), TRIB_OK);
    assert_status(t->ops->address(t, &address), TRIB_OK);
    assert_true(is_given(&address, OTHER));
    assert_false(is_given(&address, OTHER - 1));
    assert_true(is_given(&address, OTHER)); /* nor is that one in its way */
    end(&r);
    t->ops->close(t);
}

/* The first peer is the user of the job; from then on any other user is refused. */
TEST(test_one_user)
{
    struct trib_guard guard = {.serves = true, .user = TRIB_GUARD_ANYBODY};

    assert_true(trib_guard_is_user(&guard, 0)); /* root's number is one as any other */
    assert_int_equal(guard.user, 0);
    assert_true(trib_guard_is_user(&guard, 0));
    assert_false(trib_guard_is_user(&guard, 1));
    assert_false(trib_guard_is_user(&guard, (uid_t)-1));
    assert_int_equal(guard.user, 0);
}

TEST(test_lists)
{
    const struct trib_guard all = {.serves = true}, some = {.transports = "auto, tcp"};

    assert_true(trib_guard_takes(NULL, "loop"));
    assert_true(trib_guard_takes(&all, "shm"));
    assert_true(trib_guard_takes(&some, "auto"));
    assert_true(trib_guard_takes(&some, "tcp"));
    assert_false(trib_guard_takes(&some, "tc"));
    assert_false(trib_guard_takes(&some, "tcpx"));
    assert_false(trib_guard_takes(&some, "shm"));
    assert_false(trib_guard_takes(&some, ""));
    assert_false(trib_guard_bars(NULL, 0));
    assert_true(trib_guard_bars(&all, 0));
    assert_true(trib_guard_bars(&some, 0)); /* it has no ranks */
    const struct trib_guard rank = {.ranks = 2}, node = {.serves = true, .ranks = 2};
    assert_false(trib_guard_bars(&rank, 1)); /* ranks trust each other */
    assert_true(trib_guard_bars(&rank, 2));
    assert_true(trib_guard_bars(&node, 1));
    assert_true(trib_guard_bars(&node, 2));
}
