/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handwritten lists: a rack and its hosts, or a host and its rack.
 *
 *     rack1: host1 host2          # comments
 *     row2/rack7: n[01-16]        rack7 is below row2
 *     host3 rack1
 */
#include <string.h>

#include "base/error.h"
#include "topo/racks/racks_reader.h"

static int plain_detect(const char *line)
{
    (void)line;
    return 1;
}

/* Cut off and return the next word; NULL: none left. */
static char *take_word(char **p, const char *separators)
{
    char *word = *p + strspn(*p, separators);
    char *end = word + strcspn(word, separators);

    if (!*word)
        return NULL;
    *p = end + (*end != '\0');
    *end = '\0';
    return word;
}

/* "row2/rack7": each component is a switch below the previous one, named by the path up
 * to it. */
static trib_status_t add_path(struct trib_racks_reader *r, char *path, int *rack_out)
{
    int parent = -1;

    if (!trib_hostname_ok(path) || path[0] == '/' || strstr(path, "//") ||
        path[strlen(path) - 1] == '/')
        return trib_racks_fail(
            r, r->number,
            "\"%.80s\" is not a rack name: at most 64 letters and digits, "
            "none of []=,\"#; row1/rack1 is a rack in a row",
            path);
    for (char *p = path; p;) {
        p = strchr(p, '/');
        if (p)
            *p = '\0';
        int index = trib_racks_add_switch(r, path);
        if (index < 0)
            return TRIB_ERR_INVALID;
        r->switches[index].parent = parent;
        parent = index;
        if (p)
            *p++ = '/';
    }
    *rack_out = parent;
    return TRIB_OK;
}

static trib_status_t add_rack(struct trib_racks_reader *r, char *colon)
{
    char *p = r->line;
    char *rest = colon + 1;
    char *list;
    int rack;

    *colon = '\0';
    char *path = take_word(&p, " \t");
    if (!path || take_word(&p, " \t"))
        return trib_racks_fail(
            r, r->number,
            "exactly one name must precede the colon; write \"rack1: host1 "
            "host2\"");
    trib_status_t status = add_path(r, path, &rack);
    size_t before = r->n_hosts;
    while (status == TRIB_OK && (list = take_word(&rest, " \t"))) {
        size_t n = strlen(list);
        if (list[n - 1] == ',')
            list[n - 1] = '\0'; /* "host1, host2" */
        if (list[0])
            status = trib_racks_add_hosts(r, list, rack);
    }
    if (status == TRIB_OK && r->n_hosts == before && !r->no_memory)
        return trib_racks_fail(
            r, r->number, "rack %s has no host; list its hosts after the colon", path);
    return status;
}

static trib_status_t add_one(struct trib_racks_reader *r)
{
    char *p = r->line;
    char *host = take_word(&p, " \t");
    char *path = take_word(&p, " \t");
    int rack;

    if (!path || take_word(&p, " \t"))
        return trib_racks_fail(
            r, r->number,
            "\"%.40s%s\" names no rack; write \"rack1: host1 host2\", or "
            "\"host1 rack1\"",
            host, path ? " ..." : "");
    trib_status_t status = add_path(r, path, &rack);
    return status == TRIB_OK ? trib_racks_add_hosts(r, host, rack) : status;
}

static trib_status_t plain_read(struct trib_racks_reader *r)
{
    trib_status_t status = TRIB_OK;

    r->merge = true;
    while (status == TRIB_OK && trib_racks_logical_line(r)) {
        char *colon = strchr(r->line, ':');
        status = colon ? add_rack(r, colon) : add_one(r);
    }
    return status;
}

const struct trib_racks_format trib_racks_plain = {
    .name = "hosts",
    .detail = "\"rack1: host1 host2\", or \"host1 rack1\", one per line",
    .detect = plain_detect,
    .read = plain_read,
};
