/* SPDX-License-Identifier: BSD-3-Clause */
/* Units of services as text, and names out of a text: what tests of trees compare. */
#ifndef TESTS_HARNESS_UNITS_H
#define TESTS_HARNESS_UNITS_H

#include <stdio.h>
#include <string.h>

struct units_text {
    int units, ranks;
    const int *parent, *first, *services, *of_rank; /* as struct trib_agg_tree has
                                                     * them */
    const char *const *names;                       /* of the services */
};

/* "a,b:1 (c:2)": the services of a unit and how many ranks it has, and the units
 * below. */
static inline void units_append(const struct units_text *u, int unit, char *text)
{
    int n = 0;

    for (int i = u->first[unit]; i < u->first[unit + 1]; i++)
        sprintf(text + strlen(text), "%s%s", i > u->first[unit] ? "," : "",
                u->names[u->services[i]]);
    for (int r = 0; r < u->ranks; r++)
        n += u->of_rank[r] == unit;
    if (n)
        sprintf(text + strlen(text), ":%d", n);
    for (int v = unit + 1; v < u->units; v++) {
        if (u->parent[v] != unit)
            continue;
        strcat(text, " (");
        units_append(u, v, text);
        strcat(text, ")");
    }
}

/* The words of a text, which gets zeros between them. */
static inline int units_split(char *text, const char **names)
{
    char *rest;
    int n = 0;

    for (char *p = strtok_r(text, " ", &rest); p; p = strtok_r(NULL, " ", &rest))
        names[n++] = p;
    return n;
}

#endif
