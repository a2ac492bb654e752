/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way in for who runs the service (tribctl): a unix socket, which its owner alone
 * may open.
 *
 *     client: one line, "drain" or "kick JOB"
 *     server: one line, "ok: …" or "error: …", and the end
 *
 * Of the server's thread; nothing here blocks.
 */
#ifndef TRIBD_CTL_SERVER_H
#define TRIBD_CTL_SERVER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct ctl_server;
struct trib_error;
struct trib_log;

enum {
    CTL_CLIENTS = 4, /* at a time; others wait */
    CTL_FDS = CTL_CLIENTS + 1,
    CTL_LINE = 256, /* bytes of a line, with its NUL */
};

/* A command, and its sender as the kernel reports it. */
struct ctl_request {
    const char *verb;
    const char *what; /* "" where there is nothing behind the verb */
    uint32_t uid;
    uint32_t pid;
};

/* The server's function that carries a command out. */
struct ctl_server_ops {
    /* false: it cannot be; a sentence in either case. */
    bool (*act)(void *arg, const struct ctl_request *request, char *say,
                size_t bytes);
    void *arg;
    const struct trib_log *log;
};

/**
 * ctl_server_open - listen at `path`, mode 0600.
 *
 * A socket that a tribd has left there, which nobody listens at, is replaced.
 * errors   TRIB_ERR_CONFIG, with a sentence; TRIB_ERR_NO_MEMORY
 */
trib_status_t ctl_server_open(const char *path, const struct ctl_server_ops *ops,
                          struct trib_error *err, struct ctl_server **out);

/** ctl_server_close - close all, and remove the socket. NULL is allowed. */
void ctl_server_close(struct ctl_server *m);

/** ctl_server_poll - fill in the descriptors to wait for, at most CTL_FDS; returns
 * their number. */
int ctl_server_poll(const struct ctl_server *m, struct pollfd *fds);

/** ctl_server_due - when ctl_server_step wants to be called, without an event;
 * UINT64_MAX: never. */
uint64_t ctl_server_due(const struct ctl_server *m);

/** ctl_server_step - take what is there, and answer. */
void ctl_server_step(struct ctl_server *m);

#endif
