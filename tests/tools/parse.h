/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command lines in tests: the input is "allreduce -n 2", the output an exit code and a
 * message.
 */
#ifndef TESTS_TOOLS_PARSE_H
#define TESTS_TOOLS_PARSE_H

#include "tests/harness/tribtest.h"

#define PARSE_WORDS 32

/* A parser of trib-perf; args is its struct. */
typedef int (*parse_fn)(int argc, char **argv, FILE *err, void *args);

struct parsed {
    int code;
    char said[1024];
};

/* The words of the line are valid until the next call. */
static inline struct parsed parse_line(const char *line, parse_fn fn, void *args)
{
    static char copy[512];
    static char *argv[PARSE_WORDS + 1];
    struct parsed p = {0};
    int argc = 0;

    snprintf(copy, sizeof(copy), "trib-perf %s", line);
    for (char *w = strtok(copy, " "); w && argc < PARSE_WORDS; w = strtok(NULL, " "))
        argv[argc++] = w;
    argv[argc] = NULL;
    FILE *err = fmemopen(p.said, sizeof(p.said) - 1, "w");
    assert_non_null(err);
    p.code = fn(argc, argv, err, args);
    fclose(err);
    return p;
}

static inline void assert_taken(const char *line, parse_fn fn, void *args)
{
    struct parsed p = parse_line(line, fn, args);

    if (p.code != -1)
        fail_msg("'%s' gave %d: %s", line, p.code, p.said);
    assert_string_equal(p.said, "");
}

/* Rejected with one line that contains these words. */
static inline void assert_refused_by(const char *line, parse_fn fn, void *args,
                                     const char *words)
{
    struct parsed p = parse_line(line, fn, args);

    if (p.code != 2)
        fail_msg("'%s' gave %d", line, p.code);
    if (strstr(p.said, words) == NULL)
        fail_msg("'%s': \"%s\" does not say \"%s\"", line, p.said, words);
    assert_ptr_equal(strchr(p.said, '\n'), p.said + strlen(p.said) - 1);
}

#endif
