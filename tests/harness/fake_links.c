/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The links between ports of the fake: when a request arrives, and whether it does.
 */
#include "base/time.h"
#include "tests/harness/fake_hub.h"

uint64_t fake_now(void)
{
    return trib_now_ns();
}

bool fake_is_timed(void)
{
    return fake_is_shared() || fake_opts.rate || fake_opts.delay_us;
}

/* Time ----------------------------------------------------------------------------- */

static uint64_t busy_ns(const struct fake_port *port, size_t bytes)
{
    const uint64_t rate = port->opts.rate ? port->opts.rate : fake_opts.rate;

    return rate ? bytes * UINT64_C(1000000000) / rate : 0;
}

static uint64_t delay_ns(const struct fake_port *from)
{
    return (from->opts.delay_us ? from->opts.delay_us : fake_opts.delay_us) *
           UINT64_C(1000);
}

/* Return the time at which the bytes have left the second port; 0: at once. */
static uint64_t carry(struct fake_port *from, struct fake_port *to, size_t bytes)
{
    const uint64_t now = fake_now(), out = busy_ns(from, bytes),
                   in = busy_ns(to, bytes), delay = delay_ns(from);

    if (!out && !in && !delay)
        return 0;
    from->out_free = (from->out_free > now ? from->out_free : now) + out;
    const uint64_t arrives = from->out_free + delay,
                   read = in > out ? arrives - out + in : arrives;
    to->in_free = to->in_free + in > read ? to->in_free + in : read;
    return to->in_free;
}

struct fake_wait fake_travel(uint32_t from, uint32_t to, size_t bytes)
{
    struct fake_port *a = fake_port_of(from), *b = fake_port_of(to);
    struct fake_wait wait = {0};

    if (a && b)
        wait.due = carry(a, b, bytes);
    return wait;
}

/* Arrival -------------------------------------------------------------------------- */

static bool share_partition(uint16_t a, uint16_t b)
{
    enum { FULL = 0x8000 };

    return ((a ^ b) & ~FULL) == 0 && ((a | b) & FULL);
}

static bool fits(const struct fake_qp *at, const struct fake_request *r)
{
    const struct fake_port *port = fake_port_of(at->number);
    const int most = port->opts.mtu ? port->opts.mtu : (int)at->port_mtu;

    return (int)r->mtu <= most || r->len <= 128u << most;
}

bool fake_can_reach(uint32_t from, uint32_t to, const struct fake_request *r)
{
    const struct fake_qp *a = fake_qp_row(from), *b = fake_qp_row(to);

    return share_partition(a->pkey, b->pkey) && fits(a, r) && fits(b, r);
}

/* Return the time between transmissions; timeout 0 means for ever. */
static uint64_t ack_ns(const struct fake_qp *qp)
{
    return qp->timeout ? UINT64_C(4096) << qp->timeout : TRIB_NEVER;
}

bool fake_gave_up(uint32_t from, struct fake_wait *wait)
{
    const struct fake_qp *qp = fake_qp_row(from);

    if (!wait->dead) {
        wait->dead =
            qp->timeout ? fake_now() + (qp->retry_cnt + 1u) * ack_ns(qp) : TRIB_NEVER;
        fake_queues_due(wait->dead);
    }
    return fake_now() >= wait->dead;
}

/* Return the time of the field min_rnr_timer. */
static uint64_t rnr_ns(uint8_t timer)
{
    static const uint32_t units[32] = {
        65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

    return units[timer % 32] * UINT64_C(10000);
}

bool fake_not_ready(uint32_t from, uint32_t to, struct fake_wait *wait)
{
    enum { FOR_EVER = 7 };
    const struct fake_qp *qp = fake_qp_row(from);

    wait->naks++;
    if (qp->rnr_retry != FOR_EVER && wait->naks > qp->rnr_retry)
        return true;
    wait->due = fake_now() + rnr_ns(fake_qp_row(to)->min_rnr_timer);
    fake_queues_due(wait->due);
    return false;
}
