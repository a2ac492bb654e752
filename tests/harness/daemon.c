/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/daemon.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build-config.h"
#include "tests/harness/tribtest.h"

enum { PORTS_FROM = 20000, PORTS = 12000, TRIES = 5, KEY_BYTES = 32 };

#if HAVE_SODIUM
#define AUTH "key"
#else
#define AUTH "none"
#endif

static bool write_key(const char *path)
{
    unsigned char key[KEY_BYTES];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    if (fd < 0)
        return false;
    bool well = getrandom(key, sizeof(key), 0) == (ssize_t)sizeof(key) &&
                write(fd, key, sizeof(key)) == (ssize_t)sizeof(key);
    close(fd);
    return well;
}

bool daemon_folder(char folder[DAEMON_PATH - 40])
{
    const char *tmp = getenv("TMPDIR");
    char key[DAEMON_PATH];

    snprintf(folder, DAEMON_PATH - 40, "%.300s/tribd.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return false;
    snprintf(key, sizeof(key), "%s/key", folder);
    return write_key(key) && setenv("TRIB_SERVICE_AUTH", AUTH, 1) == 0 &&
           setenv("TRIB_SERVICE_KEY", key, 1) == 0;
}

void daemon_remove(const char *folder)
{
    DIR *dir = opendir(folder);

    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static int connected(int port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval most = {.tv_sec = 5};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    close(fd);
    return -1;
}

static void draw_port(struct daemon_process *d)
{
    uint16_t drawn = 0;

    if (getrandom(&drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn))
        drawn = (uint16_t)getpid();
    d->port = PORTS_FROM + drawn % PORTS;
}

static void say_where(const struct daemon_process *d)
{
    char text[DAEMON_PATH];

    snprintf(text, sizeof(text), "127.0.0.1:%d", d->port);
    setenv("TRIBD_LISTEN", text, 1);
    snprintf(text, sizeof(text), "127.0.0.1:%d", d->port + 1);
    setenv("TRIBD_HTTP", text, 1);
    snprintf(text, sizeof(text), "%d", d->threads ? d->threads : 1);
    setenv("TRIBD_THREADS", text, 1);
    setenv("TRIBD_AUTH", AUTH, 1);
    setenv("TRIBD_KEY", getenv("TRIB_SERVICE_KEY"), 1);
    setenv("TRIBD_TRANSPORTS", "auto,shm,tcp,verbs,ucx",
           1); /* an operator has to request the last one */
}

static void become(const struct daemon_process *d)
{
    const char *build = getenv("abs_top_builddir");
    char program[DAEMON_PATH];
    int out = open(d->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(program, sizeof(program), "%s/agg/daemon/tribd", build ? build : "build");
    say_where(d);
    alarm(0);
    if (out >= 0 && dup2(out, 1) == 1 && dup2(out, 2) == 2)
        execl(program, "tribd", (char *)NULL);
    fprintf(stderr, "%s: %m\n", program);
    _exit(1);
}

bool daemon_start(struct daemon_process *d)
{
    if (!d->port)
        draw_port(d);
    snprintf(d->log, sizeof(d->log), "%s/%d.log", d->folder, d->port);
    unlink(d->log);
    d->stopped = false;
    fflush(NULL);
    d->pid = fork();
    if (d->pid == 0)
        become(d);
    return d->pid > 0;
}

bool daemon_said(const struct daemon_process *d, const char *words)
{
    char said[4096] = "";
    int fd = open(d->log, O_RDONLY);

    if (fd >= 0) {
        ssize_t n = read(fd, said, sizeof(said) - 1);
        said[n > 0 ? n : 0] = 0;
        close(fd);
    }
    return strstr(said, words) != NULL;
}

bool daemon_up(struct daemon_process *d)
{
    int status;

    if (daemon_said(d, "listening at"))
        return true;
    if (daemon_ended(d, &status) && d->tries++ < TRIES) {
        d->port = 0;
        daemon_start(d);
    }
    return false;
}

void daemon_signal(struct daemon_process *d, int number)
{
    if (d->pid <= 0)
        return;
    kill(d->pid, number);
    if (number == SIGSTOP || number == SIGCONT)
        d->stopped = number == SIGSTOP;
}

bool daemon_ended(struct daemon_process *d, int *wait_status_out)
{
    const pid_t ended = d->pid <= 0 ? 0 : waitpid(d->pid, wait_status_out, WNOHANG);

    if (ended == 0)
        return false;
    if (ended < 0)
        *wait_status_out = -1;
    d->pid = 0;
    return true;
}

bool daemon_empty(const struct daemon_process *d)
{
    static const char ask[] = "GET /status HTTP/1.0\r\n\r\n";
    char said[1 << 15];
    size_t n = 0;
    int fd = connected(d->port + 1);

    if (fd < 0)
        return false;
    if (send(fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(ask) - 1)
        for (ssize_t got; (got = recv(fd, said + n, sizeof(said) - 1 - n, 0)) > 0;)
            n += (size_t)got;
    close(fd);
    said[n] = 0;
    return strstr(said, "\"held\":{\"slots\":0,\"jobs\":0,\"queued\":0,") &&
           strstr(said, "\"jobs\":[]");
}

void daemon_show(const struct daemon_process *d)
{
    char line[512];
    FILE *f = fopen(d->log, "r");

    while (f && fgets(line, sizeof(line), f))
        fprintf(stderr, "#   tribd %d: %s", d->port, line);
    if (f)
        fclose(f);
}

bool daemon_run(struct daemon_process *d)
{
    bool started = daemon_start(d);

    for (int looks = 0; started && !daemon_up(d); looks++) {
        if (daemon_said(d, "no HTTP server"))
            return false;
        started = looks < 6000 && d->pid > 0; /* it may have ended each time */
        usleep(10000);
    }
    if (!started) {
        daemon_show(d);
        abort();
    }
    return true;
}

void daemon_need(struct daemon_process *d)
{
    assert_true(daemon_folder(d->folder));
    if (daemon_run(d))
        return;
    daemon_end(d);
    tribtest_skip("built without libmicrohttpd");
}

void daemon_end(struct daemon_process *d)
{
    int status;

    daemon_signal(d, SIGTERM);
    while (!daemon_ended(d, &status))
        usleep(10000);
    daemon_remove(d->folder);
}
