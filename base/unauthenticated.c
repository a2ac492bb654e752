/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/unauthenticated.h"

#include <stdio.h>

#include "base/addresses.h"
#include "base/log.h"
#include "base/time.h"

void trib_unauthenticated_warn(struct trib_unauthenticated *s,
                               const struct trib_log *log, const char *component,
                               const uint8_t *ip, unsigned port, const char *what)
{
    char at[TRIB_IP_TEXT_BYTES] = "an unknown address", more[64] = "";

    if (!trib_deadline_passed(s->next_ns)) {
        s->unlogged++;
        return;
    }
    if (ip)
        trib_net_text(ip, at, sizeof(at));
    if (s->unlogged)
        snprintf(more, sizeof(more), "; %u more since the last such line", s->unlogged);
    trib_log(log, TRIB_LOG_WARN, component,
             "rejected an unauthenticated peer at port %u from %s: it %s%s",
             port, at, what, more);
    s->unlogged = 0;
    s->next_ns = trib_deadline_ms(TRIB_UNAUTHENTICATED_PAUSE_MS);
}
