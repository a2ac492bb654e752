/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Draw the machine and its racks.
 */
#include <tributary/topology.h>

#include "base/error.h"
#include "base/sized.h"
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "inspect/draw/draw_tree.h"

static trib_status_t check(const trib_topology_opts_t *opts, struct trib_error *err)
{
    if (opts->format && !opts->racks)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_topology_opts_t.format is \"%.40s\" but racks is NULL: "
                         "name the rack file, or omit format",
                         opts->format);
    if (opts->reserved)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "trib_topology_opts_t.reserved is %d, it must be 0",
                         opts->reserved);
    return TRIB_OK;
}

static trib_status_t read_all(const trib_topology_opts_t *opts, struct trib_error *err,
                              struct trib_layout *layout, struct trib_racks **racks)
{
    trib_status_t status = trib_layout_read(opts->xml, err, layout);

    if (status == TRIB_OK && opts->racks)
        status = trib_racks_read(opts->racks, opts->format, err, racks);
    return status;
}

trib_status_t trib_topology_draw(const trib_topology_opts_t *opts, trib_line_fn fn,
                                 void *arg)
{
    static const struct trib_sized kind = {
        "trib_topology_opts_t", "TRIB_TOPOLOGY_OPTS_INIT", sizeof(trib_topology_opts_t),
        TRIB_SIZED_UP_TO(trib_topology_opts_t, dot)};
    trib_topology_opts_t ours = TRIB_TOPOLOGY_OPTS_INIT;
    struct trib_layout layout = {0};
    struct trib_racks *racks = NULL;
    struct trib_error err = {0};

    if (!fn)
        return TRIB_ERR_INVALID;
    trib_status_t status = opts ? trib_sized_take(&kind, opts, &ours, &err) : TRIB_OK;
    if (status == TRIB_OK)
        status = check(&ours, &err);
    if (status == TRIB_OK)
        status = read_all(&ours, &err, &layout, &racks);
    if (status == TRIB_OK) {
        const struct trib_drawing drawing = {.layout = &layout, .racks = racks};
        status = ours.dot ? trib_draw_dot(&drawing, fn, arg)
                          : trib_draw_text(&drawing, fn, arg);
        if (status != TRIB_OK)
            trib_fail(&err, status, "no memory to draw the topology");
    }
    if (status != TRIB_OK)
        trib_say_error(trib_error_text(&err));
    trib_racks_free(racks);
    trib_layout_free(&layout);
    return status;
}
