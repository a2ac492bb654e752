/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "tests/transport/conformance.h"

enum { DETACH_LEN = 1 << 20, DETACH_MOST = 16, DETACH_END = 99 };

/* Post writes until there is no room and detach them. Return how many were posted. */
static int post_and_detach(struct rig *rig)
{
    struct trib_event e;
    bool detached = true;
    int n = 0, done = 0;

    for (; detached && n < DETACH_MOST; n++) {
        const struct trib_write w = {.local = rig->region,
                                     .local_off = (size_t)n * DETACH_LEN,
                                     .remote = rig->remote[1],
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
        memset(rig->mem, 0xee, (size_t)DETACH_MOST * DETACH_LEN);
    return n;
}

static void ignore_event(void *arg, const struct trib_event *e)
{
    (void)arg, (void)e;
}

/* The source of a detached write may be changed while the peer does not poll. */
void check_detach(struct spawn *s, const struct row *row)
{
    struct rig rig;
    struct trib_event e = {0};
    int n = 0;

    if (!rig_open_len(&rig, s, row, (size_t)DETACH_MOST * DETACH_LEN))
        goto out;
    fill(rig.mem, (size_t)DETACH_MOST * DETACH_LEN, (uint32_t)s->rank);
    if (!spawn_barrier(s))
        goto out;
    if (s->rank == 0)
        n = post_and_detach(&rig);
    if (!spawn_barrier(s))
        goto out;
    if (s->rank == 0) {
        const struct trib_write w = {.imm = DETACH_END};
        (void)rig_write(&rig, 1, &w, ignore_event, NULL);
        goto out;
    }
    for (n = 0; rig_expect(&rig, TRIB_EVENT_ARRIVED, 0, &e) && e.imm != DETACH_END; n++)
        SPAWN_CHECK(s, e.imm == (uint32_t)n);
    SPAWN_CHECK(s, n > 0);
    SPAWN_CHECK(s, filled(rig.mem, (size_t)n * DETACH_LEN, 0));
out:
    rig_close(&rig);
}
