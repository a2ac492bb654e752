/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/accept.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/addresses.h"
#include "base/fd.h"
#include "base/time.h"

#define SAY_AGAIN_NS (UINT64_C(60) * 1000000000)

int trib_accept_next(int listener, uint8_t ip_out[16])
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof(from);
    const int fd = trib_fd_keep(accept4(listener, (struct sockaddr *)&from, &len,
                                        SOCK_CLOEXEC | SOCK_NONBLOCK));

    if (fd >= 0)
        trib_net_ip((struct sockaddr *)&from, ip_out);
    return fd;
}

static bool is_for_one(int error)
{
    switch (error) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM: /* set by a firewall */
    case ENETDOWN: /* Linux reports pending network errors through accept() */
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
        return true;
    default:
        return false;
    }
}

bool trib_accept_failed(struct trib_accept_pause *pause, int error)
{
    const uint64_t now = trib_now_ns();

    if (is_for_one(error))
        return false;
    pause->until = trib_deadline_ms(TRIB_ACCEPT_PAUSE_MS);
    if (pause->said && now - pause->said < SAY_AGAIN_NS)
        return false;
    pause->said = now;
    return true;
}

bool trib_accept_paused(const struct trib_accept_pause *pause)
{
    return pause->until && !trib_deadline_passed(pause->until);
}

const char *trib_accept_cure(int error)
{
    switch (error) {
    case EMFILE:
        return "raise ulimit -n (LimitNOFILE= in a systemd unit)";
    case ENFILE:
        return "raise sysctl fs.file-max";
    case ENOMEM:
    case ENOBUFS:
        return "the kernel has no memory for it";
    default:
        return "";
    }
}
