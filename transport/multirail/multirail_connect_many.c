/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: connecting to several peers at once. Each inner connects to all of them in a
 * thread of its own; connect then finds the results there.
 */
#include <stdlib.h>

#include "base/wait.h"
#include "transport/multirail/multirail.h"

enum { BATCH = 128 }; /* peers whose parsed addresses are kept at a time */

/* What one inner connects to. */
struct inner_dials {
    struct trib_transport *inner;
    struct trib_target of[BATCH];
    int n;
    pthread_t thread;
    bool threaded;
};

static void *dial_main(void *arg)
{
    struct inner_dials *d = arg;

    d->inner->ops->connect_many(d->inner, d->of, d->n);
    return NULL;
}

static void add(struct inner_dials *d, int peer, const struct trib_address *address)
{
    d->of[d->n++] = (struct trib_target){peer, address};
}

/* Give each inner its part of a peer's address. If this rank has several devices and
 * the peer one, connect finds the inner that leads there. */
static void split(struct multirail *r, const struct trib_target *dial,
                  struct multirail_parsed_address *whole, struct inner_dials *parts)
{
    struct multirail_peer *p = &r->peers[dial->peer];

    if (p->state != TRIB_PEER_UNKNOWN)
        return;
    if (trib_multirail_match(r, dial->peer, dial->address, whole) != TRIB_OK) {
        trib_error_clear(r->err); /* connect reports it */
        return;
    }
    if (p->plain && r->n > 1)
        return;
    if (p->plain)
        add(&parts[0], dial->peer, &whole->inner[0]);
    for (int k = 0; k < p->n && !p->plain; k++) {
        if (!(p->dead >> k & 1))
            add(&parts[p->rails[k].inner], dial->peer,
                &whole->inner[p->rails[k].other]);
    }
    p->ahead = (uint8_t)multirail_all(p);
}

static void dial_all(struct multirail *r, struct inner_dials *parts)
{
    int last = -1;

    for (int i = 0; i < r->n; i++) {
        parts[i].inner = r->inner[i];
        if (parts[i].n)
            last = i;
    }
    for (int i = 0; i <= last; i++) { /* this thread serves the last one */
        if (!parts[i].n)
            continue;
        parts[i].threaded =
            i < last && trib_thread_start(&parts[i].thread, dial_main, &parts[i]) == 0;
        if (!parts[i].threaded)
            (void)dial_main(&parts[i]);
    }
    for (int i = 0; i < last; i++) {
        if (parts[i].threaded)
            trib_multirail_join(r, parts[i].thread);
    }
}

void trib_multirail_connect_many(struct trib_transport *t,
                                 const struct trib_target *dials, int n)
{
    struct multirail *r = multirail_of(t);
    const size_t most = n < BATCH ? (size_t)n : BATCH;
    struct multirail_parsed_address *whole = calloc(most, sizeof(*whole));
    struct inner_dials *parts = malloc((size_t)r->n * sizeof(*parts));

    for (int first = 0; whole && parts && first < n; first += BATCH) {
        for (int i = 0; i < r->n; i++)
            parts[i].n = 0;
        for (int i = first; i < n && i < first + BATCH; i++) {
            if (dials[i].peer >= 0 && dials[i].peer < r->size &&
                dials[i].peer != r->self)
                split(r, &dials[i], &whole[i - first], parts);
        }
        trib_idle_gate_enter(&r->gate);
        dial_all(r, parts);
        trib_idle_gate_leave(&r->gate);
    }
    free(parts);
    free(whole);
}
