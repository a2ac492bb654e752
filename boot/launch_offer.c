/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers share this file: it reads numbers from the environment and offers a root of
 * its own. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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
 * Bound, with SO_REUSEADDR, and not listening: the kernel gives the port to nobody
 * else, yet lets rank 0 listen there.
 */
static int hold_port(int family, int *port_out)
{
    struct sockaddr_storage at = {.ss_family = (sa_family_t)family};
    socklen_t bytes = sizeof(at);
    int fd = trib_fd_keep(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
    if (bind(fd, (struct sockaddr *)&at,
             family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                : sizeof(struct sockaddr_in)) ||
        getsockname(fd, (struct sockaddr *)&at, &bytes)) {
        close(fd);
        return -1;
    }
    *port_out = ntohs(family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                         : ((struct sockaddr_in *)&at)->sin_port);
    return fd;
}

int trib_launch_hold(int *port_out)
{
    int fd = hold_port(AF_INET6, port_out);

    return fd >= 0 ? fd : hold_port(AF_INET, port_out);
}

trib_status_t trib_launch_offer(struct trib_launch *launch, struct trib_error *err)
{
    int port = 0;

    launch->hold = trib_launch_hold(&port);
    if (launch->hold < 0)
        return trib_fail(err, TRIB_ERR_SYSTEM,
                         "rank 0 finds no free port for the others to meet at: %m");
    return trib_launch_publish(launch, port, err);
}
