/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses of the fake's ports, and the listeners at them.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "tests/harness/fake_hub.h"

enum { FIRST = 9, PER_OCTET = 200 }; /* hosts */

struct fake_place fake_place_of(const struct sockaddr *address)
{
    const struct sockaddr_in *four = (const void *)address;
    struct fake_place p = {.host = fake_host(), .device = -1, .port = 1};

    if (address->sa_family != AF_INET || !four->sin_addr.s_addr ||
        fake_opts.address_less)
        return p;
    const uint32_t ip = ntohl(four->sin_addr.s_addr), b = ip >> 8 & 0xff;
    if (ip >> 24 == 10 || ip >> 24 == 127)
        p.host =
            (int)(ip >> 16 & 0xff) - FIRST + (int)(b / FAKE_DEVICES_MAX) * PER_OCTET;
    p.device = (int)(b % FAKE_DEVICES_MAX);
    if ((ip & 0xff) >= 1 && (ip & 0xff) <= (uint32_t)fake_opts.ports)
        p.port = (uint8_t)(ip & 0xff);
    return p;
}

void fake_place_address(struct fake_place place, uint8_t ip[4])
{
    ip[0] = 10;
    ip[1] = (uint8_t)(FIRST + place.host % PER_OCTET);
    ip[2] = (uint8_t)(place.device + FAKE_DEVICES_MAX * (place.host / PER_OCTET));
    ip[3] = place.port;
}

struct fake_listener *fake_find_listener(int host, uint16_t port)
{
    for (int i = 0; i < fake_hub->n_listeners; i++) {
        struct fake_listener *l = &fake_hub->listeners[i];
        if (l->port == port && l->host == host && !fake_has_ended(l->process))
            return l;
    }
    return NULL;
}

void fake_remove_listener(uint32_t id)
{
    for (int i = 0; i < fake_hub->n_listeners; i++) {
        struct fake_listener *l = &fake_hub->listeners[i];
        if (l->process == fake_self() && l->id == id)
            l->port = 0;
    }
}

void fake_add_listener(int host, uint32_t id, uint16_t port)
{
    struct fake_listener *l = NULL;

    for (int i = 0; i < fake_hub->n_listeners && !l; i++)
        if (!fake_hub->listeners[i].port)
            l = &fake_hub->listeners[i];
    if (!l && fake_hub->n_listeners < FAKE_LISTENERS_MAX)
        l = &fake_hub->listeners[fake_hub->n_listeners++];
    if (l)
        *l = (struct fake_listener){host, fake_self(), port, id};
    else
        fake_mistake("more than %d listeners", FAKE_LISTENERS_MAX);
}
