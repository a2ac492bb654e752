/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Redirects paths of RDMA devices in /sys, configfs and /dev to files in a folder of
 * this process. The files are updated before they are opened.
 */
#include "tests/fabric/fabric_paths.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/time.h"
#include "tests/harness/fake_hub.h"

enum { FRESH_MS = 10 };

static char root[PATH_MAX - 256]; /* "": there is no fabric */
static _Atomic uint64_t written_at;

void fabric_paths_begin(const char *fabric)
{
    snprintf(root, sizeof(root), "%s.%d", fabric, (int)getpid());
    (void)mkdir(root, 0755);
}

static bool is_of_device(const char *path)
{
    static const char *const folders[] = {"/sys/class/infiniband", "/sys/class/net/fab",
                                          "/sys/kernel/config/rdma_cm",
                                          "/dev/infiniband"};

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Return the path to use in the place of `path`. */
static const char *redirect(const char *path, char text[PATH_MAX])
{
    const char *pci = "/sys/devices/pci";

    if (!root[0] || !path)
        return path;
    if (strncmp(path, pci, strlen(pci)) == 0) { /* this host has others, too */
        snprintf(text, PATH_MAX, "%s%s", root, path);
        return NEXT(access)(text, F_OK) == 0 ? text : path;
    }
    if (!is_of_device(path))
        return path;
    if (trib_now_ns() - written_at > FRESH_MS * UINT64_C(1000000)) {
        (void)fake_verbs_sysfs(root, fake_host());
        written_at = trib_now_ns();
    }
    snprintf(text, PATH_MAX, "%s%s", root, path);
    return text;
}

DIR *opendir(const char *path)
{
    char text[PATH_MAX];

    return NEXT(opendir)(redirect(path, text));
}

int scandir(const char *path, struct dirent ***list,
            int (*wanted)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **))
{
    char text[PATH_MAX];

    return NEXT(scandir)(redirect(path, text), list, wanted, order);
}

FILE *fopen(const char *path, const char *mode)
{
    char text[PATH_MAX];

    return NEXT(fopen)(redirect(path, text), mode);
}

int open(const char *path, int flags, ...)
{
    char text[PATH_MAX];
    va_list args;

    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return NEXT(open)(redirect(path, text), flags, mode);
}

/* The names of the same functions where off_t was asked to be long. */
#ifdef __USE_LARGEFILE64
int open64(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open(path, flags, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}
#endif

int access(const char *path, int mode)
{
    char text[PATH_MAX];

    return NEXT(access)(redirect(path, text), mode);
}

ssize_t readlink(const char *path, char *out, size_t bytes)
{
    char text[PATH_MAX];

    return NEXT(readlink)(redirect(path, text), out, bytes);
}

/* Remove the folder from the resolved path. */
char *realpath(const char *path, char *out)
{
    char text[PATH_MAX];
    const char *at = redirect(path, text);
    char *found = NEXT(realpath)(at, out);

    if (found && at == text && strncmp(found, root, strlen(root)) == 0)
        memmove(found, found + strlen(root), strlen(found + strlen(root)) + 1);
    return found;
}
