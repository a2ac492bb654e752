/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf calibrate: measure the network between the ranks of a job and write the
 * file for TRIB_CALIBRATION.
 *
 *     calibrate.c        command line, measurements, table
 *     calibratefile.c    the file
 */
#ifndef PERF_COLL_CALIBRATE_H
#define PERF_COLL_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/common/options.h"

/* Results of the slowest pair of ranks and of the slowest rank. */
struct calibrate_link {
    char transport[64]; /* TRIB_TRANSPORT */
    bool hosts; /* the ranks are on several hosts */
    int ranks;
    double hop_us; /* one-way latency of an 8-byte message */
    double message_us; /* cost per message of a burst of 8-byte messages */
    double wire_Bps; /* bytes/s in each direction, both at once */
    double sum_Bps; /* bytes/s of contributions that a rank sums */
};

int calibrate_main(int argc, char **argv);

extern const struct tool_command calibrate_command;

/**
 * calibrate_write - write a link into a file, replacing the entry of the same transport
 * and scope. Other links of this machine are kept.
 *
 * why      receives a message on failure
 */
bool calibrate_write(const char *path, const struct calibrate_link *link, char *why,
                     size_t why_bytes);

#endif
