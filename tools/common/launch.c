/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tributary.h>

#include "tools/common/tool.h"

/* The library notifies surviving ranks within 5 s; longer means a hang. */
#define GRACE_SECONDS 10

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

struct ranks {
    const char *tool; /* prefix of error messages */
    pid_t *pids; /* 0: exited */
    int n;
    int left;
    int code; /* exit code of the first failed rank, or 128 + the terminating signal */
    double failed_at; /* 0: no failure */
    bool killed;
    sigset_t old_mask;
};

static void signal_all(const struct ranks *ranks, int number)
{
    for (int i = 0; i < ranks->n; i++) {
        if (ranks->pids[i] > 0)
            kill(ranks->pids[i], number);
    }
}

static void note_end(struct ranks *ranks, pid_t pid, int how)
{
    int rank = 0;
    while (rank < ranks->n && ranks->pids[rank] != pid)
        rank++;
    if (rank == ranks->n)
        return;
    ranks->pids[rank] = 0;
    ranks->left--;
    if (how == 0 || ranks->code != 0)
        return;
    ranks->code = WIFEXITED(how) ? WEXITSTATUS(how) : 1;
    ranks->failed_at = now();
    if (WIFSIGNALED(how))
        fprintf(stderr, "%s: rank %d was killed by signal %d (%s).\n", ranks->tool,
                rank, WTERMSIG(how), strsignal(WTERMSIG(how)));
}

static void note_signal(struct ranks *ranks, int number)
{
    if (number <= 0 || number == SIGCHLD)
        return;
    ranks->code = 128 + number;
    ranks->failed_at = now();
    signal_all(ranks, number);
}

static void kill_late(struct ranks *ranks)
{
    if (ranks->code == 0 || ranks->killed || now() - ranks->failed_at < GRACE_SECONDS)
        return;
    fprintf(stderr,
            "%s: %d ranks did not exit within %d s of the first failure: killed.\n",
            ranks->tool, ranks->left, GRACE_SECONDS);
    signal_all(ranks, SIGKILL);
    ranks->killed = true;
}

/* Block until all ranks have ended. Sleeping instead of polling avoids disturbing the
 * samples. */
static void wait_all(struct ranks *ranks, const sigset_t *mask)
{
    const struct timespec second = {.tv_sec = 1};
    while (ranks->left > 0) {
        int how;
        pid_t pid = waitpid(-1, &how, WNOHANG);
        if (pid > 0) {
            note_end(ranks, pid, how);
            continue;
        }
        if (pid < 0 && errno != EINTR) {
            fprintf(stderr, "%s: cannot wait for the ranks: %s: killed.\n", ranks->tool,
                    strerror(errno));
            ranks->code = 1;
            signal_all(ranks, SIGKILL);
            return;
        }
        kill_late(ranks);
        note_signal(ranks, sigtimedwait(mask, NULL, &second));
    }
}

/* Run a rank and exit. The rank is killed if its parent dies. */
static void be_rank(const struct tool_job *job, int rank, const char *root,
                    pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    (void)tool_bind_rank(job->bind, rank, job->ranks);
    _exit(tool_end(job->tool, job->fn(job->arg, rank, root)));
}

/* local    NULL: ranks rendezvous at job->root */
static void start_all(struct ranks *ranks, const struct tool_job *job,
                      trib_local_t *local)
{
    const char *root = local ? trib_local_root(local) : job->root;
    pid_t parent = getpid();
    fflush(stdout);
    for (int rank = 0; rank < ranks->n; rank++) {
        pid_t pid = fork();
        if (pid == 0) {
            sigprocmask(SIG_SETMASK, &ranks->old_mask, NULL);
            be_rank(job, rank, root, parent);
        }
        if (pid < 0) {
            fprintf(stderr, "%s: cannot start rank %d: %s.\n", job->tool, rank,
                    strerror(errno));
            ranks->code = 1;
            signal_all(ranks, SIGKILL);
            return;
        }
        ranks->pids[rank] = pid;
        ranks->left++;
        if (local && rank < ranks->n - job->later)
            trib_local_set_pid(local, rank, pid);
    }
}

int tool_launch(const struct tool_job *job)
{
    trib_local_t *local = NULL;
    sigset_t mask;
    struct ranks ranks = {.tool = job->tool, .n = job->ranks};
    if (!job->root && trib_local_create(job->ranks - job->later, &local) != TRIB_OK) {
        fprintf(stderr, "%s: %s\n", job->tool, trib_last_error(NULL));
        return 1;
    }
    ranks.pids = calloc((size_t)job->ranks, sizeof(*ranks.pids));
    if (ranks.pids == NULL) {
        trib_local_destroy(local);
        fprintf(stderr, "%s: out of memory.\n", job->tool);
        return 1;
    }
    /* Wait for SIGCHLD and the termination signals instead of handling them. */
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    tool_bind_say(job->tool, job->bind, job->ranks);
    sigprocmask(SIG_BLOCK, &mask, &ranks.old_mask);
    start_all(&ranks, job, local);
    if (job->started != NULL)
        job->started(job->arg);
    wait_all(&ranks, &mask);
    sigprocmask(SIG_SETMASK, &ranks.old_mask, NULL);
    free(ranks.pids);
    trib_local_destroy(local);
    return ranks.code;
}

struct launched {
    char *by;
    size_t bytes;
    bool yes;
};

static void read_rank(void *arg, const trib_item_t *item)
{
    struct launched *l = arg;

    if (strcmp(item->name, "TRIB_RANK") != 0 || strcmp(item->origin, "default") == 0)
        return;
    l->yes = true;
    if (strcmp(item->origin, "launcher") == 0)
        snprintf(l->by, l->bytes, "rank %s from SLURM_PROCID, PMIX_RANK or PMI_RANK",
                 item->value);
    else
        snprintf(l->by, l->bytes, "rank %s from TRIB_RANK (%s)", item->value,
                 item->origin);
}

bool tool_launched(char *by, size_t bytes)
{
    struct launched l = {.by = by, .bytes = bytes};

    (void)trib_list_each(TRIB_LIST_CONFIG, read_rank, &l);
    return l.yes;
}
