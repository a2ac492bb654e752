/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a target says that an input was all that it should be: it defines the counter,
 * and counts. Seeds whose names begin with "good" must be, or replay.c fails: else a
 * corpus that a new check refuses at its first byte would be replayed for ever, and
 * teach nothing.
 */
#ifndef TESTS_FUZZ_REACH_H
#define TESTS_FUZZ_REACH_H

extern unsigned fuzz_reached __attribute__((weak)); /* of targets without one: not
                                                     * there */

#endif
