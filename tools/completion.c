/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion for bash, zsh and fish, from the tables of options.
 *
 * Each shell has a struct of functions: what stands before and behind all commands, and
 * how a command is written. Words in a table are names, so that only texts of --help
 * need quotes.
 */
#include "tools/options.h"

#include <string.h>

/* The kinds of values and words. */
enum kind { KIND_ANY, KIND_FILE, KIND_FOLDER, KIND_WORDS, KIND_LISTED };

struct shell {
    const char *name;
    void (*begin)(const char *program, const struct tool_command *const *commands);
    void (*command)(const char *program, const struct tool_command *const *commands,
                    size_t at);
    void (*end)(const char *program);
};

/* A character with a meaning in the shell, and its replacement; the last has the
 * character 0. */
struct escape {
    char character;
    const char *text;
};

static void print_escaped(const char *text, const struct escape *escapes)
{
    for (; *text; text++) {
        const struct escape *e = escapes;
        while (e->character && e->character != *text)
            e++;
        if (e->character)
            fputs(e->text, stdout);
        else
            putchar(*text);
    }
}

/* A command that prints the names in a list of trib-info, such as "@codecs". */
static void print_listed(const char *words, const struct escape *escapes)
{
    print_escaped("trib-info --", escapes);
    print_escaped(words + 1, escapes);
    print_escaped(" 2>/dev/null | sed -n 's/^  \\([a-z][^ ]*\\).*/\\1/p'", escapes);
}

static enum kind kind_of(const char *value, const char *words)
{
    if (words)
        return words[0] == '@' ? KIND_LISTED : KIND_WORDS;
    if (!value)
        return KIND_ANY;
    if (strstr(value, "FILE"))
        return KIND_FILE;
    return strcmp(value, "DIR") == 0 || strcmp(value, "FOLDER") == 0 ? KIND_FOLDER
                                                                     : KIND_ANY;
}

/* "put" of "trib-perf put"; NULL for the program alone. */
static const char *inner_name(const struct tool_command *command)
{
    const char *space = strchr(command->name, ' ');

    return space ? space + 1 : NULL;
}

static void print_inner_names(const struct tool_command *const *commands)
{
    for (size_t i = 0; commands[i]; i++)
        if (inner_name(commands[i]))
            printf(" %s", inner_name(commands[i]));
}

static void print_options(const struct tool_command *command)
{
    const struct tool_option *row;

    for (size_t i = 0; (row = tool_row(command, i)); i++) {
        if (row->name)
            printf(" --%s", row->name);
        if (row->name && row->letter)
            printf(" -%c", row->letter);
    }
}

/* bash ----------------------------------------------------------------------------- */

static const struct escape no_escapes[] = {{0, NULL}};

/* A name of a function: '-' is allowed in bash, but not in all of its modes. */
static void print_function(const char *program)
{
    putchar('_');
    for (; *program; program++)
        putchar(*program == '-' ? '_' : *program);
}

static void bash_begin(const char *program, const struct tool_command *const *commands)
{
    (void)commands;
    printf("# bash completion of %s, as it prints it itself: %s --completion bash\n"
           "# shellcheck shell=bash\n",
           program, program);
    print_function(program);
    puts(
        "() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - "
        "1]}\n"
        "    local options=\"\" words=\"\" commands=\"\"\n"
        "    COMPREPLY=()\n"
        "    if [[ $word == = ]]; then\n"
        "        word=\"\"\n"
        "    elif [[ $before == = ]]; then\n"
        "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "    fi\n"
        "    case ${COMP_WORDS[1]} in");
}

static bool takes_value(const struct tool_option *row)
{
    return row->name && row->value && !tool_optional(row);
}

static void bash_names(const struct tool_option *row, const char *before)
{
    printf("%s--%s", before, row->name);
    if (row->letter)
        printf(" | -%c", row->letter);
}

