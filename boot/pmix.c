/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx, spoken by mpirun of Open MPI and by srun --mpi=pmix.
 *
 * The library is opened only under such a launcher, so programs also start on hosts
 * without it. Its calls may wait forever for a missing rank, so they run in a thread
 * that is abandoned at the timeout.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/library.h"
#include "boot/launcher.h"
#include "build-config.h"

static bool pmix_here(void)
{
    return trib_config_variable("PMIX_NAMESPACE") && trib_config_variable("PMIX_RANK");
}

/* The environment does not contain the size. */
static trib_status_t pmix_detect(struct trib_launch *out, struct trib_error *err)
{
    out->size = 0;
    return trib_launch_number("PMIX_RANK", TRIB_LAUNCH_RANKS_MAX - 1, &out->rank, err);
}

#if HAVE_PMIX

#include <errno.h>
#include <pmix.h>

#include "base/time.h"
#include "base/wait.h"

#define LIBRARY "libpmix.so.2"
#define KEY "tributary-root"
#define LEAVE_MS 2000

struct library {
    __typeof__(&PMIx_Init) init;
    __typeof__(&PMIx_Initialized) initialized;
    __typeof__(&PMIx_Finalize) finalize;
    __typeof__(&PMIx_Put) put;
    __typeof__(&PMIx_Commit) commit;
    __typeof__(&PMIx_Fence) fence;
    __typeof__(&PMIx_Get) get;
    __typeof__(&PMIx_Error_string) error_string;
};

/* One dialogue with the launcher, run in a thread. */
struct talk {
    struct library lib;
    pmix_proc_t self;
    bool root; /* this is rank 0 */
    bool stays; /* PMIx is left open */
    char text[TRIB_LAUNCH_ROOT_BYTES]; /* root that rank 0 broadcasts */
    uint32_t size;
    const char *doing;
    pmix_status_t status;
};

static bool open_library(struct library *lib)
{
    static const struct trib_symbol symbols[] = {
        {.name = "PMIx_Init", .at = offsetof(struct library, init)},
        {.name = "PMIx_Initialized", .at = offsetof(struct library, initialized)},
        {.name = "PMIx_Finalize", .at = offsetof(struct library, finalize)},
        {.name = "PMIx_Put", .at = offsetof(struct library, put)},
        {.name = "PMIx_Commit", .at = offsetof(struct library, commit)},
        {.name = "PMIx_Fence", .at = offsetof(struct library, fence)},
        {.name = "PMIx_Get", .at = offsetof(struct library, get)},
        {.name = "PMIx_Error_string", .at = offsetof(struct library, error_string)},
    };
    char why[160];

    return trib_library_open(LIBRARY, symbols, sizeof(symbols) / sizeof(symbols[0]),
                             lib, why, sizeof(why));
}

