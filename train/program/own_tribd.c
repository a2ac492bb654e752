/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/own_tribd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tributary.h>

enum {
    PATH_BYTES = 4096,
    KEY_BYTES = 32,
    TRIES = 5, /* attempts, because a port of loopback may be in use */
    PORTS_FROM = 20000,
    PORTS = 12000,
    HOST_PORT = 4700,
    PAUSE_MS = 5,
    WAIT_MS = 20000,
};

struct own_tribd {
    pid_t pid, parent;
    bool open; /* without authentication */
    bool made_key; /* TRIB_SERVICE_KEY is the key in the folder */
    char program[PATH_BYTES];
    char folder[64]; /* of the log, and of a generated key */
    char key[PATH_BYTES]; /* path of the key file */
    char address[64];
};

static int say(const char *what)
{
    fprintf(stderr, "trib-train: tribd: %s: %s\n", what, strerror(errno));
    return -1;
}

/* --- the program --- */

static bool runs(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* Look for tribd in the folder of this program, in its installed location, and in a
 * build tree, where libtool adds a folder. */
static bool find_beside(char program[PATH_BYTES])
{
    static const char *const places[] = {
        "tribd", "../sbin/tribd", "../../agg/daemon/tribd",
        "../../../agg/daemon/tribd"};
    char self[PATH_BYTES];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0)
        return false;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if ((size_t)snprintf(program, PATH_BYTES, "%s/%s", self, places[i]) <
                PATH_BYTES &&
            runs(program))
            return true;
    return false;
}

bool own_tribd_missing(char *why, size_t bytes)
{
    char program[PATH_BYTES];

    if (find_beside(program) || system("command -v tribd >/dev/null") == 0)
        return false;
    snprintf(why, bytes, "program tribd not found next to this one or in PATH");
    return true;
}

/* --- its key and its log --- */

struct setting {
    const char *name;
    char *value;
    size_t bytes;
};

static void read_setting(void *arg, const trib_item_t *item)
{
    const struct setting *s = arg;

    if (strcmp(item->name, s->name) == 0 && strcmp(item->origin, "default") != 0)
        snprintf(s->value, s->bytes, "%s", item->value);
}

bool own_tribd_setting(const char *name, char *value, size_t bytes)
{
    struct setting s = {name, value, bytes};

    value[0] = '\0';
    (void)trib_list_each(TRIB_LIST_CONFIG, read_setting, &s);
    return value[0] != '\0';
}

static int make_key(struct own_tribd *d)
{
    unsigned char key[KEY_BYTES];

    if (own_tribd_setting("TRIB_SERVICE_KEY", d->key, sizeof(d->key)))
        return 0;
    snprintf(d->key, sizeof(d->key), "%s/key", d->folder);
    const int fd = open(d->key, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool well = fd >= 0 && getrandom(key, sizeof(key), 0) == KEY_BYTES &&
                      write(fd, key, sizeof(key)) == KEY_BYTES;

    if (fd >= 0)
        close(fd);
    if (!well || setenv("TRIB_SERVICE_KEY", d->key, 1) != 0)
        return say(d->key);
    d->made_key = true;
    return 0;
}

/* Return true if the user has configured authentication or sealing. */
static bool must_prove(void)
{
    static const char *const names[] = {"TRIB_SERVICE_AUTH", "TRIB_SERVICE_KEY",
                                        "TRIB_SERVICE_USER", "TRIB_SEAL"};
    char value[PATH_BYTES];
    bool must = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        must |= own_tribd_setting(names[i], value, sizeof(value));
    return must;
}

static int make_folder(struct own_tribd *d)
{
    snprintf(d->folder, sizeof(d->folder), "/tmp/trib-train.XXXXXX");
    if (mkdtemp(d->folder))
        return d->open ? 0 : make_key(d);
    say(d->folder);
    d->folder[0] = '\0';
    return -1;
}

static void remove_folder(const struct own_tribd *d)
{
    static const char *const names[] = {"key", "log"};
    char path[96];

    if (!d->folder[0])
        return;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", d->folder, names[i]);
        unlink(path);
    }
    rmdir(d->folder);
}

