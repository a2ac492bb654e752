/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info --schedule: the steps of an algorithm, and the bytes of each link.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "tools/info_commands.h"

static void print_line(void *arg, const char *line)
{
    (void)arg;
    puts(line);
}

/* "64", "64K", "1M", "1G"; false, after a sentence, for anything else. */
static bool read_number(const char *name, const char *text, unsigned long long most,
                        unsigned long long *out)
{
    static const char units[] = "KMG";
    char *end = NULL;
    unsigned long long unit = 1;

    errno = 0;
    unsigned long long n =
        text && text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    const char *at = end && *end ? strchr(units, *end) : NULL;
    if (at) {
        unit <<= 10 * (at - units + 1);
        end++;
    }
    if (!end || *end || errno || n > most / unit) {
        fprintf(stderr, "trib-info: %s is '%s', it must be a number up to %llu\n", name,
                text ? text : "", most);
        return false;
    }
    *out = n * unit;
    return true;
}

/* Options with a text; where it goes. */
static const char **text_of(const char *name, trib_schedule_opts_t *opts)
{
    if (strcmp(name, "--service") == 0)
        return &opts->service;
    if (strcmp(name, "--groups") == 0)
        return &opts->groups;
    return strcmp(name, "--xml") == 0 ? &opts->xml : NULL;
}

static bool read_options(int argc, char **argv, trib_schedule_opts_t *opts)
{
    unsigned long long n;

    for (int i = 0; i < argc; i++) {
        const bool per_host = strcmp(argv[i], "--per-host") == 0;
        const char **text = text_of(argv[i], opts);

        if (strcmp(argv[i], "--dot") == 0) {
            opts->dot = 1;
        } else if (per_host || strcmp(argv[i], "--leaders") == 0) {
            if (!read_number(argv[i], i + 1 < argc ? argv[i + 1] : NULL, 65536, &n))
                return false;
            *(per_host ? &opts->ranks_per_host : &opts->leaders) = (int)n;
            i++;
        } else if (text && i + 1 < argc) {
            *text = argv[++i];
        } else {
            fprintf(
                stderr,
                "trib-info: '%s' does not go with --schedule, which has --per-host "
                "RANKS, --leaders RANKS, --groups KIND, --xml FILE, --service SERVICES "
                "and --dot\n",
                argv[i]);
            return false;
        }
    }
    return true;
}

int info_schedule(int argc, char **argv)
{
    trib_schedule_opts_t opts = TRIB_SCHEDULE_OPTS_INIT;
    unsigned long long ranks, bytes;

    if (argc < 5 || strcmp(argv[1], "--schedule") != 0) {
        fprintf(
            stderr,
            "trib-info: it is trib-info --schedule ALGORITHM RANKS BYTES, then "
            "options; trib-info --algorithms lists them\n");
        return 2;
    }
    opts.algorithm = argv[2];
    if (!read_number("RANKS", argv[3], 65536, &ranks) ||
        !read_number("BYTES", argv[4], 1ULL << 62, &bytes) ||
        !read_options(argc - 5, argv + 5, &opts))
        return 2;
    opts.ranks = (int)ranks;
    opts.bytes = (size_t)bytes;
    if (trib_schedule_draw(&opts, print_line, NULL) != TRIB_OK) {
        fprintf(stderr, "trib-info: %s\n", trib_last_error(NULL));
        return 1;
    }
    return 0;
}
