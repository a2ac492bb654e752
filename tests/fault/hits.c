/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fault/hits.h"
#include "tests/harness/daemon.h"

static char service[60];

unsigned hits_below(unsigned n)
{
    static uint64_t seed = 88172645463325252u;

    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

struct hit hits_aim(int signal_number, unsigned looks)
{
    struct hit h = {.signal = signal_number, .delay_ms = (int)hits_below(40)};

    if (looks)
        h.look = 1 + (int)hits_below(looks);
    return h;
}

void hits_look(const struct hits *h, int rank, int *looks)
{
    if (++*looks == h->of[rank].look)
        raise(h->of[rank].signal);
}

static void fire(struct ranks *r, const struct hits *h, double begun, bool *fired)
{
    for (int i = 0; i < HITS_RANKS; i++) {
        /* A victim that waits for a poll of its own is hit after 1 s, in case it never
         * gets there. */
        const double due = begun + h->of[i].delay_ms / 1e3 + (h->of[i].look ? 1 : 0);
        if (!hits_is_victim(h, i) || fired[i] || ranks_seconds() < due)
            continue;
        ranks_signal(r, i, h->of[i].signal);
        fired[i] = true;
    }
}

static bool others_ended(const struct ranks *r, const struct hits *h)
{
    for (int i = 0; i < HITS_RANKS; i++)
        if (!hits_is_victim(h, i) && !r->ended[i])
            return false;
    return true;
}

void hits_drive(struct ranks *r, const struct hits *h, int first)
{
    bool fired[HITS_RANKS] = {false};
    double begun = 0;

    while (!ranks_poll(r)) {
        bool all = true;
        for (int i = 0; i < first; i++)
            all &= atomic_load(&r->slots[i].phase) > 0;
        if (all && !begun)
            begun = ranks_seconds();
        if (begun)
            fire(r, h, begun, fired);
        bool all_fired = begun > 0;
        for (int i = 0; i < HITS_RANKS; i++)
            all_fired &= !hits_is_victim(h, i) || fired[i] || r->ended[i];
        for (int i = 0; i < HITS_RANKS && all_fired; i++)
            atomic_store(&r->slots[i].phase, 2);
        for (int i = 0; i < HITS_RANKS && others_ended(r, h); i++)
            ranks_signal(r, i, SIGKILL);
        usleep(300);
    }
}

static void describe(const struct hits *h, const char *what, char *text)
{
    int n = snprintf(text, HITS_TEXT, "%s", what);

    for (int i = 0; i < HITS_RANKS; i++)
        if (hits_is_victim(h, i))
            n += snprintf(text + n, HITS_TEXT - (size_t)n,
                          ", process %d signal %d after %d ms, look %d", i,
                          h->of[i].signal, h->of[i].delay_ms, h->of[i].look);
}

void hits_judge(const struct ranks *r, const struct hits *h, const char *what)
{
    char text[HITS_TEXT];
    uint64_t first = 0;

    describe(h, what, text);
    for (int i = 0; i < HITS_RANKS; i++) {
        const uint64_t count = atomic_load(&r->slots[i].count);
        if (hits_is_victim(h, i))
            continue;
        if (r->slots[i].status != 0)
            fail_msg("%s: process %d %s: %s", text, i,
                     r->slots[i].status == RANKS_NEVER ? "never came back" : "failed",
                     r->slots[i].text);
        if (!first)
            first = count;
        if (count != first)
            fail_msg("%s: process %d ended with %#llx, another one with %#llx", text, i,
                     (unsigned long long)count, (unsigned long long)first);
    }
}

const char *hits_service(void)
{
    return service;
}

void hits_with_service(void (*fn)(const char *transport), const char *transport)
{
    struct daemon_process d = {.port = 0};

    daemon_need(&d);
    snprintf(service, sizeof(service), ";service_retry_ms=100;service=127.0.0.1:%d",
             d.port);
    fn(transport);
    service[0] = 0;
    daemon_end(&d);
}
