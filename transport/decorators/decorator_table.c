/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of decorators, and nomap, which disables load/store access to exercise the
 * write path. */
#include "transport/decorators/decorator.h"
#include "transport/op_defaults.h"
#include "transport/params.h"

static trib_status_t nomap_caps(struct trib_transport *t,
                                const struct trib_address *addresses,
                                uint32_t *caps_out)
{
    struct trib_transport *inner = decorator_of(t)->inner;
    trib_status_t status = inner->ops->caps(inner, addresses, caps_out);

    *caps_out &= ~(uint32_t)(TRIB_CAP_MAPS | TRIB_CAP_READS);
    return status;
}

static trib_status_t nomap_install(const struct trib_transport_opts *opts,
                                   struct decorator *w)
{
    w->ops.caps = nomap_caps;
    w->ops.map = trib_no_map;
    w->ops.reads = trib_no_reads;
    w->ops.read = trib_no_read;
    return trib_params_parse("nomap", opts->params, NULL, 0, opts->err);
}

const struct trib_decorator trib_decorators[] = {
    {"trace", "count writes and events, log the totals at close (level info)",
     trib_decorate_trace},
    {"delay", "us=N: deliver events N microseconds later", trib_decorate_delay},
    {"drop", "nth=N: lose the N-th write", trib_decorate_drop},
    {"repeat", "nth=N: deliver the N-th write twice", trib_decorate_repeat},
    {"corrupt", "nth=N, least=BYTES: corrupt a byte of the N-th write of BYTES or more",
     trib_decorate_corrupt},
    {"kill",
     "after=N,signal=S,rank=R: send rank R (-1: all) a signal at its N-th write",
     trib_decorate_kill},
    {"nomap", "reach peers' memory by writes only", nomap_install},
    {NULL, NULL, NULL},
};
