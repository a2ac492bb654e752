/* SPDX-License-Identifier: BSD-3-Clause */
/* Address of a client's connection, for the log. */
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#include "agg/daemon/server_parts.h"

const char *server_from(struct client *c)
{
    struct sockaddr_storage at = {0};
    socklen_t bytes = sizeof(at);
    char host[48], port[8];

    if (c->from[0] || !c->session)
        return c->from[0] ? c->from : "a closed connection";
    if (getpeername(trib_session_fd(c->session), (struct sockaddr *)&at, &bytes) != 0 ||
        getnameinfo((const struct sockaddr *)&at, bytes, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "a closed connection";
    snprintf(c->from, sizeof(c->from), at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
             host, port);
    return c->from;
}
