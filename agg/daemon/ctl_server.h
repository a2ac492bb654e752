/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control socket for tribctl: a unix socket that only its owner may open.
 *
 *     client: one line, "drain" or "kick JOB"
 *     server: one line, "ok: …" or "error: …", then closes; the line comes later if the
 *             command takes time
 *
 * Server thread only; nothing here blocks.
 */
#ifndef AGG_DAEMON_CTL_SERVER_H
#define AGG_DAEMON_CTL_SERVER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct ctl_server;
struct trib_error;
struct trib_log;

enum {
    CTL_CLIENTS = 4, /* concurrent clients; others wait */
    CTL_FDS = CTL_CLIENTS + 1,
    CTL_LINE = 256, /* bytes of a line, with its NUL */
};

/* A command, and its sender as reported by the kernel. */
struct ctl_request {
    const char *verb;
    const char *what; /* text after the verb; "": none */
    uint32_t uid;
    uint32_t pid;
};

/* Callback of the server that executes commands. */
struct ctl_server_ops {
    /* Return false if the command failed; `say` receives a message in both cases.
     * *later_out: 0, or a number for `is_settled`, until which the answer waits. */
    bool (*act)(void *arg, const struct ctl_request *request, char *say, size_t bytes,
                uint64_t *later_out);
    bool (*is_settled)(void *arg, uint64_t later);
    void *arg;
    const struct trib_log *log;
};

/**
 * ctl_server_open - listen at `path`, mode 0600.
 *
 * A leftover socket without a listener is replaced.
 *
 * errors   TRIB_ERR_CONFIG, TRIB_ERR_BOOT, TRIB_ERR_NO_MEMORY
 */
trib_status_t ctl_server_open(const char *path, const struct ctl_server_ops *ops,
                              struct trib_error *err, struct ctl_server **out);

/** ctl_server_close - close all connections and remove the socket; NULL is allowed. */
void ctl_server_close(struct ctl_server *m);

/** ctl_server_poll - fill in the descriptors to poll, at most CTL_FDS; return their
 * number. */
int ctl_server_poll(const struct ctl_server *m, struct pollfd *fds);

/** ctl_server_due - return when to call ctl_server_step without an event; UINT64_MAX:
 * never. */
uint64_t ctl_server_due(const struct ctl_server *m);

/** ctl_server_step - accept clients, execute received commands and answer them. */
void ctl_server_step(struct ctl_server *m);

#endif
