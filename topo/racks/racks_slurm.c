/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm's topology.conf: one line per switch, with its hosts or switches.
 *
 *     SwitchName=leaf1 Nodes=n[01-16]
 *     SwitchName=leaf2 Nodes=n[17-32] LinkSpeed=100
 *     SwitchName=spine Switches=leaf[1-2]
 */
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/text.h"
#include "topo/racks/racks_reader.h"

enum key { SWITCH_NAME, NODES, SWITCHES, LINK_SPEED, N_KEYS };

static const char *const keys[N_KEYS] = {"SwitchName", "Nodes", "Switches",
                                         "LinkSpeed"};

/* The values of a line's keys; NULL: not in the line. */
struct words {
    char *value[N_KEYS];
};

static int slurm_detect(const char *line)
{
    return strchr(line, '=') != NULL;
}

static int find_key(const char *name)
{
    int key = 0;

    while (key < N_KEYS && strcasecmp(keys[key], name) != 0)
        key++;
    return key;
}

static trib_status_t unknown_key(struct trib_racks_reader *r, const char *name)
{
    const char *nearest = trib_text_nearest(name, keys, N_KEYS);

    return trib_racks_fail(r, r->number, "unknown key \"%.40s\"; did you mean %s?",
                           name, nearest ? nearest : "SwitchName, Nodes or Switches");
}

/* Parse one key=value, or key = "value", cutting the text. NULL: invalid. */
static char *take_word(char *p, char **name_out, char **value_out)
{
    size_t n = strcspn(p, "= \t");
    char *value = p + n;

    *name_out = p;
    value += strspn(value, " \t");
    if (n == 0 || *value != '=')
        return NULL;
    value++;
    value += strspn(value, " \t");
    p[n] = '\0';
    bool quoted = *value == '"';
    value += quoted;
    char *end = value + strcspn(value, quoted ? "\"" : " \t");
    if (quoted && *end != '"')
        return NULL;
    if (*end)
        *end++ = '\0';
    *value_out = value;
    return end + strspn(end, " \t");
}

static trib_status_t split_line(struct trib_racks_reader *r, struct words *out)
{
    char *p = r->line + strspn(r->line, " \t");
    char *name, *value;

    *out = (struct words){{0}};
    while (*p) {
        p = take_word(p, &name, &value);
        if (!p)
            return trib_racks_fail(r, r->number,
                                   "\"%.40s\" is not key=value; write SwitchName=leaf1 "
                                   "Nodes=n[01-16]",
                                   name);
        int key = find_key(name);
        if (key == N_KEYS)
            return unknown_key(r, name);
        if (out->value[key])
            return trib_racks_fail(
                r, r->number, "%s occurs twice; write one line per switch", keys[key]);
        out->value[key] = value;
    }
    return TRIB_OK;
}

static trib_status_t add_line(struct trib_racks_reader *r, const struct words *words)
{
    const char *name = words->value[SWITCH_NAME];

    if (!name)
        return trib_racks_fail(r, r->number,
                               "no switch is named; start with SwitchName=NAME");
    if (!trib_hostname_ok(name))
        return trib_racks_fail(r, r->number,
                               "\"%.80s\" is not a switch name: at most 64 letters and "
                               "digits, none of []=,\"#",
                               name);
    if (!words->value[NODES] && !words->value[SWITCHES])
        return trib_racks_fail(
            r, r->number,
            "switch %s has no hosts or switches; add Nodes= or Switches=", name);
    int index = trib_racks_add_switch(r, name);
    if (index < 0)
        return TRIB_ERR_INVALID;
    trib_status_t status = TRIB_OK;
    if (words->value[NODES])
        status = trib_racks_add_hosts(r, words->value[NODES], index);
    if (status == TRIB_OK && words->value[SWITCHES])
        status = trib_racks_add_children(r, words->value[SWITCHES], index);
    return status;
}

static trib_status_t slurm_read(struct trib_racks_reader *r)
{
    struct words words;
    trib_status_t status = TRIB_OK;

    while (status == TRIB_OK && trib_racks_logical_line(r)) {
        status = split_line(r, &words);
        if (status == TRIB_OK)
            status = add_line(r, &words);
    }
    return status;
}

const struct trib_racks_format trib_racks_slurm = {
    .name = "slurm",
    .detail = "Slurm's topology.conf: SwitchName=leaf1 Nodes=n[01-16]",
    .detect = slurm_detect,
    .read = slurm_read,
};
