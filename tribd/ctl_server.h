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

struct manage;
struct trib_error;
struct trib_log;

enum {
    MANAGE_CLIENTS = 4, /* at a time; others wait */
    MANAGE_FDS = MANAGE_CLIENTS + 1,
    MANAGE_LINE = 256, /* bytes of a line, with its NUL */
};

/* What is wanted, and by whom, as the kernel says. */
struct manage_request {
    const char *verb;
    const char *what; /* "" where there is nothing behind the verb */
    uint32_t uid;
    uint32_t pid;
};

/* What is to be done by one who is asked. */
struct manage_ops {
    /* false: it cannot be; a sentence in either case. */
    bool (*act)(void *arg, const struct manage_request *request, char *say,
                size_t bytes);
    void *arg;
    const struct trib_log *log;
};

/**
 * manage_open - listen at `path`, mode 0600.
 *
 * A socket that a tribd has left there, which nobody listens at, is replaced.
 * errors   TRIB_ERR_CONFIG, with a sentence; TRIB_ERR_NO_MEMORY
 */
trib_status_t manage_open(const char *path, const struct manage_ops *ops,
                          struct trib_error *err, struct manage **out);

/** manage_close - and remove the socket. NULL is allowed. */
void manage_close(struct manage *m);

/** manage_poll - what to wait for: at most MANAGE_FDS are filled, and counted. */
int manage_poll(const struct manage *m, struct pollfd *fds);

/** manage_due - when manage_step wants to be called, without an event; UINT64_MAX:
 * never. */
uint64_t manage_due(const struct manage *m);

/** manage_step - take what is there, and answer. */
void manage_step(struct manage *m);

#endif
