/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rails: connecting to several peers at once. Each inner connects to all of them in a
 * thread of its own; connect then finds the results there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "base/wait.h"
#include "transport/multirail/multirail.h"

enum { BATCH = 128 }; /* peers whose parsed addresses are kept at a time */

/* What one inner connects to. */
struct inner_dials {
    struct trib_transport *inner;
    struct trib_target of[BATCH];
    struct trib_target *whole[BATCH]; /* the caller's: a target of all rails */
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

static void add(struct inner_dials *d, struct trib_target *dial,
                const struct trib_address *address)
{
    assert(d->n < BATCH);
    d->whole[d->n] = dial;
    d->of[d->n++] = (struct trib_target){dial->peer, address, false, 0};
}

static bool is_valid(const struct multirail *r, const struct trib_target *dial)
{
    return dial->peer >= 0 && dial->peer < r->size && dial->peer != r->self;
}

/* Give each inner its part of a peer's address. If this rank has several devices and
 * the peer one, connect finds the inner that leads there. */
static void split(struct multirail *r, struct trib_target *dial,
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
        add(&parts[0], dial, &whole->inner[0]);
    for (int k = 0; k < p->n && !p->plain; k++) {
        if (!(p->dead >> k & 1))
            add(&parts[p->rails[k].inner], dial, &whole->inner[p->rails[k].other]);
    }
}

/* Note the rails that an inner has tried; connect leaves the others to threads. Return
 * false if there are others. */
static bool note_tried(struct multirail *r, int inner, const struct inner_dials *part)
{
    bool all = true;

    for (int i = 0; i < part->n; i++) {
        const struct trib_target *one = &part->of[i];
        struct multirail_peer *p = &r->peers[one->peer];
        for (int k = 0; k < p->n; k++) {
            if (one->tried && (p->plain || p->rails[k].inner == inner))
                p->ahead |= (uint8_t)(1u << k);
        }
        if (one->failed_ns > part->whole[i]->failed_ns)
            part->whole[i]->failed_ns = one->failed_ns;
        all &= one->tried;
    }
    return all;
}

/* Return true if connect finds the results of all rails. */
static bool is_tried(const struct multirail *r, const struct trib_target *dial)
{
    const struct multirail_peer *p = &r->peers[dial->peer];

    return p->state == TRIB_PEER_UNKNOWN && p->ahead &&
           (p->ahead | p->dead) == multirail_all(p);
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

/* Connect to a batch of peers. Return false if some are left to connect. */
static bool connect_batch(struct multirail *r, struct trib_target *dials, int n,
                          struct multirail_parsed_address *whole,
                          struct inner_dials *parts)
{
    bool all = true;

    assert(n <= BATCH);
    memset(parts, 0, (size_t)r->n * sizeof(*parts));
    for (int i = 0; i < n; i++) {
        if (is_valid(r, &dials[i]))
            split(r, &dials[i], &whole[i], parts);
    }
    trib_idle_gate_enter(&r->gate);
    dial_all(r, parts);
    trib_idle_gate_leave(&r->gate);
    for (int i = 0; i < r->n; i++)
        all &= note_tried(r, i, &parts[i]);
    for (int i = 0; i < n; i++)
        dials[i].tried = is_valid(r, &dials[i]) && is_tried(r, &dials[i]);
    return all;
}

/* If peers do not answer, the next batch may be as slow. */
void trib_multirail_connect_many(struct trib_transport *t, struct trib_target *dials,
                                 int n)
{
    struct multirail *r = multirail_of(t);
    const size_t most = n < BATCH ? (size_t)n : BATCH;
    struct multirail_parsed_address *whole = calloc(most, sizeof(*whole));
    struct inner_dials *parts = malloc((size_t)r->n * sizeof(*parts));

    for (int i = 0; i < n; i++)
        trib_target_reset(&dials[i]);
    for (int first = 0; whole && parts && first < n; first += BATCH) {
        const uint64_t begin = trib_now_ns();
        const int batch = n - first < BATCH ? n - first : BATCH;
        if (!connect_batch(r, dials + first, batch, whole, parts) &&
            trib_now_ns() - begin >= TRIB_SILENT_NS)
            break;
    }
    free(parts);
    free(whole);
}
