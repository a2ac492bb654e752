/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of trib-info.
 */
#ifndef TOOLS_INFO_COMMANDS_H
#define TOOLS_INFO_COMMANDS_H

#include <jansson.h>
#include <stdbool.h>

#include <tributary/info.h>

/**
 * info_reach - join the job as a rank; rank 0 prints by what each rank reaches each.
 *
 * returns  exit code: 1 where a rank cannot be reached or the job failed
 */
int info_reach(bool json);

/** info_codecs - print the table below its title, or, unless codec is NULL, its
 * sheet. */
trib_status_t info_codecs(const char *title, const char *codec);

/** info_codecs_json - append the sheet of each row, or that of a codec. */
trib_status_t info_codecs_json(json_t *list, const char *codec);

/** info_is_topo - "--topo", or an option that only goes with it. */
bool info_is_topo(const char *option);

/** info_topo - the options of --topo, all of argv behind the first; returns the exit
 * code. */
int info_topo(int argc, char **argv);

/** info_schedule - all of argv, which has --schedule; returns the exit code. */
int info_schedule(int argc, char **argv);

/** info_merge_trace - the n words behind --merge-trace: the file, and its parts;
 * returns the exit code. */
int info_merge_trace(int n, char **words);

/** info_doctor - "doctor" and its options; returns the exit code. */
int info_doctor(int argc, char **argv);

#endif
