/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start a tribd on loopback for the jobs of one run. Its key is in a private folder,
 * and its port was free a moment ago. Its output goes to a file, whose end is printed
 * if tribd fails.
 */
#include "perf/agg/agg.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 5, KEY_BYTES = 32 };

#define START_SECONDS 20
#define STOP_SECONDS 15

static void pause_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

/* --- files --- */

static bool write_key(const char *path)
{
    unsigned char key[KEY_BYTES];
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    if (fd < 0)
        return false;
    bool done = getrandom(key, sizeof(key), 0) == (ssize_t)sizeof(key) &&
                write(fd, key, sizeof(key)) == (ssize_t)sizeof(key);
    return close(fd) == 0 && done;
}

static void remove_files(struct agg_daemon *d)
{
    if (d->folder[0] == '\0')
        return;
    unlink(d->key);
    unlink(d->log);
    rmdir(d->folder);
    d->folder[0] = '\0';
}

static bool make_files(struct agg_daemon *d)
{
    snprintf(d->folder, sizeof(d->folder), "/tmp/trib-perf-XXXXXX");
    if (mkdtemp(d->folder) == NULL) {
        fprintf(stderr, "trib-perf: cannot create the folder %s: %s.\n", d->folder,
                strerror(errno));
        d->folder[0] = '\0';
        return false;
    }
    snprintf(d->key, sizeof(d->key), "%s/key", d->folder);
    snprintf(d->log, sizeof(d->log), "%s/log", d->folder);
    if (write_key(d->key))
        return true;
    fprintf(stderr, "trib-perf: cannot write a key to %s: %s.\n", d->folder,
            strerror(errno));
    remove_files(d);
    return false;
}

/* Read the end of the log, enough for the last messages. */
static void read_log(const struct agg_daemon *d, char *text, size_t bytes)
{
    FILE *f = fopen(d->log, "r");

    text[0] = '\0';
    if (f == NULL)
        return;
    if (fseek(f, -(long)(bytes - 1), SEEK_END) != 0)
        rewind(f);
    text[fread(text, 1, bytes - 1, f)] = '\0';
    fclose(f);
}

