/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of trib-info.
 */
#ifndef TOOLS_INFO_H
#define TOOLS_INFO_H

#include <stdbool.h>

/**
 * info_reach - join the job as a rank; rank 0 prints by what each rank reaches each.
 *
 * returns  exit code: 1 where a rank cannot be reached or the job failed
 */
int info_reach(bool json);

/** info_doctor - "doctor" and its options; returns the exit code. */
int info_doctor(int argc, char **argv);

#endif
