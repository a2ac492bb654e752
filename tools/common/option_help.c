/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/options.h"

#include <string.h>

enum {
    WIDTH = 80, /* of a line */
    COLUMN_MOST = 30, /* maximum column where help texts begin */
    COLUMN_LEAST = 20,
    HEAD = 6, /* "  -n, " */
};

/* Columns of a UTF-8 text; continuation bytes take none. */
static int columns(const char *text, size_t bytes)
{
    int n = 0;

    for (size_t i = 0; i < bytes; i++)
        n += (text[i] & 0xC0) != 0x80;
    return n;
}

static int width_of(const struct tool_option *row)
{
    const int value = row->value ? (int)strlen(row->value) + 1 : 0;

    return HEAD + 2 + (int)strlen(row->name) + value;
}

/* Return the common help column; rows that are much longer are ignored. */
static int column_of(const struct tool_command *command)
{
    const struct tool_option *row;
    int column = COLUMN_LEAST;

    for (size_t i = 0; (row = tool_row(command, i)); i++) {
        const int width = row->name ? width_of(row) + 2 : 0;
        if (width > column && width <= COLUMN_MOST)
            column = width;
    }
    return column;
}

/* Print words wrapped to start at `column`; the first line already reaches `at`. */
static void print_wrapped(const char *text, int column, int at)
{
    size_t bytes;
    bool first = true;

    for (const char *word = text; (bytes = tool_word(&word)); word += bytes) {
        const int n = columns(word, bytes);
        if (at + n + !first > WIDTH && at > column) {
            printf("\n%*s", column, "");
            at = column;
            first = true;
        }
        printf("%s%.*s", first ? "" : " ", (int)bytes, word);
        at += n + !first;
        first = false;
    }
    putchar('\n');
}

static void print_row(const struct tool_option *row, int column)
{
    int at = width_of(row);

    if (row->letter)
        printf("  -%c, --%s", row->letter, row->name);
    else
        printf("      --%s", row->name);
    if (tool_optional(row))
        printf("[=%s", row->value + 1);
    else if (row->value)
        printf(" %s", row->value);
    if (at + 2 > column) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", column - at, "");
    print_wrapped(row->help, column, column);
}

void tool_help(const struct tool_command *command)
{
    const struct tool_option *row;
    const int column = column_of(command);

    puts(command->usage);
    for (size_t i = 0; (row = tool_row(command, i)); i++) {
        if (row->name)
            print_row(row, column);
        else
            puts(row->help);
    }
    if (!strchr(command->name, ' '))
        print_row(
            &(struct tool_option){
                "completion", "SHELL",
                .help = "print the completion script for bash, zsh or fish, and exit; "
                        "must be the only option"},
            column);
    if (command->print) {
        putchar('\n');
        command->print();
    }
    printf("\n%s\n", command->ending);
}
