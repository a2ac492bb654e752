/* SPDX-License-Identifier: BSD-3-Clause */
#include "build-config.h"
#include "tools/common/options.h"

#include <assert.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

enum {
    FIRST_KEY = 256, /* key of the first long name; above all letters */
    A_WORD = 1, /* getopt's key for an operand */
};

/* Error messages ------------------------------------------------------------------- */

static void begin_sentence(const struct tool_given *given)
{
    fprintf(given->err, "%.*s: ", tool_program(given->command), given->command->name);
}

bool tool_say(const struct tool_given *given, const char *format, ...)
{
    va_list list;

    begin_sentence(given);
    va_start(list, format);
    vfprintf(given->err, format, list);
    va_end(list);
    fputs(".\n", given->err);
    return false;
}

bool tool_refuse(const struct tool_given *given, const char *value, const char *format,
                 ...)
{
    const struct tool_option *option = given->option;
    va_list list;

    begin_sentence(given);
    if (option && option->letter)
        fprintf(given->err, "-%c, ", option->letter);
    if (option)
        fprintf(given->err, "--%s ", option->name);
    fprintf(given->err, "'%s' ", value);
    va_start(list, format);
    vfprintf(given->err, format, list);
    va_end(list);
    fputs(".\n", given->err);
    return false;
}

bool tool_refuse_word(const struct tool_given *given, const char *word)
{
    return tool_say(given, "%s accepts only options, not '%s'; see %s --help",
                    given->command->name, word, given->command->name);
}

/* The parser ----------------------------------------------------------------------- */

/* The table in the form that getopt_long reads. */
struct forms {
    char letters[2 * TOOL_OPTIONS_MAX + 8];
    struct option names[TOOL_OPTIONS_MAX + TOOL_BUILTIN + 1];
};

static int argument_of(const struct tool_option *row)
{
    if (!row->value)
        return no_argument;
    return tool_optional(row) ? optional_argument : required_argument;
}

/* '-': getopt returns operands in order; '+': it stops at the first. ':': it reports
 * which value is missing. */
static void make_forms(const struct tool_command *command, struct forms *forms)
{
    const struct tool_option *row;
    char *letter = forms->letters;
    size_t n = 0;

    assert(command->n_options <= TOOL_OPTIONS_MAX);
    *letter++ = command->stops ? '+' : '-';
    *letter++ = ':';
    for (size_t i = 0; (row = tool_row(command, i)); i++) {
        if (!row->name)
            continue;
        forms->names[n++] =
            (struct option){row->name, argument_of(row), NULL, FIRST_KEY + (int)i};
        if (!row->letter)
            continue;
        *letter++ = row->letter;
        for (int colons = argument_of(row); colons > 0; colons--)
            *letter++ = ':';
    }
    *letter = '\0';
    forms->names[n] = (struct option){0};
}

/* Return the row of a getopt key, or NULL. */
static const struct tool_option *row_of(const struct tool_command *command, int key)
{
    const struct tool_option *row;

    if (key >= FIRST_KEY)
        return tool_row(command, (size_t)(key - FIRST_KEY));
    for (size_t i = 0; (row = tool_row(command, i)); i++)
        if (row->name && row->letter && row->letter == key)
            return row;
    return NULL;
}

/* Report an ambiguous or unknown option name. */
static bool refuse_name(const struct tool_given *given, const char *text)
{
    struct tool_names names = {.n = 0};
    const char *like[TOOL_NAMES_MAX], *name = text + strspn(text, "-");
    const size_t length = strcspn(name, "=");
    const struct tool_option *row;
    size_t n = 0;

    for (size_t i = 0; (row = tool_row(given->command, i)); i++) {
        if (!row->name)
            continue;
        names.item[names.n++] = row->name;
        if (strncmp(row->name, name, length) == 0)
            like[n++] = row->name;
    }
    begin_sentence(given);
    if (n > 1 && length > 0) {
        fprintf(given->err, "'--%.*s' is ambiguous:", (int)length, name);
        for (size_t i = 0; i < n; i++)
            fprintf(given->err, "%s--%s",
                    i == 0      ? " "
                    : i + 1 < n ? ", "
                                : " or ",
                    like[i]);
        fprintf(given->err, "; see %s --help.\n", given->command->name);
        return false;
    }
    char copy[64];
    snprintf(copy, sizeof(copy), "%.*s", (int)length, name);
    const char *nearest = tool_nearest(copy, names.item, names.n);
    fprintf(given->err, "unknown option '%s'", text);
    if (nearest)
        fprintf(given->err, "; did you mean --%s? See %s --help.\n", nearest,
                given->command->name);
    else
        fprintf(given->err, "; see %s --help.\n", given->command->name);
    return false;
}

