/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin_lock: waiting for the lock.
 */
#include <time.h>

#include "base/spin_lock.h"

enum { SPINS = 64, PAUSE_NS = 20000 };

void trib_spin_wait(struct trib_spin_lock *lock)
{
    const struct timespec pause = {0, PAUSE_NS};

    for (unsigned n = 0;
         atomic_exchange_explicit(&lock->held, true, memory_order_acquire); n++) {
        if (n >= SPINS)
            nanosleep(&pause, NULL); /* its holder may need this CPU */
    }
}
