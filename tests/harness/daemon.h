/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A private tribd of a test, on loopback: start, kill, stop and restart it at the same
 * port, and query the resources that it holds.
 */
#ifndef TESTS_HARNESS_DAEMON_H
#define TESTS_HARNESS_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#define DAEMON_PATH 400

struct daemon_process {
    pid_t pid; /* 0: not running */
    int port;  /* for jobs; the next port is for HTTP */
    int threads;
    int tries;
    bool stopped;
    char folder[DAEMON_PATH - 40]; /* of key and log */
    char log[DAEMON_PATH];
};

/**
 * daemon_folder - create a folder with a key for daemons and ranks.
 *
 * Also sets the variables for ranks: TRIB_SERVICE_AUTH, TRIB_SERVICE_KEY.
 */
bool daemon_folder(char folder[DAEMON_PATH - 40]);

/** daemon_remove - remove the folder and its files. */
void daemon_remove(const char *folder);

/** daemon_start - start tribd without waiting; port 0 selects a free one. daemon_up
 * waits until it listens. */
bool daemon_start(struct daemon_process *d);

/** daemon_said - return whether the beginning of its log contains these words. */
bool daemon_said(const struct daemon_process *d, const char *words);

/** daemon_up - wait until it listens; restart it at another port if it cannot. */
bool daemon_up(struct daemon_process *d);

/**
 * daemon_run - start it and wait until it is up. Return false if it was built without
 * libmicrohttpd. End the test's process if it does not start.
 */
bool daemon_run(struct daemon_process *d);

/** daemon_need - create its folder and run it; skips the test if that is impossible in
 * this build. */
void daemon_need(struct daemon_process *d);

/** daemon_end - shut it down, wait for its end, and remove its folder. */
void daemon_end(struct daemon_process *d);

/** daemon_signal - kill(2); keeps track of signals that stop and continue it. */
void daemon_signal(struct daemon_process *d, int number);

/** daemon_ended - return whether it has ended, and its status of waitpid(2). */
bool daemon_ended(struct daemon_process *d, int *wait_status_out);

/** daemon_empty - return whether no job holds its slots or waits for them. */
bool daemon_empty(const struct daemon_process *d);

/** daemon_show - print its log on standard error. */
void daemon_show(const struct daemon_process *d);

#endif