/* One case for all options with values of a kind; do_what: what bash does for them. */
static void bash_group(const struct tool_command *command, enum kind kind,
                       const char *do_what)
{
    const char *before = "            ";
    const struct tool_option *row;

    for (size_t i = 0; (row = tool_row(command, i)); i++) {
        if (!takes_value(row) || kind_of(row->value, row->words) != kind)
            continue;
        bash_names(row, before);
        before = " | ";
    }
    if (before[0] == ' ' && before[1] == '|')
        printf(")\n                %s ;;\n", do_what);
}

/* A case for each option whose values have names. */
static void bash_choices(const struct tool_command *command)
{
    const struct tool_option *row;

    for (size_t i = 0; (row = tool_row(command, i)); i++) {
        if (!takes_value(row) || !row->words)
            continue;
        bash_names(row, "            ");
        fputs(")\n                mapfile -t COMPREPLY < <(compgen -W \"", stdout);
        if (row->words[0] == '@') {
            fputs("$(", stdout);
            print_listed(row->words, no_escapes);
            fputs(")", stdout);
        } else {
            fputs(row->words, stdout);
        }
        puts("\" -- \"$word\") ;;");
    }
}

static void bash_command(const char *program,
                         const struct tool_command *const *commands, size_t at)
{
    const struct tool_command *command = commands[at];
    const char *words = command->words ? command->words : "";

    (void)program;
    printf("    %s)\n        options=\"",
           inner_name(command) ? inner_name(command) : "*");
    print_options(command);
    printf("%s\"\n", inner_name(command) ? "" : " --completion");
    if (words[0] == '@') {
        fputs("        words=$(", stdout);
        print_listed(words, no_escapes);
        puts(")");
    } else if (strcmp(words, "FILE") != 0) {
        printf("        words=\"%s\"\n", words);
    }
    if (!inner_name(command)) {
        fputs("        commands=\"", stdout);
        print_inner_names(commands);
        puts("\"");
    }
    puts("        case $before in");
    bash_choices(command);
    bash_group(command, KIND_FOLDER,
               "mapfile -t COMPREPLY < <(compgen -d -- \"$word\")");
    bash_group(command, KIND_FILE, "return"); /* files, by -o default */
    bash_group(command, KIND_ANY, "compopt +o default 2>/dev/null");
    if (command->stops && strcmp(words, "FILE") == 0)
        puts("            --)\n"
             "                mapfile -t COMPREPLY < <(compgen -c -- \"$word\") ;;");
    puts("            *)\n"
         "                if [[ $word == -* ]]; then\n"
         "                    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- "
         "\"$word\")\n"
         "                else\n"
         "                    ((COMP_CWORD == 1)) || commands=\"\"\n"
         "                    mapfile -t COMPREPLY < <(compgen -W \"$words $commands\" "
         "-- \"$word\")\n"
         "                fi ;;\n"
         "        esac ;;");
}

static void bash_end(const char *program)
{
    puts("    esac\n}");
    fputs("complete -o default -F ", stdout);
    print_function(program);
    printf(" %s\n", program);
}

/* zsh ------------------------------------------------------------------------------ */

static void zsh_begin(const char *program, const struct tool_command *const *commands)
{
    (void)commands;
    printf("#compdef %s\n"
           "# zsh completion of %s, as it prints it itself: %s --completion zsh\n",
           program, program, program);
    fputs("_tributary_listed() {\n  compadd -- ${(f)\"$(", stdout);
    print_listed("@$1", no_escapes);
    puts(")\"}\n}\n"
         "local curcontext=$curcontext\n"
         "case $words[2] in");
}

/* Within '…[…]' quotes, brackets and colons have a meaning. */
static const struct escape zsh_texts[] = {
    {'\'', "'\\''"}, {'[', "\\["},   {']', "\\]"},
    {':', "\\:"},    {'\\', "\\\\"}, {0, NULL},
};