/*
 * key      '?' or ':' from getopt, for the option with key `which`; which is 0 if
 *          unknown
 * text     the last word that getopt read
 */
static bool refuse(struct tool_given *given, int key, int which, const char *text)
{
    const struct tool_option *row = which ? row_of(given->command, which) : NULL;

    if (row && key == ':')
        return tool_say(given, "--%s needs a value: %s; see %s --help", row->name,
                        row->value, given->command->name);
    if (row)
        return tool_say(given, "--%s takes no value", row->name);
    if (which)
        return tool_say(given, "unknown option '-%c'; see %s --help", which,
                        given->command->name);
    return refuse_name(given, text);
}

static bool take_word(struct tool_given *given, const char *text)
{
    given->option = NULL;
    return given->command->word ? given->command->word(given, text)
                                : tool_refuse_word(given, text);
}

static void say_version(const struct tool_command *command)
{
    printf("%.*s %s\n", tool_program(command), command->name, PACKAGE_VERSION);
}

/* Return true if the word is a complete option name ("--csv --check"). */
static bool is_option(const struct tool_command *command, const char *word)
{
    const struct tool_option *row;

    for (size_t i = 0; (row = tool_row(command, i)); i++)
        if (row->name && strncmp(word, "--", 2) == 0 &&
            strcmp(word + 2, row->name) == 0)
            return true;
    return false;
}

/* Return -1 to continue, else the exit code. value: NULL, the text after '=', or the
 * word `last`. */
static int take_option(struct tool_given *given, int key, const char *value,
                       const char *last)
{
    given->option = row_of(given->command, key);
    if (value && value == last && is_option(given->command, value)) {
        tool_say(given, "--%s needs a value (%s), but is followed by the option %s",
                 given->option->name, given->option->value, value);
        return 2;
    }
    if (given->option == &tool_builtin[TOOL_HELP]) {
        tool_help(given->command);
        return 0;
    }
    if (given->option == &tool_builtin[TOOL_VERSION]) {
        say_version(given->command);
        return 0;
    }
    if (given->command->modes)
        *(uint64_t *)((char *)given->args + given->command->given) |=
            UINT64_C(1) << (given->option - given->command->options);
    return given->option->set(given, value) ? -1 : 2;
}

bool tool_check_mode(const struct tool_command *command, const void *args, int mode,
                     FILE *err)
{
    const uint64_t bits = *(const uint64_t *)((const char *)args + command->given);
    const char *comma = "";

    for (size_t i = 0; i < command->n_options; i++) {
        const struct tool_option *row = &command->options[i];

        if (!(bits >> i & 1) || !row->of || row->of >> mode & 1)
            continue;
        fprintf(err, "%s: --%s has no effect in \"%s\", only in", command->name,
                row->name, command->modes[mode]);
        for (int m = 0; command->modes[m]; m++) {
            if (!(row->of >> m & 1))
                continue;
            fprintf(err, "%s \"%s\"", comma, command->modes[m]);
            comma = ",";
        }
        fputs(".\n", err);
        return false;
    }
    return true;
}

int tool_parse(const struct tool_command *command, int argc, char **argv, void *args,
               FILE *err)
{
    struct tool_given given = {.command = command, .args = args, .err = err};
    struct forms forms;
    int key;

    make_forms(command, &forms);
    optind = 0; /* reset glibc's getopt */
    opterr = 0;
    while (argc > 0 &&
           (key = getopt_long(argc, argv, forms.letters, forms.names, NULL)) != -1) {
        int code = -1;
        if (key == A_WORD)
            code = take_word(&given, optarg) ? -1 : 2;
        else if (key == '?' || key == ':')
            code = refuse(&given, key, optopt, argv[optind - 1]) ? -1 : 2;
        else
            code = take_option(&given, key, optarg, argv[optind - 1]);
        if (code >= 0)
            return code;
    }
    char **rest = argv + (argc > 0 ? optind : 0);
    if (command->stops)
        *(char ***)((char *)args + command->rest) = rest;
    for (; !command->stops && *rest; rest++)
        if (!take_word(&given, *rest))
            return 2;
    return -1;
}
