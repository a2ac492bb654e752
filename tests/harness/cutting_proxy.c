/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/cutting_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "tests/harness/tribtest.h"

enum { CONNECTIONS = 64 };

struct pair {
    int fd[2]; /* of the rank, of tribd; -1: cut */
    size_t left;
};

static int connect_to(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    return fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ? fd : -1;
}

static void cut(struct pair *p)
{
    close(p->fd[0]);
    close(p->fd[1]);
    p->fd[0] = p->fd[1] = -1;
}

/* Forward data from one end, few bytes at a time, so that a cut may be anywhere. */
static void pass(struct pair *p, int from)
{
    uint8_t bytes[4093];
    const ssize_t n = recv(p->fd[from], bytes, sizeof(bytes), 0);

    if (n <= 0 || (size_t)n >= p->left ||
        send(p->fd[1 - from], bytes, (size_t)n, MSG_NOSIGNAL) != n)
        cut(p);
    else
        p->left -= (size_t)n;
}

/* The proxy process; runs until it is killed. */
static void proxy(int listener, int port, const size_t *limits, size_t n_limits)
{
    struct pair pairs[CONNECTIONS];
    int n = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        struct pollfd fds[1 + 2 * CONNECTIONS];
        fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (int i = 0; i < 2 * n; i++)
            fds[1 + i] =
                (struct pollfd){.fd = pairs[i / 2].fd[i % 2], .events = POLLIN};
        if (poll(fds, (nfds_t)(1 + 2 * n), -1) < 0)
            _exit(1);
        for (int i = 0; i < 2 * n; i++)
            if (fds[1 + i].revents && pairs[i / 2].fd[i % 2] >= 0)
                pass(&pairs[i / 2], i % 2);
        if (fds[0].revents && n < CONNECTIONS) {
            pairs[n].fd[0] = accept(listener, NULL, NULL);
            pairs[n].fd[1] = connect_to(port);
            pairs[n].left = limits[(size_t)n % n_limits];
            n++;
        }
    }
}

pid_t cutting_proxy_start(int port, int *port_out)
{
    static const size_t limits[] = {61003, 800029, 350017, 950021, 120011};

    return cutting_proxy_start_at(port, limits, sizeof(limits) / sizeof(*limits),
                                  port_out);
}

pid_t cutting_proxy_start_at(int port, const size_t *limits, size_t n_limits,
                             int *port_out)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        proxy(listener, port, limits, n_limits);
    close(listener);
    *port_out = ntohs(at.sin_port);
    return pid;
}

void cutting_proxy_end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
