/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The links between ports of the fake: when a request arrives, and whether it does.
 */
#include "base/time.h"
#include "tests/harness/fake_hub.h"

bool fake_is_timed(void)
{
    return fake_is_shared() || fake_opts.virtual_time || fake_hub->is_timed;
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

/* Return the next random number of a port. */
static uint64_t draw(struct fake_port *port)
{
    uint64_t x = fake_opts.seed + ++port->draws * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t late_ns(struct fake_port *from)
{
    const uint32_t most =
        from->opts.reorder_us ? from->opts.reorder_us : fake_opts.reorder_us;

    return most ? draw(from) % (most * UINT64_C(1000)) : 0;
}

static bool loses_one(struct fake_port *from, uint64_t packets)
{
    const uint32_t ppm = from->opts.loss_ppm ? from->opts.loss_ppm : fake_opts.loss_ppm;

    for (; ppm && packets; packets--)
        if (draw(from) % 1000000 < ppm)
            return true;
    return false;
}

static uint64_t packets_of(const struct fake_qp *qp, uint64_t bytes)
{
    const uint64_t mtu = UINT64_C(128) << qp->mtu;

    return bytes ? (bytes + mtu - 1) / mtu : 1;
}

/* Return the time between transmissions; timeout 0 means for ever. */
static uint64_t ack_ns(const struct fake_qp *qp)
{
    return qp->timeout ? UINT64_C(4096) << qp->timeout : TRIB_NEVER;
}

static void count(struct fake_port *port, enum fake_counter counter, uint64_t n)
{
    port->counters[counter] += n;
}

/* Lose packets of a request: return the time until it arrives or fails. */
static uint64_t lose(struct fake_port *from, struct fake_port *to,
                     const struct fake_qp *qp, uint64_t packets, bool *is_lost)
{
    uint64_t ns = 0;

    for (int sent = 0; sent <= qp->retry_cnt; sent++) {
        if (!loses_one(from, packets))
            return ns;
        ns = trib_deadline_later(ns, ack_ns(qp));
        count(from, FAKE_LOCAL_ACK_TIMEOUT_ERR, 1);
        count(from, FAKE_PACKET_SEQ_ERR, 1);
        count(to, FAKE_OUT_OF_SEQUENCE, 1);
    }
    *is_lost = true;
    count(from, FAKE_REQ_TRANSPORT_RETRIES_EXCEEDED, 1);
    return ns;
}

/* Bytes before a port mark a request, and its sender is notified. */
static void mark(struct fake_port *from, struct fake_port *to, uint64_t due)
{
    const uint64_t rate = to->opts.rate ? to->opts.rate : fake_opts.rate;
    const double bytes =
        (double)(due - fake_now()) * (double)rate / 1e9; /* a double: no overflow */

    if (!fake_opts.ecn_bytes || !rate || bytes <= (double)fake_opts.ecn_bytes)
        return;
    count(to, FAKE_NP_ECN_MARKED_ROCE_PACKETS, 1);
    count(to, FAKE_NP_CNP_SENT, 1);
    count(from, FAKE_RP_CNP_HANDLED, 1);
}

struct fake_wait fake_travel(uint32_t from, uint32_t to, size_t bytes)
{
    struct fake_port *a = fake_port_of(from), *b = fake_port_of(to);
    const struct fake_qp *qp = fake_qp_row(from);
    struct fake_wait wait = {0};

    if (!a || !b)
        return wait;
    wait.due = carry(a, b, bytes);
    if (wait.due)
        mark(a, b, wait.due);
    const uint64_t later = trib_deadline_later(
        late_ns(a), lose(a, b, qp, packets_of(qp, bytes), &wait.is_lost));
    if (later)
        wait.due = trib_deadline_later(wait.due ? wait.due : fake_now(), later);
    if (wait.due && !fake_hub->is_timed) {
        fake_hub->is_timed = true;
        fake_device_start();
    }
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
    struct fake_port *port = fake_port_of(at->number);
    const int most = port->opts.mtu ? port->opts.mtu : (int)at->port_mtu;

    return (int)r->mtu <= most || r->len <= 128u << most;
}

bool fake_has_gid(const struct fake_qp *qp)
{
    return fake_port_of(qp->number)->gids[qp->sgid_index % FAKE_GIDS].port_num != 0;
}

bool fake_can_reach(uint32_t from, uint32_t to, const struct fake_request *r)
{
    const struct fake_qp *a = fake_qp_row(from), *b = fake_qp_row(to);

    if (fake_opts.gid_loss && (!fake_has_gid(a) || !fake_has_gid(b)))
        return false;
    return share_partition(a->pkey, b->pkey) && fits(a, r) && fits(b, r);
}

void fake_count_arrival(uint32_t from, uint32_t to, const struct fake_request *r)
{
    struct fake_port *a = fake_port_of(from), *b = fake_port_of(to);
    const uint64_t packets = packets_of(fake_qp_row(from), r->len),
                   words = (r->len + UINT64_C(3)) / 4;

    if (!a || !b)
        return;
    count(a, FAKE_XMIT_DATA, words);
    count(b, FAKE_RCV_DATA, words);
    count(a, FAKE_XMIT_PACKETS, packets);
    count(b, FAKE_RCV_PACKETS, packets);
    if (r->opcode == IBV_WR_RDMA_WRITE || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        count(b, FAKE_RX_WRITE_REQUESTS, 1);
}

bool fake_gave_up(uint32_t from, struct fake_wait *wait)
{
    const struct fake_qp *qp = fake_qp_row(from);

    if (!wait->dead) {
        wait->dead =
            qp->timeout ? fake_now() + (qp->retry_cnt + 1u) * ack_ns(qp) : TRIB_NEVER;
        fake_queues_due(wait->dead);
    }
    if (fake_now() < wait->dead)
        return false;
    count(fake_port_of(from), FAKE_LOCAL_ACK_TIMEOUT_ERR, qp->retry_cnt + 1u);
    count(fake_port_of(from), FAKE_REQ_TRANSPORT_RETRIES_EXCEEDED, 1);
    return true;
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
    count(fake_port_of(from), FAKE_RNR_NAK_RETRY_ERR, 1);
    count(fake_port_of(to), FAKE_OUT_OF_BUFFER, 1);
    if (qp->rnr_retry != FOR_EVER && wait->naks > qp->rnr_retry) {
        count(fake_port_of(from), FAKE_REQ_RNR_RETRIES_EXCEEDED, 1);
        return true;
    }
    wait->due = fake_now() + rnr_ns(fake_qp_row(to)->min_rnr_timer);
    fake_queues_due(wait->due);
    return false;
}
