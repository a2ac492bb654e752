/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/racks/racks_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

trib_status_t trib_racks_fail(struct trib_racks_reader *r, int line, const char *format,
                              ...)
{
    char text[400];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?'; /* control characters from a file must not reach the terminal */
    if (line > 0)
        return trib_fail(r->err, TRIB_ERR_INVALID, "%.100s line %d: %s", r->file, line,
                         text);
    return trib_fail(r->err, TRIB_ERR_INVALID, "%.100s: %s", r->file, text);
}

/* --- lines --- */

/* Append the next line of the file to reader->line, which is as large as the file. */
static size_t append_line(struct trib_racks_reader *r, size_t at)
{
    size_t n = strcspn(r->text, "\n");

    memcpy(r->line + at, r->text, n);
    r->text += n + (r->text[n] == '\n');
    r->next_number++;
    at += n;
    if (at > 0 && r->line[at - 1] == '\r')
        at--;
    r->line[at] = '\0';
    return at;
}

bool trib_racks_line(struct trib_racks_reader *r)
{
    if (!*r->text)
        return false;
    r->number = r->next_number;
    append_line(r, 0);
    return true;
}

/* A comment ends its line, even if it ends with a backslash. */
static bool read_logical_line(struct trib_racks_reader *r)
{
    size_t at = 0;
    bool more = true;

    if (!*r->text)
        return false;
    r->number = r->next_number;
    while (more && *r->text) {
        size_t end = append_line(r, at);
        size_t comment = at + strcspn(r->line + at, "#");
        more = comment == end && end > at && r->line[end - 1] == '\\';
        at = comment == end ? end - more : comment;
    }
    while (at > 0 && strchr(" \t\r", r->line[at - 1]))
        at--;
    r->line[at] = '\0';
    return true;
}

bool trib_racks_logical_line(struct trib_racks_reader *r)
{
    while (read_logical_line(r))
        if (r->line[strspn(r->line, " \t\r")])
            return true;
    return false;
}

/* --- tables --- */

bool trib_racks_grow(struct trib_racks_reader *r, void *array, size_t n, size_t *room,
                     size_t element_bytes)
{
    void **block = array;

    if (n < *room)
        return true;
    size_t wanted = *room ? 2 * *room : 64;
    void *more = realloc(*block, wanted * element_bytes);
    if (!more) {
        r->no_memory = true;
        return false;
    }
    *block = more;
    *room = wanted;
    return true;
}

int trib_racks_add_switch(struct trib_racks_reader *r, const char *name)
{
    if (r->n_switches >= r->names_max) {
        trib_racks_fail(r, r->number,
                        "there are more than %zu switches; is this a list of racks?",
                        r->names_max);
        return -1;
    }
    if (!trib_racks_grow(r, &r->switches, r->n_switches, &r->room_switches,
                         sizeof(*r->switches)))
        return -1;
    struct trib_racks_raw_switch *s = &r->switches[r->n_switches];
    *s = (struct trib_racks_raw_switch){.line = r->number, .parent = -1};
    snprintf(s->name, sizeof(s->name), "%s", name);
    return (int)r->n_switches++;
}

void trib_racks_add_host(struct trib_racks_reader *r, const char *name, int rack)
{
    if (!trib_racks_grow(r, &r->hosts, r->n_hosts, &r->room_hosts, sizeof(*r->hosts)))
        return;
    struct trib_racks_raw_host *h = &r->hosts[r->n_hosts++];
    *h = (struct trib_racks_raw_host){.line = r->number, .rack = rack};
    snprintf(h->name, sizeof(h->name), "%s", name);
}

struct adding {
    struct trib_racks_reader *reader;
    int to;
};

static void add_host(void *arg, const char *name)
{
    const struct adding *a = arg;

    trib_racks_add_host(a->reader, name, a->to);
}

static void add_child(void *arg, const char *name)
{
    const struct adding *a = arg;
    struct trib_racks_reader *r = a->reader;

    if (!trib_racks_grow(r, &r->children, r->n_children, &r->room_children,
                         sizeof(*r->children)))
        return;
    struct trib_racks_raw_child *c = &r->children[r->n_children++];
    *c = (struct trib_racks_raw_child){.line = r->number, .parent = a->to};
    snprintf(c->name, sizeof(c->name), "%s", name);
}

static trib_status_t add_list(struct adding *to, const char *list, size_t max,
                              trib_hostlist_fn fn)
{
    const char *why = trib_hostlist_each(list, max, fn, to);

    if (why)
        return trib_racks_fail(to->reader, to->reader->number,
                               "the list \"%.60s%s\" %s; write it as n1,n2 or n[01-16]",
                               list, strlen(list) > 60 ? "..." : "", why);
    return TRIB_OK;
}

trib_status_t trib_racks_add_hosts(struct trib_racks_reader *r, const char *list,
                                   int rack)
{
    struct adding to = {r, rack};

    return add_list(&to, list, r->names_max - r->n_hosts, add_host);
}

trib_status_t trib_racks_add_children(struct trib_racks_reader *r, const char *list,
                                      int parent)
{
    struct adding to = {r, parent};

    return add_list(&to, list, r->names_max - r->n_children, add_child);
}
