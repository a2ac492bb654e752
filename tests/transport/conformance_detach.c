/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "tests/transport/conformance.h"

enum {
    DETACH_LEN = 1 << 20,
    DETACH_MOST = 16, /* more bytes than sockets hold */
    DETACH_BYTES = DETACH_MOST * DETACH_LEN,
    DETACH_END = 99,
};

struct memory {
    uint8_t *bytes;
    struct trib_region *region;
    struct trib_remote *remote[RIG_RANKS_MAX];
};

/* Post writes until there is no room and detach them. Return how many were posted. */
static int post_and_detach(struct rig *rig, const struct memory *m)
{
    struct trib_event e;
    bool detached = true;
    int n = 0, done = 0;

    for (; detached && n < DETACH_MOST; n++) {
        const struct trib_write w = {.local = m->region,
                                     .local_off = (size_t)n * DETACH_LEN,
                                     .remote = m->remote[1],
                                     .remote_off = (size_t)n * DETACH_LEN,
                                     .len = DETACH_LEN,
                                     .imm = (uint32_t)n,
                                     .signal = true,
                                     .token = (uint64_t)n};
        if (rig->t->ops->write(rig->t, 1, &w) != TRIB_OK)
            break;
        if (n % 4 == 3)
            detached = rig->t->ops->detach(rig->t, 1);
    }
    while (detached && rig->t->ops->detach(rig->t, 1) && done < n) {
        if (!rig_expect(rig, TRIB_EVENT_WRITE_DONE, 1, &e))
            return n;
        SPAWN_CHECK(rig->s, e.token == (uint64_t)done);
        done++;
    }
    if (done == n)
        memset(m->bytes, 0xee, DETACH_BYTES);
    return n;
}

static void ignore_event(void *arg, const struct trib_event *e)
{
    (void)arg, (void)e;
}

static void detach(struct rig *rig, struct memory *m)
{
    struct spawn *s = rig->s;
    struct trib_event e = {0};
    int n = 0;

    fill(m->bytes, DETACH_BYTES, (uint32_t)s->rank);
    if (!SPAWN_CHECK(s, rig->t->ops->reg(rig->t, m->bytes, DETACH_BYTES, &m->region) ==
                            TRIB_OK) ||
        !rig_swap(rig, m->region, m->remote))
        return;
    if (s->rank == 0)
        n = post_and_detach(rig, m);
    if (!spawn_barrier(s))
        return;
    if (s->rank == 0) {
        const struct trib_write w = {.imm = DETACH_END};
        (void)rig_write(rig, 1, &w, ignore_event, NULL);
        return;
    }
    for (n = 0; rig_expect(rig, TRIB_EVENT_ARRIVED, 0, &e) && e.imm != DETACH_END; n++)
        SPAWN_CHECK(s, e.imm == (uint32_t)n);
    SPAWN_CHECK(s, n > 0);
    SPAWN_CHECK(s, filled(m->bytes, (size_t)n * DETACH_LEN, 0));
}

/* The source of a detached write may be changed while the peer does not poll. A backend
 * that detaches nothing says so even if nothing waits. */
void check_detach(struct spawn *s, const struct row *row)
{
    struct rig rig;
    struct memory m = {.bytes = malloc(DETACH_BYTES)};

    if (!SPAWN_CHECK(s, m.bytes != NULL))
        return;
    if (rig_open(&rig, s, row) && rig.t->ops->detach(rig.t, !s->rank))
        detach(&rig, &m);
    rig_close(&rig);
    free(m.bytes);
}
