/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of one host without a launcher: one process each, by fork.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perf/perf.h"

/* The library tells survivors of a death within 5 s; more than that is a hang. */
#define GRACE_SECONDS 10

void perf_bind_core(int rank)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    int turn = rank % CPU_COUNT(&allowed);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &allowed) || turn-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        sched_setaffinity(0, sizeof(one), &one);
        return;
    }
}

struct ranks {
    pid_t *pids; /* 0: has ended */
    int n;
    int left;
    int code; /* of the first that failed */
};

static void end_all(struct ranks *ranks)
{
    for (int i = 0; i < ranks->n; i++) {
        if (ranks->pids[i] > 0)
            kill(ranks->pids[i], SIGKILL);
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
    if (WIFSIGNALED(how) && ranks->code == 0)
        fprintf(stderr, "trib-perf: rank %d was ended by signal %d (%s).\n", rank,
                WTERMSIG(how), strsignal(WTERMSIG(how)));
    if (ranks->code == 0)
        ranks->code = WIFEXITED(how) ? WEXITSTATUS(how) : 1;
}

static void wait_all(struct ranks *ranks)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    double failed = 0;
    bool ended = false;
    while (ranks->left > 0) {
        /* While all is well sleep: a parent that polls would disturb the samples. */
        int how;
        pid_t pid = waitpid(-1, &how, ranks->code == 0 ? 0 : WNOHANG);
        if (pid > 0) {
            note_end(ranks, pid, how);
            failed = ranks->code != 0 && failed == 0.0 ? perf_now() : failed;
        } else if (pid < 0 && errno != EINTR) {
            return;
        } else if (pid == 0) {
            if (!ended && perf_now() - failed > GRACE_SECONDS) {
                fprintf(stderr,
                        "trib-perf: %d ranks did not end by themselves within "
                        "%d s of the first failure: killed.\n",
                        ranks->left, GRACE_SECONDS);
                end_all(ranks);
                ended = true;
            }
            nanosleep(&pause, NULL);
        }
    }
}

/* Never returns. A rank ends with its parent, so that none is left behind. */
static void be_rank(const struct perf_args *args, perf_rank_fn fn, int rank,
                    const char *root, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    if (args->bind == PERF_BIND_CORE)
        perf_bind_core(rank);
    int code = fn(args, rank, root);
    fflush(stdout);
    _exit(code);
}

int perf_launch(const struct perf_args *args, perf_rank_fn fn)
{
    trib_local_t *local;
    struct ranks ranks = {.n = args->ranks};
    pid_t parent = getpid();
    if (trib_local_create(args->ranks, &local) != TRIB_OK) {
        fprintf(stderr, "trib-perf: %s\n", trib_last_error(NULL));
        return 1;
    }
    ranks.pids = calloc((size_t)args->ranks, sizeof(*ranks.pids));
    fflush(stdout);
    for (int rank = 0; ranks.pids != NULL && rank < args->ranks; rank++) {
        pid_t pid = fork();
        if (pid == 0)
            be_rank(args, fn, rank, trib_local_root(local), parent);
        if (pid < 0) {
            fprintf(stderr, "trib-perf: cannot start rank %d: %s.\n", rank,
                    strerror(errno));
            ranks.code = 1;
            end_all(&ranks);
            break;
        }
        ranks.pids[rank] = pid;
        ranks.left++;
        trib_local_set_pid(local, rank, pid);
    }
    if (ranks.pids == NULL)
        ranks.code = 1;
    wait_all(&ranks);
    free(ranks.pids);
    trib_local_destroy(local);
    return ranks.code;
}
