/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info --topo: print this machine, or another, and its racks as a tree.
 */
#include <stdio.h>

#include <tributary.h>

#include "tools/info/info_commands.h"

static void print_line(void *arg, const char *line)
{
    (void)arg;
    puts(line);
}

int info_topo(const struct info_request *request)
{
    trib_topology_opts_t opts = TRIB_TOPOLOGY_OPTS_INIT;

    opts.xml = request->xml;
    opts.racks = request->racks;
    opts.format = request->format;
    opts.dot = info_given(request, INFO_DOT);
    if (trib_topology_draw(&opts, print_line, NULL) != TRIB_OK) {
        fprintf(stderr, "trib-info: %s\n", trib_last_error(NULL));
        return 1;
    }
    return 0;
}
