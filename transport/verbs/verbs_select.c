/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_select.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/verbs/verbs_speed.h"

#define SLOWER 4 /* a port whose speed is below this part of the best is not used */

/* The list ------------------------------------------------------------------------- */

/* Parse "NAME", "NAME:PORT", or "NAME*" with or without a port. */
static bool read_item(const char *text, size_t len, struct verbs_port *out,
                      bool *prefix)
{
    const char *colon = memchr(text, ':', len);
    size_t name = colon ? (size_t)(colon - text) : len;
    int number = 0;

    *prefix = name > 0 && text[name - 1] == '*';
    if (name == 0 || name - *prefix >= sizeof(out->device) ||
        memchr(text, '*', name - *prefix) || memchr(text, '^', name))
        return false;
    for (size_t i = name + 1; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || number > UINT8_MAX)
            return false;
        number = 10 * number + text[i] - '0';
    }
    if (colon && (number < 1 || number > UINT8_MAX))
        return false;
    *out = (struct verbs_port){.number = (uint8_t)number};
    memcpy(out->device, text, name - *prefix);
    return true;
}

/* Check that the last port of an exact list is not listed before. A name without a port
 * matches any port. */
static trib_status_t check_last(const struct verbs_list *list, struct trib_error *err)
{
    const struct verbs_port *last = &list->of[list->n - 1].at;
    char one[VERBS_PORT_TEXT], two[VERBS_PORT_TEXT];

    for (int i = 0; i + 1 < list->n; i++) {
        const struct verbs_port *p = &list->of[i].at;
        if (strcmp(p->device, last->device) != 0 ||
            (p->number && last->number && p->number != last->number))
            continue;
        trib_verbs_port_text(p, one);
        trib_verbs_port_text(last, two);
        if (p->number != last->number)
            return trib_fail(err, TRIB_ERR_CONFIG,
                             "verbs:device= lists %s and %s, which may be one port: "
                             "name the ports, as in %s:1,%s:2",
                             one, two, p->device, p->device);
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "verbs:device= lists %s twice: each port is one rail", one);
    }
    return TRIB_OK;
}

trib_status_t trib_verbs_read_list(const char *text, struct verbs_list *out,
                                   struct trib_error *err)
{
    const char *all = text;
    trib_status_t status = TRIB_OK;

    *out = (struct verbs_list){.except = *text == '^'};
    out->exact = *text && !out->except;
    text += out->except;
    if (out->except && !*text)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "verbs:device=^ excludes nothing: name devices, as in "
                         "^mlx5_bond_0,mlx5_4:1");
    while (*text && status == TRIB_OK) {
        size_t len = strcspn(text, ",");
        if (out->n == VERBS_LIST_MAX)
            return trib_fail(err, TRIB_ERR_CONFIG,
                             "verbs:device=%.100s: at most %d names", all,
                             VERBS_LIST_MAX);
        if (!read_item(text, len, &out->of[out->n].at, &out->of[out->n].prefix))
            return trib_fail(
                err, TRIB_ERR_CONFIG,
                "verbs:device=%.*s is neither a device nor a port, such as mlx5_0, "
                "mlx5_0:1 or mlx5_*; ^ before the list excludes its devices",
                (int)(len < 100 ? len : 100), text);
        out->exact = out->exact && !out->of[out->n].prefix;
        out->n++;
        if (!out->except)
            status = check_last(out, err);
        text += len + (text[len] == ',');
    }
    return status;
}

/* Return the first item that matches a port, or -1. Number 0: any port. */
static int match(const struct verbs_list *list, const char *device, int number)
{
    for (int i = 0; i < list->n; i++) {
        const struct verbs_port *at = &list->of[i].at;
        const size_t len = strlen(at->device);
        if (strncmp(at->device, device, len) == 0 &&
            (list->of[i].prefix || !device[len]) &&
            (!at->number || !number || at->number == number))
            return i;
    }
    return -1;
}

/* Speeds --------------------------------------------------------------------------- */

static void speed_text(uint32_t mbps, char text[32])
{
    snprintf(text, 32, "%g Gbit/s", (double)mbps / 1000);
}

/* The choice ----------------------------------------------------------------------- */

/* A device while its ports are listed. */
struct device {
    struct ibv_device *device;
    struct verbs_adapter *adapter;
    struct ibv_context *context; /* of `adapter` */
    int ports, active;
};

