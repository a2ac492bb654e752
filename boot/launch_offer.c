/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by launchers: read numbers from the environment, and offer a root. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "boot/launcher.h"

trib_status_t trib_launch_number(const char *variable, int max, int *out,
                                 struct trib_error *err)
{
    const char *text = trib_config_variable(variable);
    char *end = NULL;
    long number =
        text && text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;

    if (number < 0 || number > max || *end)
        return trib_fail(
            err, TRIB_ERR_CONFIG,
            "%s=%.40s in the environment is no number from 0 to %d: start "
            "the program with the launcher that sets it, or set TRIB_RANK, "
            "TRIB_SIZE and TRIB_ROOT",
            variable, text ? text : "", max);
    *out = (int)number;
    return TRIB_OK;
}

/*
 * Bind with SO_REUSEADDR, without listening: the kernel assigns the port to no other
 * process, but lets rank 0 listen there.
 */
static int hold_port(const uint8_t ip[16], int family, int *port_in_out)
{
    struct sockaddr_storage at = {0};
    socklen_t bytes = trib_net_sockaddr(ip, (uint16_t)*port_in_out, family, &at);
    int fd = trib_fd_keep(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
    if (bind(fd, (struct sockaddr *)&at, bytes) ||
        getsockname(fd, (struct sockaddr *)&at, &bytes)) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    *port_in_out = trib_net_port((struct sockaddr *)&at);
    return fd;
}

int trib_launch_hold(const uint8_t ip[16], int *port_in_out)
{
    static const uint8_t any[16], any_v4[16] = {[10] = 0xff, 0xff};

    if (ip)
        return hold_port(ip, trib_net_is_v4(ip) ? AF_INET : AF_INET6, port_in_out);
    int fd = hold_port(any, AF_INET6, port_in_out);
    if (fd >= 0 || errno == EADDRINUSE || errno == EACCES)
        return fd;
    return hold_port(any_v4, AF_INET, port_in_out);
}

trib_status_t trib_launch_offer(struct trib_launch *launch, struct trib_error *err)
{
    int port = 0;

    launch->hold = trib_launch_hold(NULL, &port);
    if (launch->hold < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "rank 0 finds no free port for the rendezvous: %m");
    return trib_launch_publish(launch, port, err);
}
