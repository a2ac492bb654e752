/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of one rank with a store of a key each. A run that computes for long keeps its
 * store. A stopped run loses it to a run with its key, and gets an error when it
 * continues. A stopped run that is not replaced finds its store again. A run that waits
 * for unresponsive tribds keeps its place at the responsive one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/digest.h"
#include "tests/harness/daemon.h"
#include "tests/harness/tribtest.h"

#include <tributary.h>

enum { COMPUTES, REPLACED, RETURNS, RUNS };

static const char *const keys[RUNS] = {
    "1111111111111111111111111111111111111111111111111111111111111111",
    "2222222222222222222222222222222222222222222222222222222222222222",
    "3333333333333333333333333333333333333333333333333333333333333333"};

/* A run: it pushes for each byte that it receives, and answers with the status. */
struct run {
    pid_t pid;
    int orders, answers;
};

static trib_status_t open_store(trib_comm_t *comm, const char *key,
                                trib_vector_t **out)
{
    trib_vector_desc_t desc = TRIB_VECTOR_DESC_INIT;
    trib_store_t *store;
    trib_store_opts_t opts = sized(trib_store_opts_t, .key = key);

    desc.name = "v";
    desc.count = 4;
    const trib_status_t st = trib_store_open_with(comm, &opts, &store);
    return st == TRIB_OK ? trib_store_create(store, &desc, out) : st;
}

static trib_status_t init(const char *service, trib_comm_t **out)
{
    trib_opts_t opts = TRIB_OPTS_INIT;

    setenv("TRIB_SERVICE", service, 1);
    opts.ranks = 1;
    opts.rank_plus_1 = 1;
    return trib_init(&opts, out);
}

static int run_main(const char *service, const char *key, int orders, int answers)
{
    static const float one[4] = {1, 1, 1, 1};
    trib_vector_t *v = NULL;
    trib_comm_t *comm;
    char order;

    trib_status_t st = init(service, &comm);
    if (st == TRIB_OK)
        st = open_store(comm, key, &v);
    for (;;) {
        const int8_t status = (int8_t)st;
        if (write(answers, &status, 1) != 1 || read(orders, &order, 1) != 1)
            return 0;
        st = v ? trib_store_push(v, one, NULL, NULL) : open_store(comm, key, &v);
    }
}

/* Fork. Return true in the child, which has the other ends of the pipes in `run`. */
static bool fork_run(struct run *run)
{
    int orders[2], answers[2];

    assert_return_code(pipe(orders), errno);
    assert_return_code(pipe(answers), errno);
    run->pid = fork();
    const int child = run->pid == 0;
    close(orders[child]);
    close(answers[!child]);
    run->orders = orders[!child];
    run->answers = answers[child];
    return child;
}

static void start(const struct daemon_process *d, const char *key, struct run *run)
{
    char service[80];

    snprintf(service, sizeof(service), "127.0.0.1:%d", d->port);
    if (fork_run(run))
        _exit(run_main(service, key, run->orders, run->answers));
}

static trib_status_t heard(const struct run *run)
{
    int8_t status = -1;

    assert_int_equal(read(run->answers, &status, 1), 1);
    return (trib_status_t)status;
}

static void order(const struct run *run, char what)
{
    assert_int_equal(write(run->orders, &what, 1), 1);
}

static trib_status_t ask(const struct run *run)
{
    order(run, 'p');
    return heard(run);
}

static void stop(const struct run *run)
{
    int status;

    kill(run->pid, SIGKILL);
    assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
    close(run->orders);
    close(run->answers);
}

/* Several tribds; all but the first stop answering --------------------------------- */

enum { OTHERS_MAX = 2 };

enum { CUT = 'c', OWN = 'o', MAKE = 'm' }; /* orders */

struct apart {
    int n; /* number of the others */
    int stop_timeout_ms;
    struct daemon_process others[OTHERS_MAX];
    int deaf[OTHERS_MAX]; /* listeners at the ports of killed tribds */
    struct run run;
    char log[DAEMON_PATH];
};

static trib_status_t make(trib_store_t *store, const char *name, int shards,
                          trib_vector_t **out)
{
    trib_vector_desc_t desc = sized(trib_vector_desc_t, .name = name,
                                    .count = 1 + OTHERS_MAX, .shards = shards);

    return trib_store_create(store, &desc, out);
}

/* A rank with a vector over all tribds, and one in the first tribd only. It pushes to
 * either one, or creates another one over all. */
static int apart_main(const struct apart *apart, const char *service)
{
    static const float ones[1 + OTHERS_MAX] = {1, 1, 1};
    const int shards = 1 + apart->n;
    trib_vector_t *cut, *own, *more;
    trib_store_t *store;
    trib_comm_t *comm;
    char name[] = "a", what;

    while (trib_digest(name, 1) % (uint64_t)shards != 0)
        name[0]++;
    trib_status_t st = init(service, &comm);
    if (st == TRIB_OK)
        st = trib_store_open(comm, &store);
    if (st == TRIB_OK)
        st = make(store, "cut", shards, &cut);
    if (st == TRIB_OK)
        st = make(store, name, 1, &own);
    for (;;) {
        const int8_t status = (int8_t)st;
        if (write(apart->run.answers, &status, 1) != 1 ||
            read(apart->run.orders, &what, 1) != 1)
            return 0;
        st = what == MAKE ? make(store, "more", shards, &more)
                          : trib_store_push(what == CUT ? cut : own, ones, NULL, NULL);
    }
}

