/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/daemon/systemd.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/fd.h"

/* $NOTIFY_SOCKET is a path, or an abstract name after "@". */
void systemd_notify(const char *state)
{
    const char *name = trib_config_environment("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    assert(state[0]);
    if (!name || (name[0] != '/' && name[0] != '@') ||
        strlen(name) >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, name, strlen(name));
    const socklen_t bytes =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    if (name[0] == '@')
        to.sun_path[0] = 0;
    const int fd =
        trib_fd_keep(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0)
        return;
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
                 bytes);
    close(fd);
}

void systemd_reloading(void)
{
    char text[64];
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
             (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    systemd_notify(text);
}

static bool read_number(const char *variable, uintmax_t *out)
{
    const char *text = trib_config_environment(variable);
    char end;

    return text && sscanf(text, "%ju%c", out, &end) == 1;
}

uint64_t systemd_watchdog_ns(void)
{
    uintmax_t us, pid;

    if (read_number("WATCHDOG_PID", &pid) && pid != (uintmax_t)getpid())
        return 0;
    return read_number("WATCHDOG_USEC", &us) && us <= UINT64_MAX / 1000
               ? (uint64_t)us * 1000
               : 0;
}

/* $JOURNAL_STREAM is "device:inode" of standard error at the start. */
bool systemd_log(void)
{
    const char *stream = trib_config_environment("JOURNAL_STREAM");
    uintmax_t device, inode;
    struct stat is;

    if (!stream || sscanf(stream, "%ju:%ju", &device, &inode) != 2 ||
        fstat(STDERR_FILENO, &is) != 0)
        return false;
    return device == is.st_dev && inode == is.st_ino;
}
