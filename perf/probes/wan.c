/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wan - emulate a long link between two network namespaces.
 *
 *     wan SPACE SPACE ROUND_TRIP_MS MBITS QUEUE_BYTES
 *
 * SPACE is, for example, /proc/4711/ns/net. The program creates a TAP device eth0 in
 * each and forwards frames between them. Each direction has MBITS Mbit/s and a delay of
 * half ROUND_TRIP_MS. Frames that exceed QUEUE_BYTES in the queue are dropped. Large
 * segments pass unsplit, but take the time of the headers of all their frames.
 *
 * Prints "ready" when both devices exist. Ends with its parent.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NS UINT64_C(1000000000)

enum {
    FRAME_MAX = 70000, /* a segment with the header that TAP prepends */
    SEGMENT = 1448, /* payload of a frame at an MTU of 1500 */
    HEADERS = 90, /* other bytes of a frame, with preamble and gap */
    BURST = 64, /* frames read from a device at once */
    SEND_BUFFER = 64 << 20,
};

struct held {
    struct held *next;
    uint64_t due_ns; /* arrival time */
    size_t n;
    uint8_t bytes[];
};

struct way {
    int from, to; /* file descriptors of the devices */
    uint64_t free_ns; /* when the link has sent all accepted frames */
    struct held *first, **last;
};

struct wan {
    uint64_t delay_ns;
    double ns_per_byte;
    uint64_t queue_ns; /* transmission time of a full queue */
    struct way way[2];
};

static void die(const char *what)
{
    fprintf(stderr, "wan: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static int open_device(const char *space)
{
    const int mine = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    const int theirs = open(space, O_RDONLY | O_CLOEXEC);
    struct ifreq r = {.ifr_name = "eth0"};

    if (mine < 0 || theirs < 0 || setns(theirs, CLONE_NEWNET) != 0)
        die(space);
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    r.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &r) != 0 ||
        ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0 ||
        ioctl(fd, TUNSETSNDBUF, &(int){SEND_BUFFER}) != 0)
        die("/dev/net/tun");
    if (setns(mine, CLONE_NEWNET) != 0)
        die("/proc/self/ns/net");
    close(mine);
    close(theirs);
    return fd;
}

/* Read frames from the device; drop those that do not fit in the queue. */
static void take(const struct wan *wan, struct way *w, uint64_t now)
{
    static uint8_t bytes[FRAME_MAX];

    for (int i = 0; i < BURST; i++) {
        const ssize_t n = read(w->from, bytes, sizeof(bytes));
        if (n <= 0)
            return;
        const size_t frames = ((size_t)n + SEGMENT - 1) / SEGMENT;
        const size_t wire = (size_t)n + frames * HEADERS;
        if (w->free_ns < now)
            w->free_ns = now;
        if (w->free_ns - now > wan->queue_ns)
            continue;
        struct held *h = malloc(sizeof(*h) + (size_t)n);
        if (!h)
            die("a frame");
        w->free_ns += (uint64_t)((double)wire * wan->ns_per_byte);
        *h = (struct held){.due_ns = w->free_ns + wan->delay_ns, .n = (size_t)n};
        memcpy(h->bytes, bytes, h->n);
        *w->last = h;
        w->last = &h->next;
    }
}

/* Write the frames that have arrived. Return the arrival time of the next one. */
static uint64_t give(struct way *w, uint64_t now)
{
    struct held *h;

    while ((h = w->first) && h->due_ns <= now) {
        if (write(w->to, h->bytes, h->n) < 0 && errno == EAGAIN)
            return now + NS / 10000;
        w->first = h->next;
        if (!w->first)
            w->last = &w->first;
        free(h);
    }
    return h ? h->due_ns : now + NS;
}

int main(int argc, char **argv)
{
    struct wan wan;

    if (argc != 6 || atof(argv[4]) <= 0) {
        fprintf(stderr, "usage: wan SPACE SPACE ROUND_TRIP_MS MBITS QUEUE_BYTES\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int device[2] = {open_device(argv[1]), open_device(argv[2])};
    wan.delay_ns = (uint64_t)(atof(argv[3]) / 2 * 1e6);
    wan.ns_per_byte = 8e3 / atof(argv[4]);
    wan.queue_ns = (uint64_t)(atof(argv[5]) * wan.ns_per_byte);
    for (int i = 0; i < 2; i++) {
        wan.way[i] = (struct way){.from = device[i], .to = device[1 - i]};
        wan.way[i].last = &wan.way[i].first;
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        uint64_t next = UINT64_MAX;
        for (int i = 0; i < 2; i++) {
            take(&wan, &wan.way[i], now_ns());
            const uint64_t due = give(&wan.way[i], now_ns());
            next = due < next ? due : next;
        }
        struct pollfd ready[2] = {{device[0], POLLIN, 0}, {device[1], POLLIN, 0}};
        const uint64_t now = now_ns(), left = next > now ? next - now : 0;
        const struct timespec wait = {(time_t)(left / NS), (long)(left % NS)};
        (void)ppoll(ready, 2, &wait, NULL);
    }
}
