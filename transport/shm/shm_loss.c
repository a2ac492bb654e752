/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that are lost or about to be reported lost. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/process.h"
#include "transport/shm/shm.h"

/* The peer's segment remains mapped until close(): wake() may be reading it. */
void trib_shm_deactivate(struct shm *shm, int peer)
{
    assert(shm->peers[peer].active && shm->n_active > 0);
    shm->peers[peer].active = false;
    for (int i = 0; i < shm->n_active; i++) {
        if (shm->active[i] == peer) {
            shm->active[i] = shm->active[--shm->n_active];
            break;
        }
    }
    if (shm->next >= shm->n_active)
        shm->next = 0;
}

/* Mark the peer lost; the loss is reported once its ring is empty. */
void trib_shm_peer_drain(struct shm *shm, struct shm_peer *peer, const char *fmt, ...)
{
    va_list args;

    assert(peer->state == TRIB_PEER_CONNECTED);
    va_start(args, fmt);
    vsnprintf(peer->why, sizeof(peer->why), fmt, args);
    va_end(args);
    peer->state = TRIB_PEER_DRAINING;
    trib_process_watch_close(&peer->watch);
    shm->n_draining++;
}

void trib_shm_peer_silent(struct shm *shm, int peer, const char *why)
{
    if (shm->peers[peer].state == TRIB_PEER_CONNECTED)
        trib_shm_peer_drain(shm, &shm->peers[peer], "%s", why);
}

void trib_shm_peer_lost(struct shm *shm, int peer)
{
    struct shm_peer *p = &shm->peers[peer];

    assert(p->state == TRIB_PEER_DRAINING);
    p->state = TRIB_PEER_LOST;
    assert(shm->n_draining > 0);
    shm->n_draining--;
    trib_shm_deactivate(shm, peer);
}
