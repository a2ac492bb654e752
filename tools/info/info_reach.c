/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info --reach: every rank queries its transport to each other rank; rank 0 prints
 * all.
 */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tributary.h>

#include "tools/common/ticker.h"
#include "tools/info/info_commands.h"

struct row { /* of a rank */
    char host[HOST_NAME_MAX + 1];
    int pid;
    trib_reach_t cells[]; /* [size] */
};

static size_t row_bytes(int size)
{
    return sizeof(struct row) + (size_t)size * sizeof(trib_reach_t);
}

static const struct row *row(const char *all, int size, int from)
{
    return (const struct row *)(const void *)(all + (size_t)from * row_bytes(size));
}

static const trib_reach_t *cell(const char *all, int size, int from, int to)
{
    return &row(all, size, from)->cells[to];
}

static int complain(const trib_comm_t *comm)
{
    fprintf(stderr, "trib-info: %s\n", trib_last_error(comm));
    return 1;
}

/* Fill the local row. Report unreachable ranks at once: the all-gather of rows may then
 * fail. */
static trib_status_t fill_row(trib_comm_t *comm, struct row *r, int *missing_out)
{
    trib_reach_t *cells = r->cells;
    trib_status_t st = TRIB_OK;

    r->pid = (int)getpid();
    if (gethostname(r->host, sizeof(r->host)))
        snprintf(r->host, sizeof(r->host), "unknown");
    for (int to = 0; to < trib_size(comm) && st == TRIB_OK; to++) {
        cells[to].size = sizeof(cells[to]);
        st = trib_reach(comm, to, &cells[to]);
        if (st != TRIB_OK || strcmp(cells[to].transport, "none") != 0)
            continue;
        ++*missing_out;
        fprintf(stderr, "trib-info: rank %d (host %s) cannot reach rank %d: %s\n",
                trib_rank(comm), r->host, to, cells[to].why);
    }
    return st;
}

/* Print each distinct reason once ("tcp: verbs: no device"), with one pair of ranks and
 * the number of further pairs. */
static void print_reasons(const char *all, int size)
{
    for (int i = 0; i < size * size; i++) {
        const trib_reach_t *c = cell(all, size, i / size, i % size);
        bool before = strcmp(c->transport, "self") == 0;
        int more = 0;
        for (int k = 0; k < size * size && !before; k++) {
            const trib_reach_t *d = cell(all, size, k / size, k % size);
            bool same =
                strcmp(c->transport, d->transport) == 0 && strcmp(c->why, d->why) == 0;
            before = same && k < i;
            more += same && k > i;
        }
        if (before)
            continue;
        printf("  %s: %s (%d to %d", c->transport, c->why, i / size, i % size);
        printf(more ? ", and %d more)\n" : ")\n", more);
    }
}

static void print_cell(const char *text, bool last)
{
    printf(last ? "%s" : "%-6s", text);
}

static void print_text(const char *all, int size)
{
    puts("ranks");
    for (int r = 0; r < size; r++)
        printf("  %-4d host %s, process %d\n", r, row(all, size, r)->host,
               row(all, size, r)->pid);
    printf("transport from rank (row) to rank (column)\n  %-6s", "");
    for (int to = 0; to < size; to++)
        printf(to + 1 < size ? "%-6d" : "%d", to);
    for (int from = 0; from < size; from++) {
        printf("\n  %-6d", from);
        for (int to = 0; to < size; to++) {
            const char *name = cell(all, size, from, to)->transport;
            print_cell(from == to ? "-" : name, to + 1 == size);
        }
    }
    puts("\nwhy");
    print_reasons(all, size);
    if (size == 1)
        puts("  only one rank: run this under trib-run, mpirun, mpiexec or srun");
}

static int print_json(const char *all, int size)
{
    json_t *list = json_array();

    for (int i = 0; i < size * size; i++) {
        const trib_reach_t *c = cell(all, size, i / size, i % size);
        json_array_append_new(
            list, json_pack("{s:i,s:i,s:s,s:s,s:s}", "from", i / size, "to", i % size,
                            "host", row(all, size, i / size)->host, "transport",
                            c->transport, "why", c->why));
    }
    return info_print_json("reach", list) ? 0 : 1;
}

static int show(trib_comm_t *comm, bool json)
{
    int size = trib_size(comm), missing = 0, code = 0;
    const size_t bytes = row_bytes(size);
    struct row *mine = calloc(1, bytes);
    char *all = calloc((size_t)size, bytes);

    if (!mine || !all) {
        fprintf(stderr, "trib-info: out of memory for %d ranks\n", size);
        code = 1;
    } else if (fill_row(comm, mine, &missing) != TRIB_OK ||
               trib_allgather(comm, mine, all, bytes, TRIB_I8) != TRIB_OK) {
        code = complain(comm);
    } else if (trib_rank(comm) == 0 && json) {
        tool_ticker_end();
        code = print_json(all, size);
    } else if (trib_rank(comm) == 0) {
        tool_ticker_end();
        print_text(all, size);
    }
    tool_ticker_end();
    free(mine);
    free(all);
    return code || missing;
}

int info_reach(bool json)
{
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_comm_t *comm;

    opts.config = "codec=none";
    tool_ticker_begin("trib-info: waiting for the other ranks");
    if (trib_init(&opts, &comm) != TRIB_OK) {
        tool_ticker_end();
        return complain(NULL);
    }
    tool_ticker_say("trib-info: collecting the transports used by each rank");
    int code = show(comm, json);
    if (trib_free_comm(comm) != TRIB_OK && !code)
        code = complain(NULL);
    return code;
}
