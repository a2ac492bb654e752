/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tribd for the jobs of one program, on loopback or where its caller puts it. Its log
 * and, if it gets a new one, its key are in a private folder. It ends with the program.
 */
#ifndef TOOLS_COMMON_LOCAL_TRIBD_H
#define TOOLS_COMMON_LOCAL_TRIBD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* How to start a tribd. */
struct tool_tribd_desc {
    const char *tool; /* begins messages and the folder's name, such as "trib-perf" */
    const char *program; /* path; NULL: tool_tribd_find, else PATH */
    const char *cure; /* ends the message if the program cannot be run, or NULL */
    const char *address; /* NULL: a free port of loopback */
    const char *key; /* file with its key; NULL: a new one; "": none */
    const char *auth; /* TRIBD_AUTH; NULL: inherited */
    const sigset_t *mask; /* of its signals; NULL: the caller's */
    int (*enter)(const void *arg); /* run in its process first; 0: go on; or NULL */
    const void *arg;
};

struct tool_tribd {
    const char *tool;
    pid_t pid; /* 0: not running */
    bool made_key; /* in the folder */
    char folder[64]; /* empty: none */
    char log[80];
    char key[4096];
    char address[64];
};

/** tool_tribd_find - find the tribd installed or built with this program. */
bool tool_tribd_find(char *path, size_t bytes);

/**
 * tool_tribd_start - start a tribd and wait until it listens.
 *
 * Settings that it must have replace the user's; others, such as TRIBD_THREADS, are
 * inherited.
 * errors   false after a message on stderr; nothing to stop
 */
bool tool_tribd_start(const struct tool_tribd_desc *desc, struct tool_tribd *out);

/** tool_tribd_ended - return true once, after a message, if the tribd has ended. */
bool tool_tribd_ended(struct tool_tribd *tribd);

/** tool_tribd_stop - stop the tribd within 15 s and delete its files. */
void tool_tribd_stop(struct tool_tribd *tribd);

#endif
