/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/call_report.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "bindings/mpi/next.h"

/* Calls of one kind and size, on all communicators. */
struct row {
    uint64_t calls[2], bytes[2];
    double seconds[2]; /* sum of the typical time of each measurement */
    int measured, library;
};

static struct {
    struct row rows[TMPI_KINDS][TMPI_CLASSES];
    atomic_ullong passed[TMPI_KINDS][TMPI_REASONS];
    int communicators; /* number of library communicators */
} totals;

static const char *const reasons[TMPI_REASONS] = {
    [TMPI_ALONE] = "on communicators of one rank",
    [TMPI_EARLY] = "on communicators with too few or too short calls so far",
    [TMPI_NEVER] = "across groups or jobs, with a GPU in use, or after a failed setup",
    [TMPI_TYPE] = "with an operator or datatype that the library does not support",
    [TMPI_LONG] = "with a user-defined operator and more than 64 KiB in all ranks",
    [TMPI_REFUSED] = "with arguments that MPI refuses",
    [TMPI_SMALL] = "without elements, or below TRIB_MPI_MIN",
};

void tmpi_report_passed(enum tmpi_kind kind, enum tmpi_reason why)
{
    if (tmpi_module.settings.report && tmpi_is_listed(kind))
        atomic_fetch_add_explicit(&totals.passed[kind][why], 1, memory_order_relaxed);
}

void tmpi_report_unattached(enum tmpi_kind kind, const struct tmpi_attached *a)
{
    tmpi_report_passed(kind, !a || !a->never ? TMPI_EARLY
                             : a->ranks == 1 ? TMPI_ALONE
                                             : TMPI_NEVER);
}

static void add_row(struct row *row, const struct tmpi_side_choice *c)
{
    for (int side = 0; side < 2; side++) {
        row->calls[side] += c->calls[side];
        row->bytes[side] += c->bytes[side];
        row->seconds[side] += c->typical[side];
    }
    row->measured += c->typical[TMPI_MPI] > 0;
    row->library += c->typical[TMPI_MPI] > 0 && c->side == TMPI_LIBRARY;
}

void tmpi_report_add(const struct tmpi_attached *a)
{
    totals.communicators += a->made;
    for (int k = 0; k < TMPI_KINDS; k++)
        for (int i = 0; a->choices[k] && i < TMPI_CLASSES; i++)
            add_row(&totals.rows[k][i], &a->choices[k][i]);
}

static uint64_t calls_of(int kind, enum tmpi_side side)
{
    uint64_t n = 0;

    for (int i = 0; i < TMPI_CLASSES; i++)
        n += totals.rows[kind][i].calls[side];
    return n;
}

static uint64_t passed_of(int kind)
{
    uint64_t n = 0;

    for (int r = 0; r < TMPI_REASONS; r++)
        n += atomic_load(&totals.passed[kind][r]);
    return n;
}

static void print_row(FILE *f, int kind, int class)
{
    const struct row *r = &totals.rows[kind][class];
    char size[24], library[24] = "-", mpi[24] = "-";

    if (!r->calls[TMPI_LIBRARY] && !r->calls[TMPI_MPI])
        return;
    if (r->measured) {
        snprintf(library, sizeof(library), "%.2f",
                 1e6 * r->seconds[TMPI_LIBRARY] / r->measured);
        snprintf(mpi, sizeof(mpi), "%.2f", 1e6 * r->seconds[TMPI_MPI] / r->measured);
    }
    trib_size_format((size_t)1 << class, size);
    fprintf(f, "  %-20s %8s %11" PRIu64 " %9" PRIu64 " %12s %9s\n",
            tmpi_kinds[kind].name,
            kind == TMPI_BARRIER        ? "-"
            : !tmpi_kinds[kind].classes ? "any"
                                        : size,
            r->calls[TMPI_LIBRARY], r->calls[TMPI_MPI], library, mpi);
}

static void print_table(FILE *f)
{
    fprintf(f,
            "tributary: mpi: calls of rank 0, %d library communicators\n"
            "  %-20s %8s %11s %9s %12s %9s\n",
            totals.communicators, "call", "bytes <=", "by library", "by MPI",
            "library, us", "MPI, us");
    for (int k = 0; k < TMPI_KINDS; k++)
        for (int i = 0; i < TMPI_CLASSES; i++)
            print_row(f, k, i);
    for (int k = 0; k < TMPI_KINDS; k++)
        for (int r = 0; r < TMPI_REASONS; r++)
            if (atomic_load(&totals.passed[k][r]))
                fprintf(f, "  %-20s %8s %11s %9llu   %s\n", tmpi_kinds[k].name, "", "",
                        atomic_load(&totals.passed[k][r]), reasons[r]);
}

static void print_json(FILE *f)
{
    const char *comma = "";

    fprintf(f, "{\"communicators\": %d, \"calls\": [", totals.communicators);
    for (int k = 0; k < TMPI_KINDS; k++) {
        const uint64_t library = calls_of(k, TMPI_LIBRARY), mpi = calls_of(k, TMPI_MPI);
        if (!library && !mpi && !passed_of(k))
            continue;
        fprintf(f,
                "%s\n  {\"call\": \"%s\", \"library\": %" PRIu64 ", \"mpi\": %" PRIu64
                ", \"alone\": %llu, \"early\": %llu, \"never\": %llu, \"type\": %llu"
                ", \"long\": %llu, \"small\": %llu, \"wrong\": %llu}",
                comma, tmpi_kinds[k].name, library, mpi,
                atomic_load(&totals.passed[k][TMPI_ALONE]),
                atomic_load(&totals.passed[k][TMPI_EARLY]),
                atomic_load(&totals.passed[k][TMPI_NEVER]),
                atomic_load(&totals.passed[k][TMPI_TYPE]),
                atomic_load(&totals.passed[k][TMPI_LONG]),
                atomic_load(&totals.passed[k][TMPI_SMALL]),
                atomic_load(&totals.passed[k][TMPI_REFUSED]));
        comma = ",";
    }
    fprintf(f, "\n]}\n");
}

void tmpi_report_write(void)
{
    const char *to = tmpi_module.settings.report;
    int rank = -1;

    tmpi_next.Comm_rank(MPI_COMM_WORLD, &rank);
    if (!to || rank != 0)
        return;
    if (!strcmp(to, "1")) {
        print_table(stderr);
        return;
    }
    FILE *f = fopen(to, "w");
    if (f)
        print_json(f);
    if (!f || fclose(f) != 0)
        fprintf(stderr, "tributary: mpi: cannot write the report to %s: %m\n", to);
}