static void judge_port(const struct verbs_wish *wish, const struct device *d,
                       int number, struct verbs_candidate *out)
{
    const struct trib_net_choice *net = &wish->v->nets;
    const struct verbs_list *list = wish->list;
    const char *lacks = trib_verbs_missing_feature(d->device);
    struct ibv_port_attr attr = {0};

    *out = (struct verbs_candidate){.at = {.number = (uint8_t)number}};
    snprintf(out->at.device, sizeof(out->at.device), "%s", d->device->name);
    if (wish->v->api.ibv_query_port(d->context, out->at.number, (void *)&attr) != 0)
        snprintf(out->why, sizeof(out->why), "cannot be queried: %m");
    else if (list->n && (match(list, d->device->name, number) >= 0) == list->except)
        snprintf(out->why, sizeof(out->why), "not selected by device=");
    else if (lacks)
        snprintf(out->why, sizeof(out->why), "%s", lacks);
    else if (attr.state != IBV_PORT_ACTIVE)
        snprintf(out->why, sizeof(out->why), "not active");
    else if (!trib_verbs_port_chosen(wish->v, d->context, out->at.number))
        snprintf(out->why, sizeof(out->why), "no address selected by %s%.80s",
                 net->n ? "net=" : "gid= or roce=", net->n ? net->text : "");
    out->mbps = trib_verbs_port_mbps(d->device, out->at.number, &attr);
}

static void add_ports(const struct verbs_wish *wish, struct ibv_device *device,
                      struct verbs_ports *out)
{
    struct device d = {.device = device,
                       .adapter = trib_verbs_adapter_open(&wish->v->api, device)};
    struct ibv_device_attr attr;
    int first = out->n;

    if (!d.adapter) {
        if (out->n == VERBS_PORTS_MAX)
            return;
        struct verbs_candidate *c = &out->of[out->n++];
        *c = (struct verbs_candidate){.mbps = 0};
        snprintf(c->at.device, sizeof(c->at.device), "%s", device->name);
        snprintf(c->why, sizeof(c->why), "cannot be opened: %m%s",
                 trib_verbs_errno_cure(errno));
        return;
    }
    d.context = d.adapter->ibv;
    if (wish->v->api.ibv_query_device(d.context, &attr) == 0)
        d.ports = attr.phys_port_cnt;
    const int distance = wish->v->api.distance(device);
    for (int number = 1; number <= d.ports && out->n < VERBS_PORTS_MAX; number++) {
        struct ibv_port_attr port = {0};
        struct verbs_candidate *c = &out->of[out->n++];
        judge_port(wish, &d, number, c);
        c->distance = distance;
        if (wish->v->api.ibv_query_port(d.context, (uint8_t)number, (void *)&port) == 0)
            d.active += port.state == IBV_PORT_ACTIVE;
    }
    for (int i = first; i < out->n; i++)
        out->of[i].only = d.ports == 1 || (d.active == 1 && !out->of[i].why[0]);
    trib_verbs_adapter_close(d.adapter);
}

/* Drop slow ports, except those of an exact list. */
static void drop_slow(const struct verbs_wish *wish, struct verbs_ports *ports)
{
    const struct verbs_candidate *best = NULL;
    char one[32], two[32];

    for (int i = 0; i < ports->n; i++) {
        const struct verbs_candidate *c = &ports->of[i];
        if (!c->why[0] && (!best || c->mbps > best->mbps))
            best = c;
    }
    for (int i = 0; i < ports->n && best && !wish->list->exact; i++) {
        struct verbs_candidate *c = &ports->of[i];
        if (c->why[0] || !c->mbps || c->mbps >= best->mbps / SLOWER)
            continue;
        speed_text(c->mbps, one);
        speed_text(best->mbps, two);
        snprintf(c->why, sizeof(c->why), "%s, less than 1/%d of the %s of %.60s", one,
                 SLOWER, two, best->at.device);
    }
}

/* In an exact list the order is the user's. Otherwise the first port of each device
 * comes first, because ports of one device share its memory bandwidth. */
static int rank_of(const struct verbs_wish *wish, const struct verbs_ports *ports,
                   int i)
{
    const struct verbs_candidate *c = &ports->of[i];
    int before = 0;

    if (wish->list->exact)
        return match(wish->list, c->at.device, c->at.number);
    for (int k = 0; k < i; k++)
        before +=
            !ports->of[k].why[0] && strcmp(ports->of[k].at.device, c->at.device) == 0;
    return before;
}

static void list_usable(const struct verbs_wish *wish, struct verbs_ports *ports)
{
    int rank[VERBS_PORTS_MAX];

    for (int i = 0; i < ports->n; i++) {
        if (ports->of[i].why[0])
            continue;
        const int own = rank_of(wish, ports, i);
        int at = ports->n_usable++;
        for (; at > 0 && rank[at - 1] > own; at--) {
            rank[at] = rank[at - 1];
            ports->order[at] = ports->order[at - 1];
        }
        rank[at] = own;
        ports->order[at] = i;
    }
}

/* Move the nearest ports to the front. Among equally near ones, the ranks of a host
 * begin at different ports. */
