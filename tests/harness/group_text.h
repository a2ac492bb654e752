/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of trees compare groups of aggregators as text. */
#ifndef TESTS_HARNESS_GROUP_TEXT_H
#define TESTS_HARNESS_GROUP_TEXT_H

#include <stdio.h>
#include <string.h>

struct group_text {
    int groups, ranks;
    const int *parent, *first, *aggregators, *of_rank; /* as in struct
                                                     * trib_agg_tree */
    const char *const *names;                       /* of the aggregators */
};

/* Append "a,b:1 (c:2)": aggregators and number of ranks of a group, and the groups
 * below. */
static inline void group_text_append(const struct group_text *u, int group, char *text)
{
    int n = 0;

    for (int i = u->first[group]; i < u->first[group + 1]; i++)
        sprintf(text + strlen(text), "%s%s", i > u->first[group] ? "," : "",
                u->names[u->aggregators[i]]);
    for (int r = 0; r < u->ranks; r++)
        n += u->of_rank[r] == group;
    if (n)
        sprintf(text + strlen(text), ":%d", n);
    for (int v = group + 1; v < u->groups; v++) {
        if (u->parent[v] != group)
            continue;
        strcat(text, " (");
        group_text_append(u, v, text);
        strcat(text, ")");
    }
}

/* Split a text into words, with zeros between them. */
static inline int group_text_split(char *text, const char **names)
{
    char *rest;
    int n = 0;

    for (char *p = strtok_r(text, " ", &rest); p; p = strtok_r(NULL, " ", &rest))
        names[n++] = p;
    return n;
}

#endif
