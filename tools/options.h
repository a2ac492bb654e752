/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command lines of all programs: one table of options gives parser, --help, the heads
 * of the manual page, and completion.
 *
 * The parser is getopt_long: "-n2", "-n 2", "--ranks 2" and "--ranks=2" are the
 * same, names may be cut where one option alone begins so, and "--" ends the options. A
 * setter writes into a struct of arguments at the offset of its row, so that programs
 * share the setters below, each with a struct of its own.
 *
 *     options.c         parser
 *     option_rows.c     rows of a table, words
 *     option_setters.c  setters
 *     option_names.c    the nearest to a misspelt name
 *     option_help.c     --help
 *     completion.c      --completion bash, zsh and fish
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TOOL_OPTIONS_MAX 64

struct tool_command;
struct tool_option;

/* The argument of a setter. */
struct tool_given {
    const struct tool_command *command;
    const struct tool_option *option; /* NULL: a word that is no option */
    void *args;
    FILE *err;
};

/* Reads value into given->args; value is NULL for a switch, and for a value that may be
 * left out and was. Returns false after a sentence on given->err. */
typedef bool (*tool_set_fn)(const struct tool_given *given, const char *value);

struct tool_option {
    const char *name; /* "ranks", without dashes; NULL: `help` is a heading */
    const char
        *value; /* "RANKS" in --help, "[CODEC]": may be left out; NULL: a switch */
    tool_set_fn set;
    size_t at; /* offset of what it sets; 0 where the setter knows */
    const char *help;
    char letter; /* 'n'; 0: none */
    const char *words; /* that the value may be, with spaces between; NULL: any */
    double least; /* of a number */
    double most; /* 0: no limit */
    unsigned of; /* bit m: it has an effect in mode m of the command; 0: in all */
};

struct tool_command {
    const char *name; /* as the user types it: "trib-perf put" */
    const char *usage; /* above the options in --help */
    void (*print)(void); /* what comes below them, before the ending; NULL: nothing */
    const char *ending;
    const struct tool_option *options;
    size_t n_options;
    tool_set_fn
        word; /* of a word that is no option, in its turn; NULL: none is taken */
    const char
        *words; /* that words may be, for completion; "FILE": a file; NULL: any */
    const char *const *modes; /* as the user types them, NULL at the end; NULL: one */
    size_t given; /* where modes: offset of a uint64_t of args, bit i: options[i] */
    bool stops; /* the first word and all behind it are left, to a char ** at `rest` */
    size_t rest;
};

/**
 * tool_parse - read the words behind argv[0] into *args.
 *
 * returns  -1: go on; 0 after --help or --version; 2 after a sentence on err
 */
int tool_parse(const struct tool_command *command, int argc, char **argv, void *args,
               FILE *err);

/**
 * tool_completion - obey "--completion SHELL", where these are the arguments.
 *
 * commands  the program's, and those that its first word names; NULL ends them
 * returns   -1: it is not asked for; else the exit code
 */
int tool_completion(int argc, char **argv, const struct tool_command *const *commands);

/** tool_parse_program - tool_completion, then tool_parse: of a program with one
 * command. */
int tool_parse_program(const struct tool_command *command, int argc, char **argv,
                       void *args, FILE *err);

/* Sentences ------------------------------------------------------------------------ */

/** tool_refuse - "trib-perf: --chunk '0' is not a size such as 256K.": the format is
 * what stands behind the value; returns false. */
bool tool_refuse(const struct tool_given *given, const char *value, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/** tool_say - a sentence behind the program's name; returns false. */
bool tool_say(const struct tool_given *given, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** tool_refuse_word - a `word` of commands that take options alone. */
bool tool_refuse_word(const struct tool_given *given, const char *word);

/**
 * tool_check_mode - refuse an option that was given and has no effect in a mode.
 *
 * returns  false after a sentence on err, which names the modes of the option
 */
bool tool_check_mode(const struct tool_command *command, const void *args, int mode,
                     FILE *err);

/* Setters -------------------------------------------------------------------------- */

/** tool_target - the field that the setter of a row writes. */
static inline void *tool_target(const struct tool_given *given)
{
    return (char *)given->args + given->option->at;
}

bool tool_set_text(const struct tool_given *given,
                   const char *value); /* const char *, points into argv */
bool tool_set_switch(const struct tool_given *given, const char *value); /* bool */
bool tool_set_int(const struct tool_given *given, const char *value); /* int */
bool tool_set_long(const struct tool_given *given, const char *value); /* long */
bool tool_set_size(const struct tool_given *given, const char *value); /* size_t */
bool tool_set_number(const struct tool_given *given, const char *value); /* double */

/** tool_set_choice - the place of value among the row's words, in an int or an enum. */
bool tool_set_choice(const struct tool_given *given, const char *value);

/** tool_set_second - in a bool: is value the second of the row's two words? */
bool tool_set_second(const struct tool_given *given, const char *value);

/* Names ---------------------------------------------------------------------------- */

#define TOOL_NAMES_MAX 72 /* the options of a program, --help and --version fit */

struct tool_names {
    const char *item[TOOL_NAMES_MAX];
    size_t n;
};

/** tool_nearest - the nearest of n names within 3 edits, or NULL. */
const char *tool_nearest(const char *text, const char *const *names, size_t n);

/** tool_wrong_name - say that there is no such `what`, what is near, what there is;
 * returns false. */
bool tool_wrong_name(const struct tool_given *given, const char *what, const char *text,
                     const struct tool_names *names);

/** tool_optional - true if the value of an option may be left out. */
static inline bool tool_optional(const struct tool_option *option)
{
    const char *value = option->value;

    return value && value[0] == '[' && value[strlen(value) - 1] == ']';
}

/* Between the files ---------------------------------------------------------------- */

/* The rows that each program has beside its own. */
extern const struct tool_option tool_builtin[];
enum { TOOL_HELP, TOOL_VERSION, TOOL_BUILTIN };

/** tool_program - length of the program's name in that of a command. */
int tool_program(const struct tool_command *command);

/** tool_row - options[at], then the rows that each program has; NULL behind the
 * last. */
const struct tool_option *tool_row(const struct tool_command *command, size_t at);

/** tool_word - the length of the word at *at, which goes to its first byte; 0: none. */
size_t tool_word(const char **at);

void tool_help(const struct tool_command *command);

#endif
