/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/local_tribd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 5, KEY_BYTES = 32, PAUSE_MS = 10, START_S = 20, STOP_S = 15 };

static void pause_once(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
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

static void remove_files(struct tool_tribd *d)
{
    if (d->folder[0] == '\0')
        return;
    if (d->made_key)
        unlink(d->key);
    unlink(d->log);
    rmdir(d->folder);
    d->folder[0] = '\0';
}

static bool make_files(struct tool_tribd *d, const char *key)
{
    snprintf(d->folder, sizeof(d->folder), "/tmp/%.40s-XXXXXX", d->tool);
    if (mkdtemp(d->folder) == NULL) {
        fprintf(stderr, "%s: cannot create the folder %s: %s.\n", d->tool, d->folder,
                strerror(errno));
        d->folder[0] = '\0';
        return false;
    }
    snprintf(d->log, sizeof(d->log), "%s/log", d->folder);
    d->made_key = key == NULL;
    if (!d->made_key) {
        snprintf(d->key, sizeof(d->key), "%s", key);
        return true;
    }
    snprintf(d->key, sizeof(d->key), "%s/key", d->folder);
    if (write_key(d->key))
        return true;
    fprintf(stderr, "%s: cannot write a key to %s: %s.\n", d->tool, d->folder,
            strerror(errno));
    remove_files(d);
    return false;
}

/* Read the end of the log, enough for the last messages. */
static void read_log(const struct tool_tribd *d, char *text, size_t bytes)
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

static void show_log(const struct tool_tribd *d)
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

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

bool tool_tribd_find(char *path, size_t bytes)
{
    /* Relative to this program's folder: when installed, and when built, where libtool
     * may put this program one folder deeper. */
    static const char *const places[] = {
        "tribd", "../sbin/tribd", "../agg/daemon/tribd", "../../agg/daemon/tribd",
        "../../../agg/daemon/tribd"};
    const ssize_t n = readlink("/proc/self/exe", path, bytes - 1);

    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(*places); i++) {
        const size_t room = bytes - (size_t)(slash + 1 - path);
        if (snprintf(slash + 1, room, "%s", places[i]) < (int)room && is_program(path))
            return true;
    }
    return false;
}

/* Execute tribd; never returns. */
static void be_tribd(const struct tool_tribd *d, const struct tool_tribd_desc *desc,
                     const char *path, pid_t parent)
{
    int log = open(d->log, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    int null = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || log < 0 || null < 0)
        _exit(127);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    if (desc->enter != NULL && desc->enter(desc->arg) != 0)
        _exit(127);
    setenv("TRIBD_LISTEN", d->address, 1);
    setenv("TRIBD_HTTP", "", 1);
    setenv("TRIBD_KEY", d->key, 1);
    setenv("TRIBD_LOG", "info", 1);
    if (desc->auth != NULL)
        setenv("TRIBD_AUTH", desc->auth, 1);
    if (desc->mask != NULL)
        sigprocmask(SIG_SETMASK, desc->mask, NULL);
    execlp(path, path, (char *)NULL);
    fprintf(stderr, "cannot start %s: %s%s%s\n", path, strerror(errno),
            desc->cure != NULL ? "; " : "", desc->cure != NULL ? desc->cure : "");
    _exit(127);
}

static bool has_ended(struct tool_tribd *d, int *how)
{
    pid_t ended = d->pid == 0 ? 0 : waitpid(d->pid, how, WNOHANG);

    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    if (ended < 0) { /* the exit status is unknown, which counts as a failure */
        fprintf(stderr, "%s: cannot wait for tribd: %s.\n", d->tool, strerror(errno));
        *how = W_EXITCODE(1, 0);
    }
    d->pid = 0;
    return true;
}

static bool comes_up(struct tool_tribd *d)
{
    char text[1024];
    int how;

    for (int ms = 0; ms < START_S * 1000 && !has_ended(d, &how); ms += PAUSE_MS) {
        read_log(d, text, sizeof(text));
        if (strstr(text, "listening at") != NULL)
            return true;
        pause_once();
    }
    return false;
}

/* Print why tribd did not start: its last messages. */
static void say_cause(const struct tool_tribd *d)
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
    fprintf(stderr, "%s: cannot start a local tribd: ", d->tool);
    if (line[0] != '\0')
        fprintf(stderr, "%s.\n", line);
    else if (d->pid == 0)
        fputs("it exited without a message.\n", stderr);
    else
        fprintf(stderr, "no output for %d s.\n", START_S);
}

static bool fork_tribd(struct tool_tribd *d, const struct tool_tribd_desc *desc,
                       const char *path)
{
    const pid_t parent = getpid();

    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        be_tribd(d, desc, path, parent);
    if (pid < 0)
        fprintf(stderr, "%s: cannot start a local tribd: cannot fork: %s.\n", d->tool,
                strerror(errno));
    d->pid = pid > 0 ? pid : 0;
    return pid > 0;
}

bool tool_tribd_start(const struct tool_tribd_desc *desc, struct tool_tribd *out)
{
    char path[4096], text[1024];
    bool forked = true;

    *out = (struct tool_tribd){.tool = desc->tool};
    if (!make_files(out, desc->key))
        return false;
    if (desc->program != NULL || !tool_tribd_find(path, sizeof(path)))
        snprintf(path, sizeof(path), "%s",
                 desc->program != NULL ? desc->program : "tribd");
    for (int i = 0; i < TRIES && forked; i++) {
        if (desc->address != NULL)
            snprintf(out->address, sizeof(out->address), "%s", desc->address);
        else
            snprintf(out->address, sizeof(out->address), "127.0.0.1:%d", free_port());
        forked = fork_tribd(out, desc, path);
        if (forked && comes_up(out))
            return true;
        read_log(out, text, sizeof(text));
        if (desc->address != NULL || strstr(text, "cannot listen") == NULL)
            break; /* another port would not help */
    }
    if (forked)
        say_cause(out);
    tool_tribd_stop(out);
    return false;
}

bool tool_tribd_ended(struct tool_tribd *d)
{
    int how;

    if (!has_ended(d, &how))
        return false;
    if (WIFSIGNALED(how))
        fprintf(stderr, "%s: tribd was killed by signal %d (%s); its last messages:\n",
                d->tool, WTERMSIG(how), strsignal(WTERMSIG(how)));
    else
        fprintf(stderr, "%s: tribd exited with status %d; its last messages:\n",
                d->tool, WEXITSTATUS(how));
    show_log(d);
    return true;
}

void tool_tribd_stop(struct tool_tribd *d)
{
    int how;

    if (d->pid > 0)
        kill(d->pid, SIGTERM);
    for (int ms = 0; d->pid > 0 && !has_ended(d, &how); ms += PAUSE_MS) {
        if (ms >= STOP_S * 1000) {
            fprintf(stderr, "%s: tribd did not exit within %d s of SIGTERM: killed.\n",
                    d->tool, STOP_S);
            kill(d->pid, SIGKILL);
            waitpid(d->pid, &how, 0);
            d->pid = 0;
        }
        pause_once();
    }
    remove_files(d);
}
