/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of trib-info.
 */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

/** info_doctor - "doctor" and its options; returns the exit code. */
int info_doctor(int argc, char **argv);

#endif
