/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calibrations: what trib-perf calibrate has measured of a network, in a JSON file, in
 * place of the constants of cost.h.
 *
 *     {"format": 1,
 *      "machine": {"cpu": "…", "cores": 16},
 *      "links": [{"transport": "tcp", "scope": "hosts", "measured": "2026-11-27",
 *                 "ranks": 4, "hop_us": 21.5, "message_us": 2.1, "wire_Bps": 1.2e8,
 *                 "sum_Bps": 1.1e10}, …]}
 *
 * A file holds for machines like the one where it was written. Each link is one value
 * of TRIB_TRANSPORT, between hosts or on one.
 */
#ifndef TOPO_CALIBRATION_H
#define TOPO_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

#include "topo/cost.h"

struct trib_error;

enum { TRIB_CALIBRATION_FORMAT = 1 };

/* As ranks tell it each other. */
struct trib_calibration {
    uint32_t known; /* 0: nothing was measured, and all else is 0 */
    uint32_t measured; /* a day, as 20261127 */
    double hop_us, message_us, wire_Bps, sum_Bps;
};

/**
 * trib_calibration_read - what a file says of one link.
 *
 * path      "": there is no file, and nothing is known
 * transport TRIB_TRANSPORT
 * hosts     the ranks are on several hosts
 * root      "", or the folder in which /proc is looked for
 * errors    TRIB_ERR_INVALID with a sentence in err: the file cannot be read, is no
 *           calibration, or is of another machine. A file without this link is none:
 *           out->known is 0
 */
trib_status_t trib_calibration_read(const char *path, const char *transport, bool hosts,
                                    const char *root, struct trib_error *err,
                                    struct trib_calibration *out);

/** trib_calibration_agree - what holds for all ranks: the longest times and the lowest
 * rates; known only where all know something. */
struct trib_calibration trib_calibration_agree(const struct trib_calibration *of,
                                               int ranks);

/** trib_calibration_cost - the same as a model, with the constants' time of a
 * switch. */
struct trib_cost_model trib_calibration_cost(const struct trib_calibration *c);

#endif
