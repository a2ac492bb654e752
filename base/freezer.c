/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/freezer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/fd.h"

enum { GROUP_MAX = 1024 };

static bool read_file(const char *path, char *text, size_t bytes)
{
    int fd = trib_fd_keep(open(path, O_RDONLY | O_CLOEXEC));

    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, bytes - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Version 1: "FROZEN" or "FREEZING", also if an ancestor is frozen. */
static bool frozen_v1(const char *group)
{
    char path[GROUP_MAX + 64], text[32];

    snprintf(path, sizeof(path), "/sys/fs/cgroup/freezer%s/freezer.state", group);
    return read_file(path, text, sizeof(text)) && strncmp(text, "FR", 2) == 0;
}

/* Version 2, also if an ancestor is frozen. On hybrid hosts it is mounted one directory
 * deeper. */
static bool frozen_v2(const char *group)
{
    char path[GROUP_MAX + 64], text[256];

    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cgroup.events", group);
    if (!read_file(path, text, sizeof(text))) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup/unified%s/cgroup.events", group);
        if (!read_file(path, text, sizeof(text)))
            return false;
    }
    return strstr(text, "frozen 1") != NULL;
}

/* Return true if "freezer" is in a list of controllers such as "cpu,freezer". */
static bool has_freezer(const char *controllers, size_t len)
{
    static const char name[] = "freezer";
    const char *end = controllers + len;

    for (const char *c = controllers; c < end; c += strcspn(c, ",:") + 1)
        if (strcspn(c, ",:") == strlen(name) && strncmp(c, name, strlen(name)) == 0)
            return true;
    return false;
}

/* Parse one line of /proc/PID/cgroup: "number:controllers:group". */
static bool line_frozen(const char *line)
{
    const char *controllers = strchr(line, ':');
    const char *group = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!group || strlen(group + 1) > GROUP_MAX || strstr(group, "/.."))
        return false; /* a group outside our namespace root has no path here */
    controllers++;
    if (group == controllers)
        return frozen_v2(group + 1);
    return has_freezer(controllers, (size_t)(group - controllers)) &&
           frozen_v1(group + 1);
}

bool trib_frozen(int pid)
{
    char path[40], text[4096], *rest = text, *line;

    snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
    if (!read_file(path, text, sizeof(text)))
        return false;
    while ((line = strsep(&rest, "\n")))
        if (line_frozen(line))
            return true;
    return false;
}
