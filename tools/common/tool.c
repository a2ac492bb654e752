/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/tool_table.h"

void tool_begin(void)
{
    int fd;

    /* Each open takes the lowest free descriptor; stop once it is above the three. Fall
     * back to the root folder, which cannot be written either, if /dev/null is
     * missing. */
    do {
        fd = open("/dev/null", O_RDWR);
        if (fd < 0)
            fd = open("/", O_PATH);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
    signal(SIGXFSZ, SIG_IGN);
}

void tool_signals(void)
{
    sigset_t none;

    (void)signal(SIGCHLD, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void tool_open_files(struct rlimit *before_out)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        (void)setrlimit(RLIMIT_NOFILE, &raised);
    }
    if (before_out)
        *before_out = limit;
}

bool tool_flushed(void)
{
    errno = 0;
    const bool flushed = fflush(stdout) == 0 && !ferror(stdout);
    tool_fold_end();
    return flushed;
}

int tool_end(const char *tool, int code)
{
    if (tool_flushed())
        return code;
    /* A write that failed earlier left no errno. */
    fprintf(stderr, "%s: cannot write to standard output%s%s\n", tool,
            errno ? ": " : "", errno ? strerror(errno) : "");
    return code ? code : 1;
}
