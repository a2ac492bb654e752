/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/turn.h"

#include <stdlib.h>
#include <time.h>

#include "bindings/mpi/call_report.h"
#include "bindings/mpi/failure_class.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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
static void to_mpi(struct tmpi_turn *t, enum tmpi_kind kind)
{
    tmpi_report_unattached(kind, t->a);
    t->weight = t->a && tmpi_kinds[kind].timed ? tmpi_attached_weight(t->a) : 0;
    if (t->weight) {
        t->without = t->a;
        t->since = now();
    }
    t->a = NULL;
}

bool tmpi_to_library(struct tmpi_turn *t, MPI_Comm comm, enum tmpi_kind kind,
                     size_t bytes)
{
    t->since = 0;
    t->a = t->without = NULL;
    if (bytes < tmpi_module.settings.min) {
        tmpi_report_passed(kind, TMPI_SMALL);
        return false;
    }
    t->a = tmpi_attached_for(comm, kind);
    if (!t->a || !t->a->comm || !tmpi_is_listed(kind)) {
        to_mpi(t, kind);
        return false;
    }
    t->kind = kind;
    t->bytes = bytes;
    t->choice = choice_of(t->a, kind, bytes);
    if (!t->choice) {
        t->a = NULL;
        return false;
    }
    if (!t->choice->decided)
        t->since = now();
    tmpi_inside++;
    return tmpi_side_now(t->choice) == TMPI_LIBRARY;
}

/* Count the call, and record its time while the choice is open. */
static trib_status_t count(struct tmpi_turn *t, enum tmpi_side side)
{
    t->choice->calls[side]++;
    t->choice->bytes[side] += t->bytes;
    if (t->choice->decided)
        return TRIB_OK;
    return tmpi_side_record(t->choice, t->a->comm, now() - t->since);
}

int tmpi_done_by_library(struct tmpi_turn *t, trib_status_t status)
{
    if (status == TRIB_OK)
        status = count(t, TMPI_LIBRARY);
    tmpi_inside--;
    return status == TRIB_OK ? MPI_SUCCESS : tmpi_failed(t->a, status);
}

int tmpi_done_by_mpi(struct tmpi_turn *t, int result)
{
    if (t->without)
        t->without->seconds += t->weight * (now() - t->since);
    if (!t->a)
        return result;
    const trib_status_t status = result == MPI_SUCCESS ? count(t, TMPI_MPI) : TRIB_OK;
    tmpi_inside--;
    return status == TRIB_OK ? result : tmpi_failed(t->a, status);
}
