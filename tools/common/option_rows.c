/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/options.h"

const struct tool_option tool_builtin[] = {
    {"help", NULL, NULL, 0, .help = "show this text", .letter = 'h'},
    {"version", NULL, NULL, 0, .help = "show the version", .letter = 'V'},
};

int tool_program(const struct tool_command *command)
{
    return (int)strcspn(command->name, " ");
}

const struct tool_option *tool_row(const struct tool_command *command, size_t at)
{
    if (at < command->n_options)
        return &command->options[at];
    at -= command->n_options;
    return at < TOOL_BUILTIN ? &tool_builtin[at] : NULL;
}

size_t tool_word(const char **at)
{
    *at += strspn(*at, " ");
    return strcspn(*at, " ");
}