static void prefer_near(const struct verbs_wish *wish, struct verbs_ports *ports)
{
    int sorted[VERBS_PORTS_MAX], n = 0;

    while (n < ports->n_usable) {
        int equal[VERBS_PORTS_MAX], n_equal = 0, least = INT_MAX;
        for (int i = 0; i < ports->n_usable; i++) {
            const int at = ports->order[i];
            if (at < 0 || ports->of[at].distance > least)
                continue;
            if (ports->of[at].distance < least)
                n_equal = 0;
            least = ports->of[at].distance;
            equal[n_equal++] = i;
        }
        assert(n_equal > 0);
        /* Ranks take blocks of `rails` ports, so that two ranks have the same ones or
         * none in common as far as possible. */
        const int first = wish->place * wish->rails % n_equal;
        for (int i = 0; i < n_equal; i++) {
            int *from = &ports->order[equal[(first + i) % n_equal]];
            sorted[n++] = *from;
            *from = -1;
        }
    }
    memcpy(ports->order, sorted, (size_t)n * sizeof(*sorted));
}

/* Take the first ports, and restore their order among each other: ranks with the same
 * ports have them in the same order. */
static void take(const struct verbs_wish *wish, struct verbs_ports *ports)
{
    int usual[VERBS_PORTS_MAX], n = 0;

    memcpy(usual, ports->order, sizeof(usual));
    if (ports->n_usable > wish->rails)
        prefer_near(wish, ports);
    for (int i = 0; i < ports->n_usable; i++) {
        struct verbs_candidate *c = &ports->of[ports->order[i]];
        c->taken = i < wish->rails;
        if (!c->taken)
            snprintf(c->why, sizeof(c->why), "this rank uses %d other%s", wish->rails,
                     wish->rails == 1 ? "" : "s");
    }
    for (int i = 0; i < ports->n_usable; i++) {
        if (ports->of[usual[i]].taken)
            ports->order[n++] = usual[i];
    }
    ports->n_taken = n;
}

struct verbs_port trib_verbs_candidate_port(const struct verbs_candidate *c)
{
    struct verbs_port port = c->at;

    port.number = c->only ? 0 : port.number;
    return port;
}

static char *candidate_text(const struct verbs_candidate *c, char text[VERBS_PORT_TEXT])
{
    const struct verbs_port port = trib_verbs_candidate_port(c);

    return trib_verbs_port_text(&port, text);
}

static void all_ports_text(const struct verbs_ports *ports, char *text, size_t bytes)
{
    char one[VERBS_PORT_TEXT];

    for (int i = 0; i < ports->n; i++)
        trib_text_append(text, bytes, "%s%s", i ? ", " : "",
                         candidate_text(&ports->of[i], one));
}

void trib_verbs_skipped_text(const struct verbs_ports *ports, char *text, size_t bytes)
{
    char one[VERBS_PORT_TEXT];
    const char *comma = "";

    for (int i = 0; i < ports->n; i++) {
        const struct verbs_candidate *c = &ports->of[i];
        if (c->taken)
            continue;
        trib_text_append(text, bytes, "%s%s (%s)", comma, candidate_text(c, one),
                         c->why);
        comma = ", ";
    }
}

/* Each item of a list must match a port. */
static trib_status_t check_items(const struct verbs_list *list,
                                 const struct verbs_ports *ports,
                                 const struct trib_log *log, struct trib_error *err)
{
    char all[400] = "", one[VERBS_PORT_TEXT];

    all_ports_text(ports, all, sizeof(all));
    for (int i = 0; i < list->n; i++) {
        const struct verbs_list only = {.n = 1, .of = {list->of[i]}};
        const char *star = only.of[0].prefix ? "*" : "";
        bool found = false;
        for (int k = 0; k < ports->n && !found; k++)
            found = match(&only, ports->of[k].at.device, ports->of[k].at.number) >= 0;
        if (found)
            continue;
        trib_verbs_port_text(&only.of[0].at, one);
        if (!list->except)
            return trib_fail(
                err, TRIB_ERR_CONFIG,
                "verbs: there is no RDMA device \"%s%s\"; this host has %s", one, star,
                all);
        trib_log(log, TRIB_LOG_WARN, "verbs",
                 "device=^: there is no RDMA device \"%s%s\" to exclude; this host "
                 "has %s",
                 one, star, all);
    }
    return TRIB_OK;
}

trib_status_t trib_verbs_find_ports(const struct verbs_wish *wish,
                                    const struct trib_log *log, struct verbs_ports *out,
                                    struct trib_error *err)
{
    struct ibv_device **list = wish->v->api.ibv_get_device_list(NULL);

    assert(wish->rails > 0 && wish->place >= 0);
    memset(out, 0, sizeof(*out));
    for (int i = 0; list && list[i]; i++)
        add_ports(wish, list[i], out);
    if (list)
        wish->v->api.ibv_free_device_list(list);
    if (out->n == 0)
        return TRIB_OK;
    drop_slow(wish, out);
    list_usable(wish, out);
    take(wish, out);
    return check_items(wish->list, out, log, err);
}
