/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMAND_BYTES = 512 };

struct hosts {
    int n;
    pid_t switch_pid; /* holds the switch's network namespace */
    pid_t *pids; /* [n] processes that hold the hosts' namespaces */
};

void hosts_address(int host, char *text, size_t bytes)
{
    snprintf(text, bytes, "10.77.0.%d", host + 1);
}

const char *hosts_root(void)
{
    return "10.77.0.1:7000";
}

static int say(const char *what)
{
    fprintf(stderr, "trib-train: hosts: %s: %s\n", what, strerror(errno));
    return -1;
}

/* --- commands in a network namespace --- */

static int enter_net(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const int bad = fd < 0 || setns(fd, CLONE_NEWNET) != 0;

    if (fd >= 0)
        close(fd);
    return bad ? -1 : 0;
}

/* Run a shell command in the network namespace of a process. */
__attribute__((format(printf, 2, 3))) static int run_at(pid_t pid, const char *format,
                                                        ...)
{
    char command[COMMAND_BYTES];
    va_list list;
    int how = -1;

    va_start(list, format);
    vsnprintf(command, sizeof(command), format, list);
    va_end(list);

    const pid_t child = fork();
    if (child == 0) {
        if (enter_net(pid) != 0)
            _exit(126);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &how, 0) != child)
        return say(command);
    if (how == 0)
        return 0;
    fprintf(stderr, "trib-train: hosts: command failed: %s\n", command);
    return -1;
}

/* --- processes that hold namespaces --- */

/* Use another boot id, so that ranks do not detect that the hosts share a kernel. */
static int other_boot_id(void)
{
    static const char path[] = "/dev/shm/boot_id";
    uint8_t r[16];
    FILE *file = fopen(path, "w");

    if (!file || getrandom(r, sizeof(r), 0) != sizeof(r))
        return -1;
    for (int i = 0; i < 16; i++)
        fprintf(file, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", r[i]);
    fputc('\n', file);
    return fclose(file) == 0 && mount(path, "/proc/sys/kernel/random/boot_id", NULL,
                                      MS_BIND, NULL) == 0
               ? 0
               : -1;
}

static int be_host(int number)
{
    char name[32];

    snprintf(name, sizeof(name), "host%d", number);
    if (unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=256m") != 0 ||
        other_boot_id() != 0 || sethostname(name, strlen(name)) != 0)
        return say(name);
    (void)mount("sysfs", "/sys", "sysfs", 0, NULL); /* optional */
    return 0;
}

/* Start a process that holds a host's namespaces (number -1: the switch's); return its
 * pid. */
static pid_t hold(int number)
{
    int ready[2];
    char byte;
    const pid_t parent = getpid();

    if (pipe2(ready, O_CLOEXEC) != 0)
        return say("pipe");
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent ||
            (number < 0 ? unshare(CLONE_NEWNET) : be_host(number)) != 0 ||
            write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    const ssize_t got = pid > 0 ? read(ready[0], &byte, 1) : -1;
    close(ready[0]);
    return got == 1 ? pid : say("cannot start a host");
}

/* --- links --- */

/* Limit the rate with a burst of one large segment of a virtual link. */
static int shape(pid_t pid, const char *link, const char *rate)
{
    return run_at(
        pid,
        "tc qdisc add dev %s root handle 1: htb default 1 && tc class add dev "
        "%s parent 1: classid 1:1 htb rate %s burst 64kb cburst 64kb quantum "
        "60000",
        link, link, rate);
}

static int join(struct hosts *h, int i, const char *rate)
{
    char port[32];

    snprintf(port, sizeof(port), "port%d", i);
    if (run_at(h->switch_pid,
               "ip link add %s type veth peer name eth0 netns %d && ip link set %s "
               "master switch up",
               port, (int)h->pids[i], port) != 0 ||
        run_at(
            h->pids[i],
            "ip link set lo up && ip link set eth0 up && ip address add 10.77.0.%d/24 "
            "dev eth0",
            i + 1) != 0)
        return -1;
    return shape(h->switch_pid, port, rate) != 0 || shape(h->pids[i], "eth0", rate) != 0
               ? -1
               : 0;
}

static int make_key(void)
{
    uint8_t random[32];
    char text[65];

    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return say("cannot draw a secret");
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    return setenv("TRIB_KEY", text, 0); /* keeps a key that is already set */
}

bool hosts_refused(char *why, size_t bytes)
{
    static const char *const tools[] = {"ip", "tc"};
    char command[64];

    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof(command), "command -v %s >/dev/null", tools[i]);
        if (system(command) != 0) {
            snprintf(why, bytes, "%s is not installed (package iproute2)", tools[i]);
            return true;
        }
    }
    const pid_t child = fork();
    int how = -1;

    if (child == 0)
        _exit(unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS) != 0);
    if (child > 0 && waitpid(child, &how, 0) == child && how == 0)
        return false;
    snprintf(why, bytes, "no permission to create network namespaces: run as root");
    return true;
}

int hosts_open(int n, const char *rate, struct hosts **hosts_out)
{
    struct hosts *h = calloc(1, sizeof(*h));
    int bad = !h || make_key() != 0;

    *hosts_out = h;
    if (h)
        h->pids = calloc((size_t)n, sizeof(*h->pids));
    bad |= !h || !h->pids;
    if (!bad)
        bad =
            (h->switch_pid = hold(-1)) < 0 ||
            run_at(h->switch_pid,
                   "ip link add switch type bridge && ip link set switch up; echo 0 "
                   "2>/dev/null >/proc/sys/net/bridge/bridge-nf-call-iptables || :") !=
                0;
    for (int i = 0; i < n && !bad; i++) {
        h->pids[i] = hold(i);
        h->n++;
        bad = h->pids[i] < 0 || join(h, i, rate) != 0;
    }
    if (!bad)
        return 0;
    hosts_close(h);
    *hosts_out = NULL;
    return -1;
}

int hosts_enter(const struct hosts *hosts, int host)
{
    static const char *const kinds[] = {"net", "uts", "ipc", "mnt"};
    char folder[4096], path[64];
    int fds[4];

    if (!getcwd(folder, sizeof(folder)))
        return say("cannot read the working directory");
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)hosts->pids[host],
                 kinds[i]);
        fds[i] = open(path, O_RDONLY | O_CLOEXEC);
    }
    for (int i = 0; i < 4; i++) {
        if (fds[i] < 0 || setns(fds[i], 0) != 0)
            return say("cannot enter a host");
        close(fds[i]);
    }
    /* setns has changed the working directory to / */
    return chdir(folder) == 0 ? 0 : say(folder);
}

static void end(pid_t pid)
{
    if (pid > 0 && kill(pid, SIGKILL) == 0)
        waitpid(pid, NULL, 0);
}

void hosts_close(struct hosts *hosts)
{
    if (!hosts)
        return;
    for (int i = 0; i < hosts->n; i++)
        end(hosts->pids[i]);
    end(hosts->switch_pid);
    free(hosts->pids);
    free(hosts);
}

/* --- an isolated network for this process --- */

static bool loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;

    if (fd >= 0)
        close(fd);
    return up;
}

bool hosts_be_alone(void)
{
    const int before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

    bool alone = false;

    if (before >= 0 && unshare(CLONE_NEWNET) == 0) {
        alone = loopback_up();
        if (!alone && setns(before, CLONE_NEWNET) != 0)
            (void)say("cannot return to the network of the host");
    }
    if (before >= 0)
        close(before);
    return alone;
}
