/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Redirects paths of RDMA devices in /sys, /dev and configfs to files of the fake.
 */
#ifndef TESTS_FABRIC_FABRIC_PATHS_H
#define TESTS_FABRIC_FABRIC_PATHS_H

/** fabric_paths_begin - write them to a folder next to the fabric's file. */
void fabric_paths_begin(const char *fabric);

#endif