static void read_log(const struct own_tribd *d, char *said, size_t bytes)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/log", d->folder);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, said, bytes - 1);

    said[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* --- the process --- */

static void become(const struct own_tribd *d, const struct hosts *hosts, int host)
{
    char path[96];

    snprintf(path, sizeof(path), "%s/log", d->folder);
    const int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != d->parent || out < 0 || dup2(out, 1) != 1 || dup2(out, 2) != 2 ||
        (hosts && hosts_enter(hosts, host) != 0))
        _exit(1);
    setenv("TRIBD_LISTEN", d->address, 1);
    setenv("TRIBD_HTTP", "", 1);
    setenv("TRIBD_KEY", d->key, 1);
    if (d->open)
        setenv("TRIBD_AUTH", "none", 1);
    execlp(d->program, "tribd", (char *)NULL);
    fprintf(stderr, "%s: %s\n", d->program, strerror(errno));
    _exit(1);
}

static int draw_address(struct own_tribd *d, const struct hosts *hosts, int host)
{
    uint16_t drawn;

    if (hosts) {
        char name[32];

        hosts_address(host, name, sizeof(name));
        snprintf(d->address, sizeof(d->address), "%s:%d", name, HOST_PORT);
        return 0;
    }
    if (getrandom(&drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn))
        return say("cannot draw a port");
    snprintf(d->address, sizeof(d->address), "127.0.0.1:%d",
             PORTS_FROM + drawn % PORTS);
    return 0;
}

/* Wait until tribd listens. False: it has ended, or does not answer. */
static bool wait_until_up(struct own_tribd *d)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    char said[4096];

    for (int i = 0; i < WAIT_MS / PAUSE_MS; i++) {
        read_log(d, said, sizeof(said));
        if (strstr(said, "listening at"))
            return true;
        if (waitpid(d->pid, NULL, WNOHANG) == d->pid) {
            d->pid = 0;
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return false;
}

static int start(struct own_tribd *d, const struct hosts *hosts, int host)
{
    char said[4096];

    for (int i = 0; i < (hosts ? 1 : TRIES); i++) {
        if (draw_address(d, hosts, host) != 0)
            return -1;
        fflush(NULL);
        d->parent = getpid();
        d->pid = fork();
        if (d->pid == 0)
            become(d, hosts, host);
        if (d->pid < 0)
            return say("fork");
        if (wait_until_up(d))
            return 0;
        if (d->pid > 0)
            break;
    }
    read_log(d, said, sizeof(said));
    fprintf(stderr, "trib-train: %s does not start at %s:\n%s", d->program, d->address,
            said);
    return -1;
}

int own_tribd_start(const struct hosts *hosts, int host, bool alone,
                    struct own_tribd **tribd_out)
{
    struct own_tribd *d = calloc(1, sizeof(*d));
    char why[128];

    *tribd_out = NULL;
    if (!d)
        return say("memory");
    if (own_tribd_missing(why, sizeof(why))) {
        fprintf(stderr, "trib-train: %s\n", why);
        own_tribd_end(d);
        return -1;
    }
    d->open = alone && !must_prove();
    if (!find_beside(d->program))
        snprintf(d->program, sizeof(d->program), "tribd"); /* in PATH */
    if (make_folder(d) != 0 || start(d, hosts, host) != 0) {
        own_tribd_end(d);
        return -1;
    }
    *tribd_out = d;
    return 0;
}

const char *own_tribd_address(const struct own_tribd *tribd)
{
    return tribd->address;
}

const char *own_tribd_auth(const struct own_tribd *tribd)
{
    return tribd->open ? "none" : NULL;
}

void own_tribd_end(struct own_tribd *tribd)
{
    if (!tribd)
        return;
    if (tribd->pid > 0 && kill(tribd->pid, SIGTERM) == 0)
        waitpid(tribd->pid, NULL, 0);
    if (tribd->made_key)
        unsetenv("TRIB_SERVICE_KEY");
    remove_folder(tribd);
    free(tribd);
}
