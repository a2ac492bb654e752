/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of "auto".
 */
#ifndef TRANSPORT_AUTO_AUTO_PARAMS_H
#define TRANSPORT_AUTO_AUTO_PARAMS_H

#include <stdint.h>

#include "base/addresses.h"
#include "transport/auto/auto_peer.h"
#include "transport/open.h"

#define AUTO_PASSED_BYTES 260

struct auto_params {
    char near[16], far[16]; /* names of candidates; "": any */
    int64_t ranks_per_host;
    int64_t port, ports; /* as in tcp */
    char net[TRIB_NET_TEXT_BYTES];
    char passed[AUTO_INNERS][AUTO_PASSED_BYTES]; /* text for each candidate, or "" */
};

/**
 * trib_auto_params_parse - parse opts->params. Each candidate checks its own.
 *
 * errors   as trib_params_parse
 */
trib_status_t trib_auto_params_parse(const struct trib_candidate *rows,
                                     const struct trib_transport_opts *opts,
                                     struct auto_params *out);

#endif
