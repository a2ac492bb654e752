/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf/perf.h"

/* --- names --- */

bool perf_wrong_name(FILE *err, const char *what, const char *text,
                     const struct perf_names *names)
{
    const char *nearest = perf_name_nearest(text, names->item, names->n);
    fprintf(err, "trib-perf: there is no %s '%s'", what, text);
    if (nearest != NULL)
        fprintf(err, "; did you mean %s? Choose from", nearest);
    else
        fputs(". Choose from", err);
    for (size_t i = 0; i < names->n; i++)
        fprintf(err, "%s %s", i == 0 ? "" : ",", names->item[i]);
    fputs(".\n", err);
    return false;
}

int perf_choose(const char *what, const char *value, const struct perf_names *names,
                FILE *err)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(value, names->item[i]) == 0)
            return (int)i;
    }
    perf_wrong_name(err, what, value, names);
    return -1;
}

/* --- setters --- */

bool perf_set_text(const struct perf_option *option, void *args, const char *value,
                   FILE *err)
{
    (void)err;
    *(const char **)perf_option_target(option, args) = value;
    return true;
}

bool perf_set_switch(const struct perf_option *option, void *args, const char *value,
                     FILE *err)
{
    (void)value;
    (void)err;
    *(bool *)perf_option_target(option, args) = true;
    return true;
}

static bool parse_long(const struct perf_option *option, const char *value, long *out,
                       FILE *err)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno != 0 || end == value || *end != '\0' || number < option->least) {
        fprintf(err, "trib-perf: %s '%s' is not a whole number of at least %ld.\n",
                option->name, value, option->least);
        return false;
    }
    *out = number;
    return true;
}

bool perf_set_long(const struct perf_option *option, void *args, const char *value,
                   FILE *err)
{
    return parse_long(option, value, perf_option_target(option, args), err);
}

bool perf_set_int(const struct perf_option *option, void *args, const char *value,
                  FILE *err)
{
    long number;
    if (!parse_long(option, value, &number, err))
        return false;
    if (number > 4096) {
        fprintf(err, "trib-perf: %s '%s' is above 4096.\n", option->name, value);
        return false;
    }
    *(int *)perf_option_target(option, args) = (int)number;
    return true;
}

bool perf_set_sizes(const struct perf_option *option, void *args, const char *value,
                    FILE *err)
{
    struct perf_sizes *sizes = perf_option_target(option, args);
    char why[256];
    perf_sizes_free(sizes);
    if (perf_sizes_parse(value, sizes, why, sizeof(why)))
        return true;
    fprintf(err, "trib-perf: %s %s.\n", option->name, why);
    return false;
}

bool perf_set_bind(const struct perf_option *option, void *args, const char *value,
                   FILE *err)
{
    static const struct perf_names names = {{"none", "core"}, 2};
    int choice = perf_choose("binding", value, &names, err);
    *(enum tool_bind *)perf_option_target(option, args) = (enum tool_bind)choice;
    return choice >= 0;
}

/* --- the whole line --- */

static void print_help(const struct perf_command *command)
{
    int name = 12, value = 6;
    for (size_t i = 0; i < command->n_options; i++) {
        const struct perf_option *o = &command->options[i];
        int name_length = (int)strlen(o->name);
        int value_length = o->value == NULL ? 0 : (int)strlen(o->value);
        name = name_length > name ? name_length : name;
        value = value_length > value ? value_length : value;
    }
    puts(command->usage);
    for (size_t i = 0; i < command->n_options; i++) {
        const struct perf_option *o = &command->options[i];
        printf("  %-*s %-*s %s\n", name, o->name, value,
               o->value == NULL ? "" : o->value, o->help);
    }
    printf("  --help, --version\n\n%s\n", command->ending);
}

static const struct perf_option *find_option(const struct perf_command *command,
                                             const char *name, size_t length)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const struct perf_option *o = &command->options[i];
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    }
    return NULL;
}

static bool unknown_option(const struct perf_command *command, const char *text,
                           FILE *err)
{
    struct perf_names names = {.n = command->n_options};
    for (size_t i = 0; i < names.n; i++)
        names.item[i] = command->options[i].name;
    const char *nearest = perf_name_nearest(text, names.item, names.n);
    fprintf(err, "trib-perf: there is no option '%s'", text);
    if (nearest != NULL)
        fprintf(err, "; did you mean %s?", nearest);
    else
        fputs(";", err);
    fprintf(err, " %s --help lists them.\n", command->name);
    return false;
}

struct line {
    int argc;
    char **argv;
    int at; /* the word that is read */
};

/* Reads the option that the line is at, and moves it to its last word. */
static bool parse_option(const struct perf_command *command, struct line *line,
                         void *args, FILE *err)
{
    const char *text = line->argv[line->at];
    size_t length = strcspn(text, "=");
    const struct perf_option *option = find_option(command, text, length);
    const char *value = text[length] == '=' ? text + length + 1 : NULL;

    if (option == NULL)
        return unknown_option(command, text, err);
    if (option->value == NULL && value != NULL) {
        fprintf(err, "trib-perf: %s takes no value.\n", option->name);
        return false;
    }
    if (option->value != NULL && value == NULL) {
        if (line->at + 1 >= line->argc) {
            fprintf(err, "trib-perf: %s needs a value: %s.\n", option->name,
                    option->value);
            return false;
        }
        value = line->argv[++line->at];
    }
    return option->set(option, args, value, err);
}

int perf_command_parse(const struct perf_command *command, int argc, char **argv,
                       void *args, FILE *err)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command);
            return 0;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("trib-perf %s\n", trib_version());
            return 0;
        }
    }
    struct line line = {.argc = argc, .argv = argv, .at = 1};
    for (; line.at < argc; line.at++) {
        const char *text = argv[line.at];
        bool good = text[0] == '-' ? parse_option(command, &line, args, err)
                                   : command->word(args, text, err);
        if (!good)
            return 2;
    }
    return -1;
}

bool perf_float_sizes(struct perf_sizes *sizes, const char *preset, FILE *err)
{
    char why[256];

    if (preset != NULL && sizes->n == 0 &&
        !perf_sizes_parse(preset, sizes, why, sizeof(why))) {
        fprintf(err, "trib-perf: --sizes %s.\n", why);
        return false;
    }
    for (size_t i = 0; i < sizes->n; i++) {
        const size_t bytes = sizes->bytes[i];
        if (bytes >= sizeof(float) && bytes % sizeof(float) == 0)
            continue;
        fprintf(err, "trib-perf: --sizes: %zu bytes are no whole number of float32.\n",
                bytes);
        return false;
    }
    return true;
}

bool perf_outputs_differ(const char *csv, const char *json, FILE *err)
{
    if (csv == NULL || json == NULL || strcmp(csv, json) != 0)
        return true;
    fprintf(err, "trib-perf: --csv and --json cannot both write to %s.\n",
            strcmp(csv, "-") == 0 ? "standard output" : csv);
    return false;
}
