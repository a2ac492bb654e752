/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-perf calibrate: what the network between the ranks of a job takes, for
 * TRIB_CALIBRATION.
 *
 *     calibrate.c        command line, measurements, table
 *     calibratefile.c    the file
 */
#ifndef PERF_CALIBRATE_H
#define PERF_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/options.h"

/* The slowest pair of ranks, and the slowest rank. */
struct calibrate_link {
    char transport[64]; /* TRIB_TRANSPORT */
    bool hosts; /* the ranks are on several */
    int ranks;
    double hop_us; /* one way of a message of 8 bytes */
    double message_us; /* of a rank for one of many such messages */
    double wire_Bps; /* each way, both ways at once */
    double sum_Bps; /* bytes of contributions that a rank sums */
};

int calibrate_main(int argc, char **argv);

extern const struct tool_command calibrate_command;

/**
 * calibrate_write - put a link into a file, in place of the one of the same transport
 * and scope. What the file has of other links of this machine stays.
 *
 * why      receives a sentence where it fails
 */
bool calibrate_write(const char *path, const struct calibrate_link *link, char *why,
                     size_t why_bytes);

#endif
