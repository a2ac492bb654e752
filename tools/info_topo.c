/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info --topo: this machine, or another, and its racks as a tree.
 */
#include <stdio.h>
#include <string.h>

#include <tributary.h>

#include "tools/info_commands.h"

/* Options with a value; where it goes. */
struct option {
    const char *name;
    const char *value;
    const char **to;
};

static void print_line(void *arg, const char *line)
{
    (void)arg;
    puts(line);
}

bool info_is_topo(const char *option)
{
    static const char *const names[] = {"--topo", "--xml", "--racks", "--format",
                                        "--dot"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(option, names[i]) == 0)
            return true;
    return false;
}

/* false, after a sentence, where the value of an option is missing. */
static bool take_value(const struct option *option, const char *value)
{
    if (!value || value[0] == '\0' || info_is_topo(value)) {
        fprintf(stderr, "trib-info: %s must follow %s\n", option->value, option->name);
        return false;
    }
    *option->to = value;
    return true;
}

static bool read_options(int argc, char **argv, trib_topology_opts_t *opts)
{
    const struct option options[] = {
        {"--xml", "a file that lstopo has written", &opts->xml},
        {"--racks", "a file", &opts->racks},
        {"--format", "slurm, ibnetdiscover or hosts", &opts->format}};
    const size_t n = sizeof(options) / sizeof(options[0]);
    bool topo = false;

    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < n && strcmp(options[k].name, argv[i]) != 0)
            k++;
        if (k < n) {
            if (!take_value(&options[k], argv[++i]))
                return false;
        } else if (strcmp(argv[i], "--topo") == 0) {
            topo = true;
        } else if (strcmp(argv[i], "--dot") == 0) {
            opts->dot = 1;
        } else {
            fprintf(
                stderr,
                "trib-info: '%s' does not go with --topo, which has --xml FILE, "
                "--racks FILE, --format NAME and --dot\n",
                argv[i]);
            return false;
        }
    }
    if (!topo)
        fprintf(stderr, "trib-info: that is for --topo; add it\n");
    else if (opts->format && !opts->racks)
        fprintf(stderr, "trib-info: --format is that of --racks; add --racks FILE\n");
    return topo && (!opts->format || opts->racks);
}

int info_topo(int argc, char **argv)
{
    trib_topology_opts_t opts = TRIB_TOPOLOGY_OPTS_INIT;

    if (!read_options(argc, argv, &opts))
        return 2;
    if (trib_topology_draw(&opts, print_line, NULL) != TRIB_OK) {
        fprintf(stderr, "trib-info: %s\n", trib_last_error(NULL));
        return 1;
    }
    return 0;
}
