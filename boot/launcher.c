/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/launcher.h"

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/idle_function.h"
#include "base/log.h"

/*
 * Launchers by priority. PMI_FD and PMIX_RANK belong to the innermost launcher. Slurm
 * comes last, as its variables also reach processes that an mpirun starts within a job.
 */
/* clang-format off */
#define LAUNCHERS(X) \
    X(pmix) \
    X(pmi) \
    X(slurm)
/* clang-format on */

#define DECLARE(name) extern const struct trib_launcher trib_launcher_##name;
LAUNCHERS(DECLARE)

#define ROW(name) &trib_launcher_##name,
const struct trib_launcher *const trib_launchers[] = {LAUNCHERS(ROW) NULL};

/*
 * A launcher answers each process once, but a program may join, disconnect and join
 * again. So the answer is kept for the life of the process. The lock protects only
 * is_asked: the asking thread may call its caller's idle function.
 */
static pthread_mutex_t answer_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct trib_launch launch; /* size 0: not yet asked */
    const struct trib_launcher *launcher;
    bool is_asked; /* a thread is asking and owns the other fields */
    pid_t pid; /* process that asked; a forked child must not notify the launcher */
} answer;

int trib_launch_place(int rank)
{
    /* Set by Open MPI, MPICH and Intel MPI, Cray PALS, MVAPICH, Slurm and torchrun. */
    static const char *const variables[] = {
        "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID",
        "MV2_COMM_WORLD_LOCAL_RANK",  "SLURM_LOCALID",   "LOCAL_RANK",
    };
    int place;

    assert(rank >= 0);
    /* Ranks that the user numbers have inherited the variables of what started them. */
    if (trib_config_variable("TRIB_RANK"))
        return rank;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (trib_config_variable(variables[i]) &&
            trib_launch_number(variables[i], TRIB_LAUNCH_RANKS_MAX - 1, &place, NULL) ==
                TRIB_OK)
            return place;
    }
    return rank;
}

static const struct trib_launcher *find_launcher(void)
{
    for (size_t i = 0; trib_launchers[i]; i++)
        if (trib_launchers[i]->here())
            return trib_launchers[i];
    return NULL;
}

static trib_status_t differs(const struct trib_boot_opts *opts, const char *what,
                             int given, const char *launcher, int says)
{
    return trib_fail(opts->err, TRIB_ERR_CONFIG,
                     "%s is %d where %s says %d: unset it, or set TRIB_RANK, TRIB_SIZE "
                     "and TRIB_ROOT, all three",
                     what, given, launcher, says);
}

/* Run at exit, or when the library is unloaded. */
static void leave_launcher(void)
{
    if (answer.pid == getpid())
        answer.launcher->leave();
}

static void keep_answer(const struct trib_launcher *launcher,
                        const struct trib_launch *launch)
{
    answer.launch = *launch;
    answer.launch.hold = -1;
    answer.launcher = launcher;
    answer.pid = getpid();
    if (launch->stays && atexit(leave_launcher))
        leave_launcher();
}

/* Wait until no other thread asks; return false if the caller gives up. */
static bool begin_to_ask(const struct trib_boot_opts *opts)
{
    enum { POLL_NS = 1000000 };

    pthread_mutex_lock(&answer_lock);
    while (answer.is_asked) {
        pthread_mutex_unlock(&answer_lock);
        if (!trib_idle_sleep(opts->idle, POLL_NS))
            return false;
        pthread_mutex_lock(&answer_lock);
    }
    answer.is_asked = true;
    pthread_mutex_unlock(&answer_lock);
    return true;
}

static void end_asking(void)
{
    pthread_mutex_lock(&answer_lock);
    assert(answer.is_asked);
    answer.is_asked = false;
    pthread_mutex_unlock(&answer_lock);
}

static trib_status_t meet_once(const struct trib_launcher *launcher,
                               const struct trib_boot_opts *opts,
                               struct trib_launch *launch)
{
    if (!begin_to_ask(opts))
        return TRIB_ERR_ABORTED;
    if (answer.launch.size) {
        *launch = answer.launch;
        end_asking();
        return TRIB_OK;
    }
    trib_status_t status = launcher->meet(opts, launch);
    trib_launch_strip(launch);
    if (status == TRIB_OK)
        keep_answer(launcher, launch);
    end_asking();
    if (status != TRIB_OK)
        trib_launch_release(launch);
    return status;
}

static trib_status_t complete_from(const struct trib_launcher *launcher,
                                   struct trib_boot_opts *opts,
                                   struct trib_launch *launch)
{
    bool rooted = opts->root && opts->root[0];
    trib_status_t status = launcher->detect(launch, opts->err);

    if (status != TRIB_OK)
        return status;
    if (!rooted && opts->rank >= 0 && opts->rank != launch->rank)
        return differs(opts, "TRIB_RANK", opts->rank, launcher->name, launch->rank);
    if (opts->size == 0 && launch->size == 1)
        rooted = true; /* single rank: no rendezvous needed */
    if (!rooted || (opts->size == 0 && launch->size == 0))
        status = meet_once(launcher, opts, launch);
    if (status != TRIB_OK && trib_idle_answer(opts->idle))
        return trib_idle_fail(opts->idle, opts->err,
                              "rank %d gave up while waiting for %s to report the "
                              "other ranks",
                              launch->rank, launcher->name);
    if (status != TRIB_OK)
        return status;
    if (!rooted && opts->size > 0 && opts->size != launch->size)
        return differs(opts, "TRIB_SIZE", opts->size, launcher->name, launch->size);
    trib_log(opts->log, TRIB_LOG_INFO, "boot", "%s: rank %d of %d, rendezvous at %s",
             launcher->name, launch->rank, launch->size, launch->root);
    if (opts->rank < 0)
        opts->rank = launch->rank;
    if (opts->size == 0)
        opts->size = launch->size;
    if (!opts->root || !opts->root[0]) {
        opts->root = opts->size > 1 ? launch->root : "";
        opts->launcher = launcher->name;
    }
    return TRIB_OK;
}

trib_status_t trib_launch_complete(struct trib_boot_opts *opts,
                                   struct trib_launch *launch)
{
    bool rooted = opts->root && opts->root[0];
    bool enough = opts->rank >= 0 && opts->size > 0 && rooted;

    *launch = (struct trib_launch){.hold = -1};
    if (enough || opts->size == 1)
        return TRIB_OK;
    const struct trib_launcher *launcher = find_launcher();
    if (launcher)
        return complete_from(launcher, opts, launch);
    if (opts->size == 0 && !rooted && opts->rank <= 0) {
        opts->size = 1;
        opts->rank = 0;
    }
    return TRIB_OK;
}

void trib_launch_release(struct trib_launch *launch)
{
    if (launch->hold >= 0)
        close(launch->hold);
    launch->hold = -1;
}

void trib_launch_note(struct trib_config *cfg)
{
    struct trib_launch launch = {.hold = -1};
    const struct trib_launcher *launcher = find_launcher();

    if (!launcher || launcher->detect(&launch, NULL) != TRIB_OK)
        return;
    if (cfg->origin[TRIB_CONFIG_ROW_rank] == TRIB_ORIGIN_DEFAULT) {
        cfg->rank = launch.rank;
        cfg->origin[TRIB_CONFIG_ROW_rank] = TRIB_ORIGIN_LAUNCHER;
    }
    if (launch.size && cfg->origin[TRIB_CONFIG_ROW_size] == TRIB_ORIGIN_DEFAULT) {
        cfg->size = launch.size;
        cfg->origin[TRIB_CONFIG_ROW_size] = TRIB_ORIGIN_LAUNCHER;
    }
}
