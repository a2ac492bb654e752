/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of tests/topo/data, wherever the tests run.
 */
#ifndef TESTS_TOPO_DATA_H
#define TESTS_TOPO_DATA_H

#include <stdio.h>
#include <stdlib.h>

struct data_path {
    char text[512];
};

static inline struct data_path data_path(const char *name)
{
    const char *top = getenv("abs_top_srcdir");
    struct data_path path;

    snprintf(path.text, sizeof(path.text), "%s/tests/topo/data/%s", top ? top : ".",
             name);
    return path;
}

#endif
