/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command lines: one table of options gives parser and --help.
 *
 * A setter writes into a struct of arguments at the offset of its row, so that the
 * commands of trib-perf share the setters below, each with a struct of its own.
 */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct perf_option;
struct perf_sizes;

/* Reads value (NULL for a switch) into *args; false after a sentence on err. */
typedef bool (*perf_set_fn)(const struct perf_option *option, void *args,
                            const char *value, FILE *err);

struct perf_option {
    const char *name;
    const char *value; /* what stands for it in --help; NULL: a switch */
    perf_set_fn set;
    size_t at; /* offset of what it sets; 0 where the setter knows */
    long least; /* of a number */
    const char *help;
};

/* The field that the setter of a row writes. */
static inline void *perf_option_target(const struct perf_option *option, void *args)
{
    return (char *)args + option->at;
}

bool perf_set_text(const struct perf_option *option, void *args, const char *value,
                   FILE *err); /* const char *, points into argv */
bool perf_set_switch(const struct perf_option *option, void *args, const char *value,
                     FILE *err); /* bool */
bool perf_set_long(const struct perf_option *option, void *args, const char *value,
                   FILE *err); /* long */
bool perf_set_int(const struct perf_option *option, void *args, const char *value,
                  FILE *err); /* int, up to 4096 */
bool perf_set_sizes(const struct perf_option *option, void *args, const char *value,
                    FILE *err); /* struct perf_sizes */
bool perf_set_bind(const struct perf_option *option, void *args, const char *value,
                   FILE *err); /* enum tool_bind */

/* In arguments.c; args begins with a struct perf_args. */
bool perf_set_codec(const struct perf_option *option, void *args, const char *value,
                    FILE *err);
bool perf_set_chunk(const struct perf_option *option, void *args, const char *value,
                    FILE *err);
bool perf_set_density(const struct perf_option *option, void *args, const char *value,
                      FILE *err);
bool perf_set_memory(const struct perf_option *option, void *args, const char *value,
                     FILE *err); /* enum perf_memory */

#define PERF_NAMES_MAX 64

struct perf_names {
    const char *item[PERF_NAMES_MAX];
    size_t n;
};

/** perf_wrong_name - say that there is no such `what`, what is near, what there is. */
bool perf_wrong_name(FILE *err, const char *what, const char *text,
                     const struct perf_names *names); /* always false */

/** perf_choose - the place of value among the names; -1 after a sentence. */
int perf_choose(const char *what, const char *value, const struct perf_names *names,
                FILE *err);

struct perf_command {
    const char *name; /* as the user types it: "trib-perf put" */
    const char *usage; /* above the options in --help */
    const char *ending; /* below them */
    const struct perf_option *options;
    size_t n_options;
    /* A word that is no option, in its turn; false after a sentence on err. */
    bool (*word)(void *args, const char *text, FILE *err);
};

/**
 * perf_command_parse - read the words behind argv[0] into *args.
 *
 * returns  -1: go on; 0 after --help or --version; 2 after a sentence on err
 */
int perf_command_parse(const struct perf_command *command, int argc, char **argv,
                       void *args, FILE *err);

/** perf_float_sizes - sizes of float32; those of `preset` where none are given (NULL:
 * none either). false after a sentence: one is no whole number of them. */
bool perf_float_sizes(struct perf_sizes *sizes, const char *preset, FILE *err);

/** perf_outputs_differ - false after a sentence: both csv and json go to one place. */
bool perf_outputs_differ(const char *csv, const char *json, FILE *err);

#endif
