/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/dispatch.h"

#include <stdlib.h>
#include <time.h>

#include "bindings/mpi/call_report.h"
#include "bindings/mpi/failure_class.h"
#include "bindings/mpi/idle_progress.h"

static double now(void)
{
    struct timespec now_at;

    clock_gettime(CLOCK_MONOTONIC, &now_at);
    return (double)now_at.tv_sec + 1e-9 * (double)now_at.tv_nsec;
}

static struct tmpi_side_choice *choice_of(struct tmpi_attached *a, enum tmpi_kind kind,
                                          size_t bytes)
{
    struct tmpi_side_choice *of = a->choices[kind];

    if (!of) {
        of = a->choices[kind] = calloc(TMPI_CLASSES, sizeof(*of));
        for (int i = 0; of && i < TMPI_CLASSES; i++) {
            tmpi_side_open(&of[i], kind, i);
            of[i].decided |= tmpi_module.settings.always;
        }
    }
    return of ? &of[tmpi_kinds[kind].classes ? tmpi_class_of(bytes) : 0] : NULL;
}

/* Leave a call on a communicator without a library communicator to MPI. */
static void to_mpi(struct tmpi_call *call, enum tmpi_kind kind)
{
    tmpi_report_unattached(kind, call->a);
    call->weight =
        call->a && tmpi_kinds[kind].timed ? tmpi_attached_weight(call->a) : 0;
    if (call->weight) {
        call->without = call->a;
        call->since = now();
    }
    call->a = NULL;
}

bool tmpi_to_library(struct tmpi_call *call, MPI_Comm comm, enum tmpi_kind kind,
                     size_t bytes)
{
    call->since = 0;
    call->a = call->without = NULL;
    if (bytes < tmpi_module.settings.min) {
        tmpi_report_passed(kind, TMPI_SMALL);
        return false;
    }
    call->a = tmpi_attached_for(comm, kind);
    if (!call->a || !call->a->comm || !tmpi_is_listed(kind)) {
        to_mpi(call, kind);
        return false;
    }
    call->kind = kind;
    call->bytes = bytes;
    call->choice = choice_of(call->a, kind, bytes);
    if (!call->choice) {
        call->a = NULL;
        return false;
    }
    if (!call->choice->decided)
        call->since = now();
    tmpi_inside++;
    return tmpi_side_now(call->choice) == TMPI_LIBRARY;
}

/* Count the call, and record its time while the choice is open. */
static trib_status_t count(struct tmpi_call *call, enum tmpi_side side)
{
    call->choice->calls[side]++;
    call->choice->bytes[side] += call->bytes;
    if (call->choice->decided)
        return TRIB_OK;
    return tmpi_side_record(call->choice, call->a->comm, now() - call->since);
}

int tmpi_done_by_library(struct tmpi_call *call, trib_status_t status)
{
    if (status == TRIB_OK)
        status = count(call, TMPI_LIBRARY);
    tmpi_idle_put_off();
    tmpi_inside--;
    return status == TRIB_OK ? MPI_SUCCESS : tmpi_failed(call->a, status);
}

int tmpi_done_by_mpi(struct tmpi_call *call, int result)
{
    if (call->without)
        call->without->seconds += call->weight * (now() - call->since);
    if (!call->a)
        return result;
    const trib_status_t status =
        result == MPI_SUCCESS ? count(call, TMPI_MPI) : TRIB_OK;
    tmpi_inside--;
    return status == TRIB_OK ? result : tmpi_failed(call->a, status);
}
