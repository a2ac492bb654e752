/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of trib-info.
 */
#ifndef TOOLS_INFO_INFO_COMMANDS_H
#define TOOLS_INFO_INFO_COMMANDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/info.h>

#include "tools/common/options.h"

/* Options, in the order of the table. The first INFO_SECTIONS are sections on machine
 * and build. */
enum info_row {
    INFO_TOPOLOGY,
    INFO_CPU,
    INFO_TRANSPORTS,
    INFO_BOOTS,
    INFO_ALGORITHMS,
    INFO_CODECS,
    INFO_MEMORY,
    INFO_CONFIG,
    INFO_SECTIONS, /* number of sections */
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

/* The parsed command line. Texts point into argv; NULL: not given. */
struct info_request {
    uint32_t given; /* bit per row */
    const char *codec, *xml, *racks, *format, *algorithm, *groups, *service, *merged;
    int per_host, leaders;
    const char **words; /* operands of --schedule and --merge-trace */
    size_t n_words;
};

extern const struct tool_command info_command, info_doctor_command, info_stacks_command,
    info_top_command;

/** info_parse_options - parse the command line. request->words must have room for argc.
 * Return -1 to continue, else the exit code. */
int info_parse_options(int argc, char **argv, struct info_request *request);

/** info_print_json - print the version and a list under this name. Consumes the
 * reference to list. Return false if out of memory. */
bool info_print_json(const char *name, json_t *list);

/** info_print_document - print a document, and drop the reference to it. Return false
 * if out of memory. */
bool info_print_document(json_t *document);

bool info_given(const struct info_request *request, enum info_row row);
const char *info_row_name(enum info_row row);

/**
 * info_reach - join the job as a rank; rank 0 prints the transport between each pair.
 *
 * returns  exit code: 1 if a rank is unreachable or the job failed
 */
int info_reach(bool json);

/** info_codecs - print the table under its title, or the sheet of codec if not NULL. */
trib_status_t info_codecs(const char *title, const char *codec);

/** info_codecs_json - append the sheet of each row, or the sheet of codec if not
 * NULL. */
trib_status_t info_codecs_json(json_t *list, const char *codec);

/** info_topo, _schedule, _merge_trace - execute such a request; return the exit
 * code. */
int info_topo(const struct info_request *request);
int info_schedule(const struct info_request *request);
int info_merge_trace(const struct info_request *request);

/** info_stacks - run "stacks" with its options; return the exit code. */
int info_stacks(int argc, char **argv);

/** info_take_pid - store an operand that is a process ID in *pid; reject a second
 * one. */
bool info_take_pid(const struct tool_given *given, const char *value, int *pid);

/** info_top - run "top" with its options; return the exit code. */
int info_top(int argc, char **argv);

/** info_tribd_status - fetch http://HOST:PORT/status of a tribd. Return NULL after an
 * error message in why. The caller owns the returned reference. */
json_t *info_tribd_status(const char *url, char *why, size_t bytes);

/** info_tribd_print - print the jobs of a status, and their rates since `before`. */
void info_tribd_print(const json_t *status, const json_t *before);

/** info_doctor - run "doctor" with its options; return the exit code. */
int info_doctor(int argc, char **argv);

#endif
