/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of settings.
 */
#include "tests/fabric/fabric_settings.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/fake_hub.h"

enum kind { NUMBER, TEXT, PKEYS };

struct setting {
    const char *name;
    enum kind kind;
    size_t at, bytes;
};

#define ROW(type, field, kind) \
    { \
#field, kind, offsetof(struct type, field), sizeof(((struct type *)0)->field) \
    }
static const struct setting machine[] = {
    ROW(fake_verbs_opts, hosts, NUMBER),
    ROW(fake_verbs_opts, devices, NUMBER),
    ROW(fake_verbs_opts, ports, NUMBER),
    ROW(fake_verbs_opts, inline_max, NUMBER),
    ROW(fake_verbs_opts, message_max, NUMBER),
    ROW(fake_verbs_opts, mtu, NUMBER),
    ROW(fake_verbs_opts, max_cqe, NUMBER),
    ROW(fake_verbs_opts, max_qp_wr, NUMBER),
    ROW(fake_verbs_opts, max_srq_wr, NUMBER),
    ROW(fake_verbs_opts, max_qp, NUMBER),
    ROW(fake_verbs_opts, max_contexts, NUMBER),
    ROW(fake_verbs_opts, max_pinned, NUMBER),
    ROW(fake_verbs_opts, srq_errno, NUMBER),
    ROW(fake_verbs_opts, iwarp, NUMBER),
    ROW(fake_verbs_opts, down_fails, NUMBER),
    ROW(fake_verbs_opts, gid_loss, NUMBER),
    ROW(fake_verbs_opts, late_us, NUMBER),
    ROW(fake_verbs_opts, late_peer, NUMBER),
    ROW(fake_verbs_opts, rate, NUMBER),
    ROW(fake_verbs_opts, delay_us, NUMBER),
    ROW(fake_verbs_opts, retry_us, NUMBER),
    ROW(fake_verbs_opts, loss_ppm, NUMBER),
    ROW(fake_verbs_opts, reorder_us, NUMBER),
    ROW(fake_verbs_opts, seed, NUMBER),
    ROW(fake_verbs_opts, virtual_time, NUMBER),
    ROW(fake_verbs_opts, stall_ms, NUMBER),
    ROW(fake_verbs_opts, ecn_bytes, NUMBER),
    ROW(fake_verbs_opts, infiniband, NUMBER),
    ROW(fake_verbs_opts, lid, NUMBER),
    ROW(fake_verbs_opts, no_connection_manager, NUMBER),
    {0},
};
static const struct setting of_device[] = {
    ROW(fake_device_opts, name, TEXT),
    ROW(fake_device_opts, pci, TEXT),
    ROW(fake_device_opts, numa_node, NUMBER),
    ROW(fake_device_opts, cpus, TEXT),
    ROW(fake_device_opts, iwarp, NUMBER),
    ROW(fake_device_opts, no_srq, NUMBER),
    {0},
};
static const struct setting of_port[] = {
    ROW(fake_port_opts, active_speed, NUMBER),
    ROW(fake_port_opts, active_width, NUMBER),
    ROW(fake_port_opts, rate, NUMBER),
    ROW(fake_port_opts, delay_us, NUMBER),
    ROW(fake_port_opts, mtu, NUMBER),
    ROW(fake_port_opts, pkeys, PKEYS),
    ROW(fake_port_opts, roce_tos, NUMBER),
    ROW(fake_port_opts, loss_ppm, NUMBER),
    ROW(fake_port_opts, reorder_us, NUMBER),
    {0},
};
#undef ROW

static bool number(const char *text, uint64_t *out)
{
    char *end;

    *out = strtoull(text, &end, 0);
    return *end == '\0' && end != text;
}

/* Parse "0xffff,0x8001". */
static bool pkeys(uint16_t out[FAKE_PKEYS], const char *text)
{
    char *end = (char *)(uintptr_t)text;

    memset(out, 0, FAKE_PKEYS * sizeof(*out));
    for (int i = 0; i < FAKE_PKEYS && end; i++) {
        out[i] = (uint16_t)strtoul(text, &end, 0);
        if (end == text || (*end && *end != ','))
            return false;
        text = end + 1;
        if (!*end)
            return true;
    }
    return false;
}

static bool apply(const struct setting *s, void *opts, const char *value)
{
    char *at = (char *)opts + s->at;
    uint64_t n;

    switch (s->kind) {
    case NUMBER:
        if (!number(value, &n))
            return false;
        memcpy(at, &n, s->bytes);
        return true;
    case TEXT:
        if (strlen(value) >= s->bytes)
            return false;
        memset(at, 0, s->bytes);
        memcpy(at, value, strlen(value));
        return true;
    default:
        return pkeys((uint16_t *)(void *)at, value);
    }
}

static const struct setting *find(const struct setting *table, const char *name,
                                  size_t len)
{
    for (; table->name; table++)
        if (strlen(table->name) == len && strncmp(table->name, name, len) == 0)
            return table;
    return NULL;
}

/* Hosts, devices and ports from `first` on, below `end`. */
struct range {
    int first, end;
};

