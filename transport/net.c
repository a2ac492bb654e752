/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/net.h"

#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

static int open_socket(int type, int *family_out)
{
    int fd = trib_fd_keep(socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
        no = 0;

    *family_out = AF_INET6;
    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    *family_out = AF_INET;
    return trib_fd_keep(socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static void cannot_bind(const char *owner, int type, int first, int ports,
                        struct trib_error *err)
{
    const char *kind = type == SOCK_DGRAM ? "UDP" : "TCP";

    if (first)
        trib_fail(err, TRIB_ERR_SYSTEM,
                  "%s: none of the %s ports %d to %d can be bound: %m (choose others "
                  "with port=N,ports=N in TRIB_TRANSPORT)",
                  owner, kind, first, first + ports - 1);
    else
        trib_fail(err, TRIB_ERR_SYSTEM, "%s: no %s port can be bound: %m", owner, kind);
}

trib_status_t trib_net_bind(const char *owner, int type, int first, int ports,
                            struct trib_net_port *out, struct trib_error *err)
{
    static const uint8_t any[16] = {0};
    struct sockaddr_storage own;
    int bound = -1;

    out->fd = open_socket(type, &out->family);
    if (out->fd < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "%s: no socket: %m", owner);
    if (first && first + ports > 65536)
        ports = 65536 - first;
    for (int i = 0; i < (first ? ports : 1) && bound != 0; i++) {
        socklen_t len =
            trib_net_sockaddr(any, (uint16_t)(first + i), out->family, &own);
        bound = bind(out->fd, (struct sockaddr *)&own, len);
    }
    socklen_t len = sizeof(own);
    if (bound == 0 && getsockname(out->fd, (struct sockaddr *)&own, &len) == 0) {
        out->port = trib_net_port((struct sockaddr *)&own);
        return TRIB_OK;
    }
    cannot_bind(owner, type, first, ports, err);
    close(out->fd);
    out->fd = -1;
    return TRIB_ERR_SYSTEM;
}

uint64_t trib_net_space(void)
{
    struct stat net;

    return stat("/proc/self/ns/net", &net) == 0 ? net.st_ino : 0;
}
