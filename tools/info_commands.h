/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of trib-info.
 */
#ifndef TOOLS_INFO_COMMANDS_H
#define TOOLS_INFO_COMMANDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/info.h>

#include "tools/options.h"

/* The options, in the order of the table; the first are parts of machine and build. */
enum info_row {
    INFO_TOPOLOGY,
    INFO_CPU,
    INFO_TRANSPORTS,
    INFO_BOOTS,
    INFO_ALGORITHMS,
    INFO_CODECS,
    INFO_MEMORY,
    INFO_CONFIG,
    INFO_SECTIONS, /* how many these are */
    INFO_REACH = INFO_SECTIONS,
    INFO_TOPO,
    INFO_XML,
    INFO_RACKS,
    INFO_FORMAT,
    INFO_DOT,
    INFO_SCHEDULE,
    INFO_PER_HOST,
    INFO_LEADERS,
    INFO_GROUPS,
    INFO_SERVICE,
    INFO_MERGE_TRACE,
    INFO_JSON,
};

/* The finished command line. Texts point into argv; NULL: not given. */
struct info_request {
    uint32_t given; /* a bit for each row */
    const char *codec, *xml, *racks, *format, *algorithm, *groups, *service, *merged;
    int per_host, leaders;
    const char **words; /* behind --schedule and --merge-trace */
    size_t n_words;
};

extern const struct tool_command info_command, info_doctor_command, info_stacks_command,
    info_top_command;

/** info_parse_options - request->words has room for argc; returns -1: go on; else the
 * exit code. */
int info_parse_options(int argc, char **argv, struct info_request *request);

/** info_print_json - print the version and a list by this name; its reference is taken.
 * false: no memory. */
bool info_print_json(const char *name, json_t *list);

bool info_given(const struct info_request *request, enum info_row row);
const char *info_row_name(enum info_row row);

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

/** info_topo, _schedule, _merge_trace - what such a request asks for; the exit code. */
int info_topo(const struct info_request *request);
int info_schedule(const struct info_request *request);
int info_merge_trace(const struct info_request *request);

/** info_stacks - "stacks" and its options; returns the exit code. */
int info_stacks(int argc, char **argv);

/** info_take_pid - a word that is the number of a process, once, into *pid. */
bool info_take_pid(const struct tool_given *given, const char *value, int *pid);

/** info_top - "top" and its options; returns the exit code. */
int info_top(int argc, char **argv);

/** info_tribd_status - what a tribd says at http://HOST:PORT/status; NULL after a
 * sentence in why. The caller decrements it. */
json_t *info_tribd_status(const char *url, char *why, size_t bytes);

/** info_tribd_print - the jobs of a status, and their rates since the one before. */
void info_tribd_print(const json_t *status, const json_t *before);

/** info_doctor - "doctor" and its options; returns the exit code. */
int info_doctor(int argc, char **argv);

#endif
