/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info --schedule: the steps of an algorithm, and the bytes sent over each link.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "tools/common/tool_table.h"
#include "tools/info/info_commands.h"

static void print_line(void *arg, const char *line)
{
    (void)arg;
    puts(line);
}

/* Parse "64", "64K", "1M", "1G". Return false after an error message for anything
 * else. */
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
        fprintf(stderr, "trib-info: %s '%s' must be a number from 0 to %llu\n", name,
                text ? text : "", most);
        return false;
    }
    *out = n * unit;
    return true;
}

int info_schedule(const struct info_request *request)
{
    trib_schedule_opts_t opts = TRIB_SCHEDULE_OPTS_INIT;
    unsigned long long ranks, bytes;

    if (request->n_words != 2) {
        fputs("trib-info: usage: trib-info --schedule ALGORITHM RANKS BYTES [OPTION]…; "
              "trib-info --algorithms lists the algorithms\n",
              stderr);
        return 2;
    }
    if (!read_number("RANKS", request->words[0], 65536, &ranks) ||
        !read_number("BYTES", request->words[1], 1ULL << 62, &bytes))
        return 2;
    opts.algorithm = request->algorithm;
    opts.ranks = (int)ranks;
    opts.bytes = (size_t)bytes;
    opts.ranks_per_host = request->per_host;
    opts.leaders = request->leaders;
    opts.groups = request->groups;
    opts.xml = request->xml;
    opts.service = request->service;
    opts.dot = info_given(request, INFO_DOT);
    if (!opts.dot)
        tool_fold_stdout();
    if (trib_schedule_draw(&opts, print_line, NULL) != TRIB_OK) {
        fprintf(stderr, "trib-info: %s\n", trib_last_error(NULL));
        return 1;
    }
    return 0;
}
