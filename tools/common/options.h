/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command-line parsing for all programs. One table of options drives the parser,
 * --help, the option headings of the manual page, and shell completion.
 *
 * The parser is getopt_long: "-n2", "-n 2", "--ranks 2" and "--ranks=2" are equivalent,
 * unambiguous prefixes of names are accepted, and "--" ends the options. A setter
 * writes to its row's offset in a struct of arguments, so programs share the setters
 * below, each with its own struct.
 *
 *     options.c         parser
 *     option_rows.c     rows of a table, words
 *     option_setters.c  setters
 *     option_names.c    nearest match of a misspelt name
 *     option_help.c     --help
 *     completion.c      --completion bash, zsh and fish
 */
#ifndef TOOLS_COMMON_OPTIONS_H
#define TOOLS_COMMON_OPTIONS_H

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
    const struct tool_option *option; /* NULL: an operand */
    void *args;
    FILE *err;
};

/* Parse value into given->args. value is NULL for a switch, and for an omitted optional
 * value. Return false after an error message on given->err. */
typedef bool (*tool_set_fn)(const struct tool_given *given, const char *value);

struct tool_option {
    const char *name; /* "ranks", without dashes; NULL: `help` is a heading */
    const char *value; /* "RANKS" in --help; "[CODEC]": optional; NULL: a switch */
    tool_set_fn set;
    size_t at; /* offset of the target field; 0 if the setter does not use it */
    const char *help;
    char letter; /* 'n'; 0: none */
    const char *words; /* allowed values, separated by spaces; NULL: any */
    double least; /* minimum of a number */
    double most; /* maximum; 0: no limit */
    unsigned of; /* bit m: effective in mode m of the command; 0: in all modes */
};

struct tool_command {
    const char *name; /* as the user types it: "trib-perf put" */
    const char *usage; /* above the options in --help */
    void (*print)(void); /* print text between options and `ending`; NULL: nothing */
    const char *ending;
    const struct tool_option *options;
    size_t n_options;
    tool_set_fn word; /* called for each operand, in order; NULL: none accepted */
    const char *words; /* operands, for completion; "FILE": a file; NULL: any */
    const char *const *modes; /* as typed, NULL-terminated; NULL: one mode */
    /* With modes: offset of a uint64_t in args; bit i: options[i] was given. */
    size_t given;
    /* Stop at the first operand; store a char ** to the remaining words at `rest`. */
    bool stops;
    size_t rest;
};

/**
 * tool_parse - parse argv[1] and later words into *args.
 *
 * returns  -1: continue; 0 after --help or --version; 2 after an error message on err
 */
int tool_parse(const struct tool_command *command, int argc, char **argv, void *args,
               FILE *err);

/**
 * tool_completion - handle "--completion SHELL" if these are the arguments.
 *
 * commands  the program itself and its subcommands; NULL-terminated
 * returns   -1 if completion was not requested; else the exit code
 */
int tool_completion(int argc, char **argv, const struct tool_command *const *commands);

/** tool_parse_program - call tool_completion, then tool_parse; for a program with one
 * command. */
int tool_parse_program(const struct tool_command *command, int argc, char **argv,
                       void *args, FILE *err);

/* Error messages ------------------------------------------------------------------- */

/** tool_refuse - print "trib-perf: --chunk '0' is not a size such as 256K."; format is
 * the text after the value. Return false. */
bool tool_refuse(const struct tool_given *given, const char *value, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/** tool_say - print an error message prefixed with the program's name. Return false. */
bool tool_say(const struct tool_given *given, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** tool_refuse_word - reject an operand; the `word` function of commands that accept
 * only options. */
bool tool_refuse_word(const struct tool_given *given, const char *word);

/**
 * tool_check_mode - reject an option that was given but has no effect in a mode.
 *
 * returns  false after an error message on err that lists the option's modes
 */
bool tool_check_mode(const struct tool_command *command, const void *args, int mode,
                     FILE *err);

/* Setters -------------------------------------------------------------------------- */

/** tool_target - return the field written by the setter of a row. */
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

/** tool_set_choice - store the index of value among the row's words, in an int or
 * enum. */
bool tool_set_choice(const struct tool_given *given, const char *value);

/** tool_set_second - store in a bool whether value is the second of the row's two
 * words. */
bool tool_set_second(const struct tool_given *given, const char *value);

/* Names ---------------------------------------------------------------------------- */

#define TOOL_NAMES_MAX 72 /* fits all options of a program plus --help and --version */

struct tool_names {
    const char *item[TOOL_NAMES_MAX];
    size_t n;
};

/** tool_nearest - return the nearest of n names within 3 edits, or NULL. */
const char *tool_nearest(const char *text, const char *const *names, size_t n);

/** tool_wrong_name - report an unknown `what`, the nearest match and all valid names.
 * Return false. */
bool tool_wrong_name(const struct tool_given *given, const char *what, const char *text,
                     const struct tool_names *names);

/** tool_optional - return true if the value of an option may be omitted. */
static inline bool tool_optional(const struct tool_option *option)
{
    const char *value = option->value;

    return value && value[0] == '[' && value[strlen(value) - 1] == ']';
}

/* Internal ------------------------------------------------------------------------- */

/* Rows that every program has in addition to its own. */
extern const struct tool_option tool_builtin[];
enum { TOOL_HELP, TOOL_VERSION, TOOL_BUILTIN };

/** tool_program - return the length of the program's name within a command's name. */
int tool_program(const struct tool_command *command);

/** tool_row - return options[at], then the built-in rows; NULL after the last. */
const struct tool_option *tool_row(const struct tool_command *command, size_t at);

/** tool_word - advance *at to the next word and return its length; 0: no word left. */
size_t tool_word(const char **at);

void tool_help(const struct tool_command *command);

#endif