static struct range range_of(int chosen, int from, int n)
{
    return chosen < 0 ? (struct range){from, from + n}
                      : (struct range){chosen, chosen + 1};
}

static bool exists(const struct fabric_where *w)
{
    return w->host < fake_opts.hosts && w->device < fake_opts.devices &&
           w->port <= fake_opts.ports && w->port != 0;
}

static bool each_device(const struct fabric_where *w, const struct setting *s,
                        const char *value)
{
    const struct range hosts = range_of(w->host, 0, fake_opts.hosts),
                       devices = range_of(w->device, 0, fake_opts.devices);

    for (int host = hosts.first; host < hosts.end; host++)
        for (int device = devices.first; device < devices.end; device++)
            if (!apply(s, &fake_device(host, device)->opts, value))
                return false;
    return true;
}

static bool each_port(const struct fabric_where *w, const struct setting *s,
                      const char *value)
{
    const struct range hosts = range_of(w->host, 0, fake_opts.hosts),
                       devices = range_of(w->device, 0, fake_opts.devices),
                       ports = range_of(w->port, 1, fake_opts.ports);

    for (int host = hosts.first; host < hosts.end; host++)
        for (int device = devices.first; device < devices.end; device++)
            for (int port = ports.first; port < ports.end; port++)
                if (!apply(s, &fake_port(host, device, port)->opts, value))
                    return false;
    return true;
}

/* Events: "link=down", "link=up", "gid=N:ADDRESS", "gid=N:" and "fatal=1". */

static bool set_link(struct fake_place at, const char *value)
{
    const bool up = strcmp(value, "up") == 0;

    if (up || strcmp(value, "down") == 0) {
        fake_set_link(at.host, at.device, at.port, up);
        return true;
    }
    return false;
}

/* Set or remove a GID, of RoCE v2 if its index is odd. */
static bool set_gid(struct fake_place at, const char *value)
{
    char *end;
    const unsigned long n = strtoul(value, &end, 0);

    if (*end != ':' || n >= FAKE_GIDS)
        return false;
    fake_set_gid(fake_port(at.host, at.device, at.port), at.port, (int)n,
                 end[1] ? end + 1 : NULL,
                 n % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
    fake_announce(at.host,
                  (struct fake_event){IBV_EVENT_GID_CHANGE, at.device, at.port});
    return true;
}

static bool set_fatal(struct fake_place at, const char *value)
{
    if (strcmp(value, "1") != 0 || at.port != 1)
        return at.port != 1;
    fake_device(at.host, at.device)->is_dead = true;
    fake_announce(at.host, (struct fake_event){IBV_EVENT_DEVICE_FATAL, at.device, 1});
    return true;
}

static const struct event {
    const char *name;
    bool (*set)(struct fake_place at, const char *value);
} events[] = {{"link", set_link}, {"gid", set_gid}, {"fatal", set_fatal}};

static bool each_event(const struct fabric_where *w, const struct event *e,
                       const char *value)
{
    const struct range hosts = range_of(w->host, 0, fake_opts.hosts),
                       devices = range_of(w->device, 0, fake_opts.devices),
                       ports = range_of(w->port, 1, fake_opts.ports);

    for (int host = hosts.first; host < hosts.end; host++)
        for (int device = devices.first; device < devices.end; device++)
            for (int port = ports.first; port < ports.end; port++)
                if (!e->set((struct fake_place){host, device, (uint8_t)port}, value))
                    return false;
    return true;
}

static const struct event *find_event(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (strlen(events[i].name) == len && strncmp(events[i].name, name, len) == 0)
            return &events[i];
    return NULL;
}

static bool select_where(struct fabric_where *w, const char *name, size_t len,
                         const char *value, bool *is_selector)
{
    int *const at[] = {&w->host, &w->device, &w->port};
    const char *const names[] = {"host", "device", "port"};
    uint64_t n;

    for (int i = 0; i < 3; i++) {
        *is_selector = strlen(names[i]) == len && strncmp(names[i], name, len) == 0;
        if (!*is_selector)
            continue;
        if (strcmp(value, "*") != 0 && (!number(value, &n) || n >= FAKE_HOSTS_MAX))
            return false;
        *at[i] = strcmp(value, "*") == 0 ? -1 : (int)n;
        return exists(w);
    }
    return false;
}

bool fabric_set(struct fabric_where *where, const char *text)
{
    const char *equal = strchr(text, '=');
    const size_t len = equal ? (size_t)(equal - text) : 0;
    const bool all = where->host < 0 && where->device < 0 && where->port < 0;
    const struct event *event = find_event(text, len);
    const struct setting *s;
    bool is_selector;

    if (!equal)
        return false;
    const bool selected = select_where(where, text, len, equal + 1, &is_selector);
    if (is_selector)
        return selected;
    if (event)
        return each_event(where, event, equal + 1);
    if (all && (s = find(machine, text, len)) != NULL)
        return apply(s, &fake_opts, equal + 1);
    if (where->port < 0 && (s = find(of_device, text, len)) != NULL)
        return each_device(where, s, equal + 1);
    s = find(of_port, text, len);
    return s && each_port(where, s, equal + 1);
}