static void start_apart(const struct daemon_process *d, struct apart *apart)
{
    char service[120], stop_timeout[20];
    int n = snprintf(service, sizeof(service), "127.0.0.1:%d", d->port);

    for (int i = 0; i < apart->n; i++) {
        apart->others[i] = (struct daemon_process){.threads = 1};
        memcpy(apart->others[i].folder, d->folder, sizeof(d->folder));
        assert_true(daemon_run(&apart->others[i]));
        n += snprintf(service + n, sizeof(service) - (size_t)n, ",127.0.0.1:%d",
                      apart->others[i].port);
    }
    snprintf(apart->log, sizeof(apart->log), "%.350s/apart.%d.log", d->folder,
             apart->n);
    snprintf(stop_timeout, sizeof(stop_timeout), "%d", apart->stop_timeout_ms);
    if (fork_run(&apart->run)) {
        const int log = open(apart->log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        setenv("TRIB_LOG", "info", 1);
        setenv("TRIB_STOP_TIMEOUT_MS", stop_timeout, 1);
        _exit(log < 0 || dup2(log, STDERR_FILENO) < 0 || apart_main(apart, service));
    }
    assert_status(heard(&apart->run), TRIB_OK);
}

/* Listen at the port without accepting connections. */
static int be_deaf(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* The rank loses the others, and searches for each of them: in total for longer than a
 * tribd waits for a message of the rank. */
static void lose_others(struct apart *apart)
{
    int status;

    for (int i = 0; i < apart->n; i++) {
        daemon_signal(&apart->others[i], SIGKILL);
        while (!daemon_ended(&apart->others[i], &status))
            usleep(1000);
        apart->deaf[i] = be_deaf(apart->others[i].port);
    }
    order(&apart->run, CUT);
}

/* The rank waits for an answer of a stopped tribd. */
static void stop_others(struct apart *apart)
{
    for (int i = 0; i < apart->n; i++)
        daemon_signal(&apart->others[i], SIGSTOP);
    order(&apart->run, MAKE);
}

/* The first tribd never considered the rank lost. */
static void end_apart(struct apart *apart, trib_status_t expected)
{
    char text[4096];

    for (int i = 0; i < apart->n && !apart->deaf[i]; i++)
        daemon_signal(&apart->others[i], SIGCONT);
    assert_status(heard(&apart->run), expected);
    order(&apart->run, OWN);
    assert_status(heard(&apart->run), TRIB_OK);
    const int log = open(apart->log, O_RDONLY | O_CLOEXEC);
    assert_true(log >= 0);
    const ssize_t n = read(log, text, sizeof(text) - 1);
    assert_true(n >= 0);
    text[n] = '\0';
    if (strstr(text, "reconnected after"))
        fail_msg("the tribd that answers took the rank for lost:\n%s", text);
    close(log);
    stop(&apart->run);
    for (int i = 0; i < apart->n; i++) {
        int status;
        if (apart->deaf[i]) {
            close(apart->deaf[i]);
            continue;
        }
        daemon_signal(&apart->others[i], SIGKILL);
        while (!daemon_ended(&apart->others[i], &status))
            usleep(1000);
    }
}

TEST(test_silent)
{
    struct daemon_process d = {.threads = 1};
    struct apart loses = {.n = 2, .stop_timeout_ms = 3000};
    struct apart waits = {.n = 1, .stop_timeout_ms = 60000};
    struct run runs[RUNS], next[RUNS];
    unsigned turns = 0;

    assert_true(daemon_folder(d.folder));
    if (!daemon_run(&d))
        skip();
    start_apart(&d, &loses);
    start_apart(&d, &waits);
    lose_others(&loses);
    stop_others(&waits);
    for (int i = 0; i < RUNS; i++) { /* later, so that these are silent for a shorter
                                      * time */
        start(&d, keys[i], &runs[i]);
        assert_status(heard(&runs[i]), TRIB_OK);
        assert_status(ask(&runs[i]), TRIB_OK);
    }
    kill(runs[REPLACED].pid, SIGSTOP);
    kill(runs[RETURNS].pid, SIGSTOP);
    start(&d, keys[REPLACED], &next[REPLACED]);
    trib_status_t st = heard(&next[REPLACED]);
    for (; st == TRIB_ERR_BUSY; st = ask(&next[REPLACED]), turns++)
        usleep(100000); /* a user may join a few times a second */
    assert_status(st, TRIB_OK);
    assert_true(turns > 0); /* the run had time to continue */
    kill(runs[RETURNS].pid, SIGCONT);
    assert_status(ask(&runs[RETURNS]), TRIB_OK);
    start(&d, keys[COMPUTES], &next[COMPUTES]);
    assert_status(heard(&next[COMPUTES]), TRIB_ERR_BUSY);
    assert_status(ask(&runs[COMPUTES]), TRIB_OK);
    kill(runs[REPLACED].pid, SIGCONT);
    assert_status(ask(&runs[REPLACED]), TRIB_ERR_PEER_LOST);
    assert_status(ask(&next[REPLACED]), TRIB_OK);
    end_apart(&loses, TRIB_ERR_PEER_LOST);
    end_apart(&waits, TRIB_OK);
    for (int i = 0; i < RUNS; i++)
        stop(&runs[i]);
    stop(&next[REPLACED]);
    stop(&next[COMPUTES]);
    daemon_signal(&d, SIGKILL); /* it would wait for these runs */
    daemon_end(&d);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return tribtest_run();
}