static pmix_status_t get_size(struct talk *t)
{
    pmix_proc_t job = t->self;
    pmix_value_t *value = NULL;

    t->doing = "ask for the number of ranks";
    job.rank = PMIX_RANK_WILDCARD;
    pmix_status_t status = t->lib.get(&job, PMIX_JOB_SIZE, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return status;
    if (value->type == PMIX_UINT32)
        t->size = value->data.uint32;
    free(value);
    return t->size ? PMIX_SUCCESS : PMIX_ERR_TYPE_MISMATCH;
}

static pmix_status_t put_root(struct talk *t)
{
    pmix_value_t value = {.type = PMIX_STRING, .data.string = t->text};
    pmix_key_t key = KEY; /* PMIx may read the whole array */

    t->doing = "publish the rendezvous address";
    pmix_status_t status = t->lib.put(PMIX_GLOBAL, key, &value);
    return status == PMIX_SUCCESS ? t->lib.commit() : status;
}

static pmix_status_t get_root(struct talk *t)
{
    pmix_proc_t root = t->self;
    pmix_value_t *value = NULL;
    pmix_key_t key = KEY;

    t->doing = "get the rendezvous address";
    root.rank = 0;
    pmix_status_t status = t->lib.get(&root, key, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return status;
    if (value->type == PMIX_STRING && value->data.string) {
        snprintf(t->text, sizeof(t->text), "%s", value->data.string);
        free(value->data.string);
    }
    free(value);
    return PMIX_SUCCESS;
}

static pmix_status_t fence(struct talk *t)
{
    pmix_info_t info = {.key = PMIX_COLLECT_DATA,
                        .value = {.type = PMIX_BOOL, .data.flag = true}};

    t->doing = "gather all ranks";
    return t->lib.fence(NULL, 0, &info, 1);
}

/*
 * PMIx counts its users in a process, and MPI is one of them. The launcher takes the
 * last user's goodbye for the end of this rank, and does not fully serve a second
 * connection. So PMIx stays open until the process exits, unless MPI has opened it
 * already.
 */
static pmix_status_t converse(struct talk *t)
{
    t->doing = "greet the launcher";
    t->stays = !t->lib.initialized();
    trib_fd_guard(); /* its connection to the launcher stays open */
    pmix_status_t status = t->lib.init(&t->self, NULL, 0);
    if (status != PMIX_SUCCESS)
        return status;
    status = get_size(t);
    if (status == PMIX_SUCCESS && t->root)
        status = put_root(t);
    if (status == PMIX_SUCCESS)
        status = fence(t);
    if (status == PMIX_SUCCESS && !t->root)
        status = get_root(t);
    if (status != PMIX_SUCCESS || t->stays)
        return status;
    t->doing = "say good-bye";
    return t->lib.finalize(NULL, 0);
}

static void run(void *arg)
{
    struct talk *t = arg;

    t->status = converse(t);
}

static trib_status_t judge(const struct talk *t, const struct trib_boot_opts *opts,
                           struct trib_launch *launch)
{
    if (t->status != PMIX_SUCCESS)
        return trib_fail(
            opts->err, TRIB_ERR_BOOT,
            "rank %d cannot %s over PMIx: %s; start the ranks with mpirun, "
            "or set TRIB_RANK, TRIB_SIZE and TRIB_ROOT",
            launch->rank, t->doing, t->lib.error_string(t->status));
    if (t->size > TRIB_LAUNCH_RANKS_MAX)
        return trib_fail(opts->err, TRIB_ERR_CONFIG,
                         "PMIx reports %u ranks: at most %d are supported", t->size,
                         TRIB_LAUNCH_RANKS_MAX);
    launch->size = (int)t->size;
    launch->stays = t->stays;
    return launch->rank == 0 ? TRIB_OK
                             : trib_launch_accept(launch, t->text, "PMIx", opts->err);
}

static trib_status_t talk(struct talk *t, const struct trib_boot_opts *opts,
                          struct trib_launch *launch)
{
    int timeout_ms = opts->cfg->boot_timeout_ms;
    const uint64_t until = trib_limit_deadline(timeout_ms);
    int error = trib_detached_call(run, free, t, until, opts->idle);

    if (error == ECANCELED)
        return TRIB_ERR_ABORTED; /* trib_launch_complete sets the error message */
    if (error == ETIMEDOUT)
        return trib_fail(
            opts->err, TRIB_ERR_BOOT,
            "rank %d waited %d ms for all ranks to join over PMIx: another "
            "rank has not come; see what it said, or raise "
            "TRIB_BOOT_TIMEOUT_MS",
            launch->rank, timeout_ms);
    errno = error;
    trib_status_t status = error ? trib_fail(opts->err, TRIB_ERR_SYSTEM,
                                             "cannot start a thread of boot: %m")
                                 : judge(t, opts, launch);
    free(t);
    return status;
}

static trib_status_t pmix_meet(const struct trib_boot_opts *opts,
                               struct trib_launch *launch)
{
    struct talk *t = calloc(1, sizeof(*t));

    if (!t)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    if (!open_library(&t->lib)) {
        free(t);
        return trib_fail(opts->err, TRIB_ERR_UNSUPPORTED,
                         "PMIX_RANK is set, but " LIBRARY " cannot be opened on this "
                         "host: install it (Debian: libpmix2), or set TRIB_RANK, "
                         "TRIB_SIZE and TRIB_ROOT");
    }
    t->root = launch->rank == 0;
    trib_status_t status = t->root ? trib_launch_offer(launch, opts->err) : TRIB_OK;
    if (status != TRIB_OK) {
        free(t);
        return status;
    }
    snprintf(t->text, sizeof(t->text), "%s", launch->root);
    return talk(t, opts, launch);
}

static void say_goodbye(void *arg)
{
    struct talk *t = arg;

    t->status = t->lib.finalize(NULL, 0);
}

static void pmix_leave(void)
{
    struct talk *t = calloc(1, sizeof(*t));

    if (t && (!open_library(&t->lib) ||
              trib_detached_call(say_goodbye, free, t, trib_deadline_ms(LEAVE_MS),
                                 NULL) != ETIMEDOUT))
        free(t);
}

#else

#define pmix_leave NULL

static trib_status_t pmix_meet(const struct trib_boot_opts *opts,
                               struct trib_launch *launch)
{
    (void)launch;
    return trib_fail(opts->err, TRIB_ERR_UNSUPPORTED,
                     "PMIX_RANK is set, and this build of Tributary is without PMIx: "
                     "install libpmix-dev and build it again, start the ranks with "
                     "mpiexec of MPICH, or set TRIB_RANK, TRIB_SIZE and TRIB_ROOT");
}

#endif

const struct trib_launcher trib_launcher_pmix = {
    .name = "PMIx",
    .detail = HAVE_PMIX
                  ? "mpirun of Open MPI, srun --mpi=pmix: rank 0's address over PMIx"
                  : "not in this build",
    .here = pmix_here,
    .detect = pmix_detect,
    .meet = pmix_meet,
    .leave = pmix_leave,
};
