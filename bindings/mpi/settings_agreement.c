/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/settings_agreement.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bindings/mpi/module.h"
#include "bindings/mpi/next.h"

static bool is_over(const struct timespec *since)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return tmpi_module.settings.boot_ms &&
           (now.tv_sec - since->tv_sec) * 1000 +
                   (now.tv_nsec - since->tv_nsec) / 1000000 >
               tmpi_module.settings.boot_ms;
}

/* All-reduce (MPI_MIN) in MPI_Init, with a timeout: a rank without this module does not
 * take part. A blocking all-reduce could match the first collective of that rank's
 * program. */
static int least_of_all(const int64_t *mine, int64_t *least, int n)
{
    struct timespec since;
    MPI_Request request;
    int done = 0;
    int result = tmpi_next.Iallreduce(mine, least, n, MPI_INT64_T, MPI_MIN,
                                      MPI_COMM_WORLD, &request);

    clock_gettime(CLOCK_MONOTONIC, &since);
    while (result == MPI_SUCCESS && !done) {
        result = tmpi_next.Test(&request, &done, MPI_STATUS_IGNORE);
        if (done || !is_over(&since)) {
            sched_yield();
            continue;
        }
        fprintf(stderr,
                "tributary: mpi: some ranks were not started by trib-mpi, or take "
                "longer than %d ms in MPI_Init: start all ranks with trib-mpi, or "
                "none, or raise TRIB_BOOT_TIMEOUT_MS\n",
                tmpi_module.settings.boot_ms);
        tmpi_next.Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    return result;
}

/* Compare the settings that decide about calls, which must be equal on all ranks. If
 * the module is off on any rank, it is off on all. */
bool tmpi_settings_agree(void)
{
    enum { AGREED = 2 * TMPI_SETTINGS + 1 };
    int64_t mine[AGREED], least[AGREED];
    int rank = 0;

    for (int i = 0; i < TMPI_SETTINGS; i++) {
        mine[2 * i] = (int64_t)tmpi_module.settings.digest[i];
        mine[2 * i + 1] = -mine[2 * i];
    }
    mine[AGREED - 1] = !tmpi_module.settings.off;
    if (least_of_all(mine, least, AGREED) || !least[AGREED - 1])
        return false;
    tmpi_next.Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < TMPI_SETTINGS; i++) {
        if (least[2 * i] == -least[2 * i + 1])
            continue;
        if (rank == 0)
            fprintf(stderr,
                    "tributary: mpi: the ranks have different values of %s; MPI "
                    "handles all calls\n",
                    tmpi_setting_variable(i));
        return false;
    }
    return true;
}
