/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/next.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bindings/mpi/mpi_settings.h"
#include "bindings/mpi/preload_list.h"

struct tmpi_next tmpi_next, tmpi_tool;

enum { FUNCTIONS = sizeof(struct tmpi_next) / sizeof(void *) };

/* Symbols that identify the family of an MPI: this module's and the other one. */
#ifdef OPEN_MPI
static const char family[] = "Open MPI", other[] = "mpich";
static const char mark[] = "ompi_mpi_comm_world", other_mark[] = "MPIR_Dup_fn";
#else
static const char family[] = "MPICH", other[] = "openmpi";
static const char mark[] = "MPIR_Dup_fn", other_mark[] = "ompi_mpi_comm_world";
#endif

/* Return true if the library at this address, or one that it links, has the symbol. */
static bool has_near(const void *address, const char *symbol)
{
    Dl_info where;
    void *library = dladdr(address, &where)
                        ? dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                        : NULL;
    const bool has = library && dlsym(library, symbol);

    if (library)
        dlclose(library);
    return has;
}

static bool in_one_library(const void *a, const void *b)
{
    Dl_info of_a, of_b;

    return a == b ||
           (dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase);
}

/* Return true on one process per job, if the launcher's variables tell the ranks. */
static bool is_first(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
        if (tmpi_environment(ranks[i]))
            return !strcmp(tmpi_environment(ranks[i]), "0");
    return true;
}

/* Restart the program without the module. Handles of the other family have a different
 * type (integers or pointers), so no call of it may reach this module. */
static void start_without(char **argv)
{
    if (is_first())
        fprintf(stderr,
                "tributary: mpi: %s links a different MPI than %s, which this module "
                "is for: MPI handles all calls; trib-mpi --mpi %s selects the other "
                "module\n",
                argv[0], family, other);
    tmpi_preload_drop();
    execv("/proc/self/exe", argv);
    fprintf(stderr, "tributary: mpi: cannot start %s without the module: %m\n",
            argv[0]);
    _exit(2);
}

void tmpi_check_caller(const void *address)
{
    if (!has_near(address, other_mark) || has_near(address, mark))
        return;
    fprintf(stderr,
            "tributary: mpi: the program calls a different MPI than %s, which this "
            "module is for: trib-mpi --mpi %s selects the other module\n",
            family, other);
    exit(2);
}

int tmpi_lacks(const char *name)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&warned))
        fprintf(stderr, "tributary: mpi: the program calls %s, which its MPI lacks\n",
                name);
    tmpi_next.Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_UNSUPPORTED_OPERATION);
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

__attribute__((constructor)) static void find_next(int argc, char **argv)
{
    static const char *const names[] = {
#define X(name, parameters) "PMPI_" #name,
#define XX(name, parameters) "PMPIX_" #name,
#include "bindings/mpi/next.def"
#undef X
#undef XX
    };
    void *mpi[FUNCTIONS], *tool[FUNCTIONS];
    /* Some builds of MPI have PMPI_X in a separate library, libpmpi. MPI_X is then in
     * the library of MPI_T_init_thread, which no tool provides. */
    const void *const of_mpi = dlsym(RTLD_NEXT, "MPI_T_init_thread");

    _Static_assert(sizeof(names) / sizeof(*names) == FUNCTIONS, "one pointer a row");
    (void)argc;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        mpi[i] = dlsym(RTLD_NEXT, names[i]);
        tool[i] = dlsym(RTLD_NEXT, names[i] + 1);
        if (!tool[i] || !mpi[i] || in_one_library(tool[i], mpi[i]) ||
            in_one_library(tool[i], of_mpi))
            tool[i] = NULL;
    }
    memcpy(&tmpi_next, mpi, sizeof(mpi));
    memcpy(&tmpi_tool, tool, sizeof(tool));
    if (mpi[0] && !has_near(mpi[0], mark))
        start_without(argv);
}
