/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calibrations: network measurements of trib-perf calibrate in a JSON file, which
 * replace the constants of cost.h.
 *
 *     {"format": 1,
 *      "machine": {"cpu": "…", "cores": 16},
 *      "links": [{"transport": "tcp", "scope": "hosts", "measured": "2026-11-27",
 *                 "ranks": 4, "hop_us": 21.5, "message_us": 2.1, "wire_Bps": 1.2e8,
 *                 "sum_Bps": 1.1e10}, …]}
 *
 * A file is valid for machines like the one that wrote it. Each link stands for one
 * value of TRIB_TRANSPORT, between hosts or on one host.
 */
#ifndef TOPO_CALIBRATION_H
#define TOPO_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include <tributary/status.h>

#include "topo/cost.h"

struct trib_error;

enum { TRIB_CALIBRATION_FORMAT = 1 };

/* One link's calibration; ranks send it to each other. */
struct trib_calibration {
    uint32_t known; /* 0: not measured, and all other fields are 0 */
    uint32_t measured; /* a day, such as 20261127 */
    double hop_us, message_us, wire_Bps, sum_Bps;
};

/**
 * trib_calibration_read - read the calibration of one link from a file.
 *
 * path      "": no file, nothing is known
 * transport TRIB_TRANSPORT
 * hosts     the ranks are on several hosts
 * root      "", or a folder with a copy of /proc
 * errors    TRIB_ERR_INVALID with a message in err: the file cannot be read, is not a
 *           calibration, or is from another machine. If the file lacks this link,
 *           out->known is 0
 */
trib_status_t trib_calibration_read(const char *path, const char *transport, bool hosts,
                                    const char *root, struct trib_error *err,
                                    struct trib_calibration *out);

/**
 * trib_calibration_agree - combine the ranks' calibrations: the longest times and the
 * lowest rates.
 *
 * The result is known only if every rank's calibration is.
 */
struct trib_calibration trib_calibration_agree(const struct trib_calibration *of,
                                               int ranks);

/** trib_calibration_cost - return a calibration as a cost model, with the default
 * switch time. */
struct trib_cost_model trib_calibration_cost(const struct trib_calibration *c);

#endif
