/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of ibnetdiscover. The sections of switches are sufficient:
 *
 *     Switch  36 "S-GUID"      # "DESCRIPTION" base port 0 lid 48 lmc 0
 *     [1]     "H-GUID"[1](PORTGUID)    # "HOST DEVICE" lid 67 4xEDR
 *     [19]    "S-GUID"[3]      # "DESCRIPTION" lid 3 4xEDR
 *
 * Sections of adapters ("Ca") repeat this, and routers ("Rt") lead elsewhere. A host is
 * identified by the description of its adapter, which rdma-ndd sets to "HOST DEVICE". A
 * description of more than two words belongs to a switch's own adapter.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topo/racks/racks_fabric.h"

static int begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

static int ib_detect(const char *line)
{
    static const char *const words[] = {
        "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid="};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (begins(line, words[i]))
            return 1;
    /* Output grouped by chassis, or without the heads of sections. */
    return begins(line, "Non-Chassis") ||
           (begins(line, "Chassis ") && strstr(line, "guid")) ||
           (begins(line, "Switch") && strstr(line, "\"S-"));
}

/* --- bandwidth --- */

/* Rate of a lane in Gbit/s, coding included, as in the names of the speeds. */
static const struct {
    const char *name;
    double Gbps;
} speeds[] = {{"SDR", 2.5}, {"DDR", 5},  {"QDR", 10},  {"FDR10", 10}, {"FDR", 14},
              {"EDR", 25},  {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};

/* Parse "4xEDR" at the end of the line; 0: missing or unknown. */
static double read_rate(const char *line)
{
    size_t end = strlen(line);
    size_t first;
    char *x;

    while (end > 0 && strchr(" \t", line[end - 1]))
        end--;
    for (first = end; first > 0 && !strchr(" \t", line[first - 1]);)
        first--;
    if (!isdigit((unsigned char)line[first]))
        return 0;
    long lanes = strtol(line + first, &x, 10);
    if (*x != 'x' || lanes < 1 || lanes > 12)
        return 0;
    size_t n = (size_t)(line + end - x - 1);
    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
        if (strlen(speeds[i].name) == n && memcmp(speeds[i].name, x + 1, n) == 0)
            return (double)lanes * speeds[i].Gbps;
    return 0;
}

/* --- lines --- */

/* Copy the text between the next two quotes, truncated if too long; return the text
 * after them, or NULL. */
static const char *quoted(const char *p, char *out, size_t bytes)
{
    const char *first = strchr(p, '"');
    const char *last = first ? strchr(first + 1, '"') : NULL;
    size_t n = 0;

    if (!last)
        return NULL;
    for (p = first + 1; p < last && n + 1 < bytes; p++)
        out[n++] = *p >= ' ' && *p < 127 ? *p : '?';
    out[n] = '\0';
    return last + 1;
}

static trib_status_t bad_line(struct trib_fabric *f, const char *example)
{
    return trib_racks_fail(
        f->r, f->r->number,
        "not a line of ibnetdiscover, such as %s; use its output unchanged", example);
}

static trib_status_t read_switch(struct trib_fabric *f)
{
    struct trib_racks_reader *r = f->r;

    if (f->n_switches >= r->names_max)
        return trib_racks_fail(r, r->number, "there are more than %zu switches",
                               r->names_max);
    if (!trib_racks_grow(r, &f->switches, f->n_switches, &f->room_switches,
                         sizeof(*f->switches)))
        return TRIB_ERR_NO_MEMORY;
    struct trib_fabric_switch *s = &f->switches[f->n_switches];
    *s = (struct trib_fabric_switch){.line = r->number};
    const char *p = quoted(r->line, s->id, sizeof(s->id));
    if (!p || s->id[0] != 'S')
        return bad_line(
            f, "Switch 36 \"S-0002c90200a1b2c0\" # \"leaf1\" base port 0 lid 3 lmc 0");
    if (!quoted(p, s->name, sizeof(s->name)) || !s->name[0])
        memcpy(s->name, s->id, sizeof(s->id));
    f->n_switches++;
    return TRIB_OK;
}

static trib_status_t add_link(struct trib_fabric *f, const char *id)
{
    struct trib_racks_reader *r = f->r;

    if (!trib_racks_grow(r, &f->links, f->n_links, &f->room_links, sizeof(*f->links)))
        return TRIB_ERR_NO_MEMORY;
    struct trib_fabric_link *link = &f->links[f->n_links++];
    *link = (struct trib_fabric_link){
        .from = (int)f->n_switches - 1, .line = r->number, .Gbps = read_rate(r->line)};
    snprintf(link->id, sizeof(link->id), "%s", id);
    return TRIB_OK;
}

/* Parse "HOST DEVICE" or "HOST"; descriptions of more words are not hosts. */
static trib_status_t add_host(struct trib_fabric *f, char *description)
{
    struct trib_racks_reader *r = f->r;
    char *rest = description;
    char *host = strtok_r(description, " ", &rest);
    char *device = strtok_r(NULL, " ", &rest);

    if (!host || !trib_hostname_ok(host) || strtok_r(NULL, " ", &rest))
        return TRIB_OK;
    if (f->n_hosts >= r->names_max)
        return trib_racks_fail(r, r->number, "there are more than %zu links to hosts",
                               r->names_max);
    if (!trib_racks_grow(r, &f->hosts, f->n_hosts, &f->room_hosts, sizeof(*f->hosts)))
        return TRIB_ERR_NO_MEMORY;
    struct trib_fabric_host *h = &f->hosts[f->n_hosts++];
    *h = (struct trib_fabric_host){
        .from = (int)f->n_switches - 1, .line = r->number, .Gbps = read_rate(r->line)};
    snprintf(h->name, sizeof(h->name), "%s", host);
    snprintf(h->device, sizeof(h->device), "%s", device ? device : "");
    return TRIB_OK;
}

static trib_status_t read_port(struct trib_fabric *f)
{
    char id[TRIB_GUID_BYTES];
    char description[TRIB_HOSTNAME_BYTES] = "";
    const char *p = quoted(f->r->line, id, sizeof(id));

    if (!p || !strchr("SHR", id[0]) || id[1] != '-')
        return bad_line(f,
                        "[1] \"H-0002c90300a1b2c0\"[1] # \"host1 mlx5_0\" lid 4 4xEDR");
    if (id[0] == 'S')
        return add_link(f, id);
    quoted(p, description, sizeof(description));
    return id[0] == 'H' ? add_host(f, description) : TRIB_OK;
}

static trib_status_t read_lines(struct trib_fabric *f)
{
    trib_status_t status = TRIB_OK;
    bool in_switch = false;

    while (status == TRIB_OK && trib_racks_line(f->r)) {
        const char *line = f->r->line;
        if (begins(line, "Switch")) {
            in_switch = true;
            status = read_switch(f);
        } else if (begins(line, "Ca") || begins(line, "Rt")) {
            in_switch = false;
        } else if (in_switch && line[0] == '[') {
            status = read_port(f);
        }
    }
    if (status == TRIB_OK && f->n_switches == 0)
        return trib_racks_fail(f->r, 0,
                               "no switch found; use the output of ibnetdiscover, "
                               "run as root");
    if (status == TRIB_OK && f->n_hosts == 0)
        return trib_racks_fail(
            f->r, 0,
            "no adapter is described as \"HOST DEVICE\"; start rdma-ndd on "
            "the hosts, or run ibnetdiscover with --node-name-map");
    return status;
}

static trib_status_t ib_read(struct trib_racks_reader *r)
{
    struct trib_fabric f = {.r = r};
    trib_status_t status = read_lines(&f);

    if (status == TRIB_OK)
        status = trib_fabric_names(&f);
    if (status == TRIB_OK)
        status = trib_fabric_tree(&f);
    if (status == TRIB_OK)
        status = trib_fabric_seat(&f);
    free(f.switches);
    free(f.links);
    free(f.hosts);
    return status;
}

const struct trib_racks_format trib_racks_ib = {
    .name = "ibnetdiscover",
    .detail = "output of ibnetdiscover",
    .detect = ib_detect,
    .read = ib_read,
};