static void show_log(const struct agg_daemon *d)
{
    char text[1024];

    read_log(d, text, sizeof(text));
    if (text[0] != '\0')
        fprintf(stderr, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
}

/* --- process --- */

/* Return a port without a listener; 0: none. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return 0;
    bool bound = bind(fd, (struct sockaddr *)&at, length) == 0 &&
                 getsockname(fd, (struct sockaddr *)&at, &length) == 0;
    close(fd);
    return bound ? ntohs(at.sin_port) : 0;
}

/* Relative to this program's folder: when installed, and when built, where libtool may
 * put this program one folder deeper. */
static const char *const places[] = {"tribd", "../agg/daemon/tribd",
                                     "../../agg/daemon/tribd"};

/* Find the tribd installed or built with this program, else use PATH. */
static void find_program(const char *asked, char *path, size_t bytes)
{
    ssize_t n = readlink("/proc/self/exe", path, bytes - 1);

    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    for (size_t i = 0;
         asked == NULL && slash != NULL && i < sizeof(places) / sizeof(*places); i++) {
        const size_t room = bytes - (size_t)(slash + 1 - path);
        struct stat st;
        if (snprintf(slash + 1, room, "%s", places[i]) < (int)room &&
            stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
            return;
    }
    snprintf(path, bytes, "%s", asked != NULL ? asked : "tribd");
}

/* Execute tribd; never returns. Settings that this program needs replace the user's;
 * the others, such as TRIBD_THREADS, are inherited. */
static void be_tribd(const struct agg_daemon *d, const char *path, const sigset_t *mask,
                     pid_t parent)
{
    int log = open(d->log, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || log < 0 || null < 0)
        _exit(127);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    setenv("TRIBD_LISTEN", d->address, 1);
    setenv("TRIBD_HTTP", "", 1);
    setenv("TRIBD_AUTH", "key", 1);
    setenv("TRIBD_KEY", d->key, 1);
    setenv("TRIBD_LOG", "info", 1);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execlp(path, path, (char *)NULL);
    fprintf(stderr,
            "cannot start %s: %s; set its path with --tribd, or use a running "
            "service with --service\n",
            path, strerror(errno));
    _exit(127);
}

static bool has_ended(struct agg_daemon *d, int *how)
{
    pid_t ended = d->pid == 0 ? 0 : waitpid(d->pid, how, WNOHANG);

    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    if (ended < 0) { /* the exit status is unknown, which counts as a failure */
        fprintf(stderr, "trib-perf: cannot wait for tribd: %s.\n", strerror(errno));
        *how = W_EXITCODE(1, 0);
    }
    d->pid = 0;
    return true;
}

static bool comes_up(struct agg_daemon *d)
{
    double until = perf_now() + START_SECONDS;
    char text[1024];
    int how;

    while (perf_now() < until && !has_ended(d, &how)) {
        read_log(d, text, sizeof(text));
        if (strstr(text, "listening at") != NULL)
            return true;
        pause_ms(10);
    }
    return false;
}

/* Print why tribd did not start: its last messages. */
static void say_cause(const struct agg_daemon *d)
{
    char text[1024];

    read_log(d, text, sizeof(text));
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    const char *line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    if (strncmp(line, "tribd: ", 7) == 0)
        line += 7;
    if (line[0] != '\0')
        fprintf(stderr, "trib-perf: cannot start a local tribd: %s.\n", line);
    else if (d->pid == 0)
        fputs("trib-perf: cannot start a local tribd: it exited without a message.\n",
              stderr);
    else
        fprintf(stderr, "trib-perf: cannot start a local tribd: no output for %d s.\n",
                START_SECONDS);
}

bool agg_daemon_start(const char *program, const sigset_t *mask, struct agg_daemon *out)
{
    char path[4096];
    pid_t parent = getpid();

    memset(out, 0, sizeof(*out));
    if (!make_files(out))
        return false;
    find_program(program, path, sizeof(path));
    for (int i = 0; i < TRIES; i++) {
        snprintf(out->address, sizeof(out->address), "127.0.0.1:%d", free_port());
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            be_tribd(out, path, mask, parent);
        if (pid < 0) {
            fprintf(stderr, "trib-perf: cannot start a local tribd: cannot fork: %s.\n",
                    strerror(errno));
            agg_daemon_stop(out);
            return false;
        }
        out->pid = pid;
        if (comes_up(out))
            return true;
        char text[1024];
        read_log(out, text, sizeof(text));
        if (strstr(text, "cannot listen") == NULL)
            break; /* another port would not help */
    }
    say_cause(out);
    agg_daemon_stop(out);
    return false;
}

bool agg_daemon_look(struct agg_daemon *d)
{
    int how;

    if (!has_ended(d, &how))
        return false;
    if (WIFSIGNALED(how))
        fprintf(stderr,
                "trib-perf: tribd was killed by signal %d (%s); its last messages:\n",
                WTERMSIG(how), strsignal(WTERMSIG(how)));
    else
        fprintf(stderr, "trib-perf: tribd exited with status %d; its last messages:\n",
                WEXITSTATUS(how));
    show_log(d);
    return true;
}

void agg_daemon_stop(struct agg_daemon *d)
{
    double until = perf_now() + STOP_SECONDS;
    int how;

    if (d->pid > 0)
        kill(d->pid, SIGTERM);
    while (d->pid > 0 && !has_ended(d, &how)) {
        if (perf_now() > until) {
            fprintf(stderr,
                    "trib-perf: tribd did not exit within %d s of SIGTERM: killed.\n",
                    STOP_SECONDS);
            kill(d->pid, SIGKILL);
            waitpid(d->pid, &how, 0);
            d->pid = 0;
        }
        pause_ms(10);
    }
    remove_files(d);
}

double agg_cpu_seconds(pid_t pid)
{
    char path[64], text[1024];
    unsigned long user, system;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return (double)NAN;
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    /* Fields 14 and 15 follow the name in brackets, which may have any characters. */
    const char *behind = strrchr(text, ')');
    if (behind == NULL ||
        sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
               &user, &system) != 2)
        return (double)NAN;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}
