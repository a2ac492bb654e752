/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/ctl_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agg/daemon/ctl_server.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/sockets.h"
#include "tools/common/tribd_client.h"

trib_status_t ctl_client_status(const char *address, struct trib_error *err, char **out)
{
    struct trib_tcp_root at;
    char why[128];

    *out = NULL;
    if (!trib_tcp_root_parse(address, &at))
        return trib_fail(err, TRIB_ERR_CONFIG, "http: \"%s\" is not host:port",
                         address);
    if (strcmp(at.host, "*") == 0) /* all addresses of this host */
        snprintf(at.host, sizeof(at.host), "localhost");
    *out = tool_tribd_status(at.host, at.port, TOOL_TRIBD_TIMEOUT_MS, why, sizeof(why));
    return *out ? TRIB_OK
                : trib_fail(err, TRIB_ERR_PEER_LOST, "cannot query the tribd at %s: %s",
                            address, why);
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = TOOL_TRIBD_TIMEOUT_MS / 1000};
    int fd;

    errno = ENAMETOOLONG;
    if (strlen(path) >= sizeof(address.sun_path))
        return -1;
    strcpy(address.sun_path, path);
    fd = trib_fd_keep(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return -1;
    /* connect blocks while the listen queue is full. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

trib_status_t ctl_client_command(const char *path, const char *line,
                                 struct trib_error *err, char *answer, size_t bytes,
                                 bool *done_out)
{
    char why[128], request[CTL_LINE + 1];
    const int fd = connect_to(path);

    if (fd < 0)
        return trib_fail(err, TRIB_ERR_PEER_LOST, "cannot reach a tribd at %s: %m",
                         path);
    snprintf(request, sizeof(request), "%s\n", line);
    char *text = tool_exchange(fd, request, TOOL_TRIBD_TIMEOUT_MS, why, sizeof(why));
    close(fd);
    if (!text)
        return trib_fail(err, TRIB_ERR_PEER_LOST, "the tribd at %s: %s", path, why);
    *done_out = strncmp(text, "ok: ", 4) == 0;
    const bool is_answer = *done_out || strncmp(text, "error: ", 7) == 0;
    if (is_answer)
        snprintf(answer, bytes, "%.*s", (int)strcspn(strchr(text, ' ') + 1, "\n"),
                 strchr(text, ' ') + 1);
    free(text);
    return is_answer ? TRIB_OK
                     : trib_fail(err, TRIB_ERR_PEER_LOST,
                                 "the server at %s is not a tribd", path);
}
