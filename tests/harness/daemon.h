/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tribd of a test's own, on loopback: started, killed, stopped, started again at its
 * port, and asked what it holds.
 */
#ifndef TESTS_HARNESS_DAEMON_H
#define TESTS_HARNESS_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#define DAEMON_PATH 400

struct daemon_process {
    pid_t pid; /* 0: none */
    int port;  /* where jobs find it; the next one shows what it holds */
    int threads;
    int tries;
    bool stopped;
    char folder[DAEMON_PATH - 40]; /* of the key, and of its log */
    char log[DAEMON_PATH];
};

/**
 * daemon_folder - an empty one, with a key for daemons and ranks.
 *
 * Sets what ranks need of it, too: TRIB_SERVICE_AUTH, TRIB_SERVICE_KEY.
 */
bool daemon_folder(char folder[DAEMON_PATH - 40]);

/** daemon_remove - the folder and what is in it. */
void daemon_remove(const char *folder);

/** daemon_start - begin: port 0 takes one that is free. daemon_up says when it
 * listens. */
bool daemon_start(struct daemon_process *d);

/** daemon_said - true if its log has these words, early on. */
bool daemon_said(const struct daemon_process *d, const char *words);

/** daemon_up - it listens; one that could not is started anew at another port. */
bool daemon_up(struct daemon_process *d);

/** daemon_run - start, and wait until it is up; false: it was built without
 * libmicrohttpd. One that does not come up ends the test's process. */
bool daemon_run(struct daemon_process *d);

/** daemon_end - end it in good order, wait for that, remove its folder. */
void daemon_end(struct daemon_process *d);

/** daemon_signal - kill(2); it knows which ones stop it and let it go on. */
void daemon_signal(struct daemon_process *d, int number);

/** daemon_ended - it has, and what waitpid(2) says of it. */
bool daemon_ended(struct daemon_process *d, int *wait_status_out);

/** daemon_empty - it says that nobody holds any of its slots, nor waits for one. */
bool daemon_empty(const struct daemon_process *d);

/** daemon_show - its log, on standard error. */
void daemon_show(const struct daemon_process *d);

#endif
