/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stand in for systemd in tests of tribd.
 *
 *    fake_systemd hear PATH
 *        print what services send to the socket at PATH, line by line
 *    fake_systemd halt PID server|workers FILE
 *        stop one thread of PID, or all others, until FILE exists, as if it hung
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 6000 };

static int hear(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char said[256];
    ssize_t n;

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at))) {
        perror(path);
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((n = recv(fd, said, sizeof(said) - 1, 0)) >= 0)
        printf("%.*s\n", (int)n, said);
    return 0;
}

static int stop(pid_t thread)
{
    int status;

    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) ||
        ptrace(PTRACE_INTERRUPT, thread, NULL, NULL))
        return -1;
    return waitpid(thread, &status, __WALL) == thread ? 0 : -1;
}

static int halt(pid_t pid, int others, const char *file)
{
    char path[64];
    int stopped = 0;
    struct dirent *e;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    while (threads && (e = readdir(threads))) {
        const pid_t thread = (pid_t)atoi(e->d_name);
        if (thread > 0 && (thread != pid) == others && stop(thread) == 0)
            stopped++;
    }
    if (threads)
        closedir(threads);
    if (!stopped) {
        fprintf(stderr, "no thread could be stopped: %s\n", strerror(errno));
        return 77;
    }
    printf("%d stopped\n", stopped);
    fflush(stdout);
    for (int i = 0; i < TRIES && access(file, F_OK) != 0; i++)
        usleep(10000);
    return 0; /* the threads continue when this process exits */
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "hear") == 0)
        return hear(argv[2]);
    if (argc == 5 && strcmp(argv[1], "halt") == 0)
        return halt((pid_t)atoi(argv[2]), strcmp(argv[3], "workers") == 0, argv[4]);
    fprintf(stderr, "usage: fake_systemd hear PATH | halt PID server|workers FILE\n");
    return 1;
}