static void zsh_action(const char *value, const char *words)
{
    switch (kind_of(value, words)) {
    case KIND_FILE:
        fputs("_files", stdout);
        return;
    case KIND_FOLDER:
        fputs("_files -/", stdout);
        return;
    case KIND_WORDS:
        printf("(%s)", words);
        return;
    case KIND_LISTED:
        printf(" _tributary_listed %s", words + 1);
        return;
    case KIND_ANY:
        return;
    }
}

static void zsh_row(const struct tool_option *row)
{
    const char *name_end = !row->value ? "" : tool_optional(row) ? "=-" : "=";

    if (row->letter)
        printf(" \\\n    '(-%c --%s)'{-%c%s,--%s%s}'[", row->letter, row->name,
               row->letter, row->value ? "+" : "", row->name, name_end);
    else
        printf(" \\\n    '*--%s%s[", row->name, name_end);
    print_escaped(row->help, zsh_texts);
    putchar(']');
    if (row->value) {
        fputs(tool_optional(row) ? "::" : ":", stdout);
        print_escaped(row->value, zsh_texts);
        putchar(':');
        zsh_action(row->value, row->words);
    }
    putchar('\'');
}

static void zsh_command(const char *program, const struct tool_command *const *commands,
                        size_t at)
{
    const struct tool_command *command = commands[at];
    const char *words = command->words ? command->words : "";
    const struct tool_option *row;

    (void)program;
    if (inner_name(command))
        printf("(%s)\n  shift words\n  ((CURRENT--))\n", inner_name(command));
    else
        puts("(*)");
    fputs("  _arguments -s -S", stdout);
    for (size_t i = 0; (row = tool_row(command, i)); i++)
        if (row->name)
            zsh_row(row);
    if (!inner_name(command))
        zsh_row(&(struct tool_option){"completion", "SHELL",
                                      .help = "print the completion for a shell",
                                      .words = "bash zsh fish"});
    if (command->stops && strcmp(words, "FILE") == 0) {
        fputs(" \\\n    '(-)1:program: _command_names -e' '*::arguments: _normal'",
              stdout);
    } else if (strcmp(words, "FILE") == 0 || words[0] == '@') {
        fputs(" \\\n    '*:word:", stdout);
        zsh_action("FILE", words[0] == '@' ? words : NULL);
        putchar('\'');
    } else if (words[0]) {
        printf(" \\\n    '*:word:(%s", words);
        if (!inner_name(command))
            print_inner_names(commands);
        fputs(")'", stdout);
    }
    puts(" ;;");
}

static void zsh_end(const char *program)
{
    (void)program;
    puts("esac");
}

/* fish ----------------------------------------------------------------------------- */

static void fish_begin(const char *program, const struct tool_command *const *commands)
{
    (void)commands;
    printf("# fish completion of %s, as it prints it itself: %s --completion fish\n",
           program, program);
}

static const struct escape fish_quotes[] = {{'\'', "\\'"}, {'\\', "\\\\"}, {0, NULL}};
static const struct escape fish_doubled[] = {{'\\', "\\\\"}, {0, NULL}};

/* When the lines of a command hold. */
static void fish_when(const struct tool_command *const *commands, size_t at)
{
    if (inner_name(commands[at])) {
        printf(" -n '__fish_seen_subcommand_from %s'", inner_name(commands[at]));
        return;
    }
    if (!commands[0] || !commands[1])
        return;
    fputs(" -n 'not __fish_seen_subcommand_from", stdout);
    print_inner_names(commands);
    putchar('\'');
}

static void fish_values(const char *value, const char *words)
{
    switch (kind_of(value, words)) {
    case KIND_FILE:
        fputs(" -r -F", stdout);
        return;
    case KIND_FOLDER:
        fputs(" -x -a '(__fish_complete_directories)'", stdout);
        return;
    case KIND_WORDS:
        printf(" -x -a '%s'", words);
        return;
    case KIND_LISTED:
        fputs(" -x -a \"(", stdout);
        print_listed(words, fish_doubled);
        fputs(")\"", stdout);
        return;
    case KIND_ANY:
        fputs(" -x", stdout);
    }
}

static void fish_row(const char *program, const struct tool_command *const *commands,
                     size_t at, const struct tool_option *row)
{
    printf("complete -c %s", program);
    fish_when(commands, at);
    printf(" -l %s", row->name);
    if (row->letter)
        printf(" -s %c", row->letter);
    if (takes_value(row))
        fish_values(row->value, row->words);
    fputs(" -d '", stdout);
    print_escaped(row->help, fish_quotes);
    puts("'");
}

/* The program that is started, and its own completion: fish has to know which options
 * have values. */
static void fish_program(const struct tool_command *command)
{
    const struct tool_option *row;

    fputs(" -x -a '(__fish_complete_subcommand --", stdout);
    for (size_t i = 0; (row = tool_row(command, i)); i++) {
        if (!takes_value(row))
            continue;
        printf(" --%s", row->name);
        if (row->letter)
            printf(" -%c", row->letter);
    }
    fputs(")'", stdout);
}

static void fish_command(const char *program,
                         const struct tool_command *const *commands, size_t at)
{
    const struct tool_command *command = commands[at];
    const char *words = command->words;
    const struct tool_option *row;

    for (size_t i = 0; (row = tool_row(command, i)); i++)
        if (row->name)
            fish_row(program, commands, at, row);
    if (!inner_name(command))
        fish_row(program, commands, at,
                 &(struct tool_option){"completion", "SHELL",
                                       .help = "print the completion for a shell",
                                       .words = "bash zsh fish"});
    if (words && strcmp(words, "FILE") == 0 && !command->stops)
        return; /* files are what fish offers by itself */
    printf("complete -c %s", program);
    fish_when(commands, at);
    if (command->stops && words && strcmp(words, "FILE") == 0)
        fish_program(command);
    else
        fish_values(NULL, words);
    putchar('\n');
    if (inner_name(command))
        printf("complete -c %s -n __fish_use_subcommand -x -a %s\n", program,
               inner_name(command));
}

static void fish_end(const char *program)
{
    (void)program;
}

/* The whole ------------------------------------------------------------------------ */

static const struct shell shells[] = {
    {"bash", bash_begin, bash_command, bash_end},
    {"zsh", zsh_begin, zsh_command, zsh_end},
    {"fish", fish_begin, fish_command, fish_end},
};

/* Commands first, as the program alone is the rest of a case. */
static void print_all(const struct shell *shell, const char *program,
                      const struct tool_command *const *commands)
{
    shell->begin(program, commands);
    for (int inner = 1; inner >= 0; inner--)
        for (size_t i = 0; commands[i]; i++)
            if ((inner_name(commands[i]) != NULL) == inner)
                shell->command(program, commands, i);
    shell->end(program);
}

int tool_completion(int argc, char **argv, const struct tool_command *const *commands)
{
    static const char name[] = "--completion";
    const size_t length = sizeof(name) - 1;
    char program[32];

    if (argc < 2 || strncmp(argv[1], name, length) != 0 ||
        (argv[1][length] != '\0' && argv[1][length] != '='))
        return -1;
    const char *value = argv[1][length] == '=' ? argv[1] + length + 1 : argv[2];
    snprintf(program, sizeof(program), "%.*s", tool_program(commands[0]),
             commands[0]->name);
    for (size_t i = 0; value && i < sizeof(shells) / sizeof(*shells); i++) {
        if (strcmp(shells[i].name, value) != 0)
            continue;
        print_all(&shells[i], program, commands);
        return 0;
    }
    fprintf(stderr, "%s: %s needs the name of a shell: bash, zsh or fish.\n", program,
            name);
    return 2;
}

int tool_parse_program(const struct tool_command *command, int argc, char **argv,
                       void *args, FILE *err)
{
    const struct tool_command *const commands[] = {command, NULL};
    const int code = tool_completion(argc, argv, commands);

    return code < 0 ? tool_parse(command, argc, argv, args, err) : code;
}
