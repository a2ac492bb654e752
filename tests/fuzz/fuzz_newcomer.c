/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes from a newcomer to a listener, and any bytes as the answer to a join
 * request. The first byte selects the progress of the newcomer and the number of bytes
 * per read.
 */
#include "boot/tcp/tcp_newcomer.h"
#include "comm/members/grow.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* valid join requests, and contributions to an exchange */

static void fill_rules(struct trib_newcomer_rules *rules)
{
    struct trib_config cfg = {.chunk = 65536, .window = 8};
    struct trib_join_request request;

    memset(rules, 0, sizeof(*rules));
    rules->self.size = 4;
    rules->self.who.rank = 1;
    memcpy(rules->self.library, "0.1.0", 6);
    trib_join_request_fill(&cfg, &request);
    memcpy(rules->request, &request, sizeof(request));
    rules->request_bytes = sizeof(request);
    rules->fits = trib_join_request_fits;
}

/* Process an accepted newcomer as a listener does. */
static void go_on(struct trib_newcomer *n)
{
    static const uint8_t result[300];

    if (n->state == TRIB_NEWCOMER_WAITS) {
        fuzz_reached++;
        n->state = TRIB_NEWCOMER_ADMITTED;
    }
    if (n->state == TRIB_NEWCOMER_ADMITTED && n->given > n->answered) {
        fuzz_reached++;
        need(n->bytes <= sizeof(n->blob));
        trib_newcomer_answer(n, result, sizeof(result));
        need(n->given == n->answered);
    }
    trib_newcomer_tick(n);
    need(n->out_len <= n->out_cap);
    if (n->out_len > 100000)
        n->out_len = 0;
}

/* Write a valid start, which random bytes rarely contain. */
static size_t begin(uint8_t *bytes, unsigned how,
                    const struct trib_newcomer_rules *rules)
{
    struct trib_tcp_hello hello = rules->self;
    const struct trib_tcp_gather request = {
        .phase = "join request", .bytes = rules->request_bytes, .blob = rules->request};
    size_t n = 0;

    hello.size = 0;
    hello.who.rank = 0;
    if (how > 0)
        n += trib_tcp_put_hello(bytes, TRIB_TCP_HELLO, &hello);
    if (how > 1)
        n += trib_tcp_put_gather(bytes + n, 1, &request);
    return n;
}

static void feed(struct trib_newcomer *n, const struct trib_newcomer_rules *rules,
                 const uint8_t *bytes, size_t size, size_t piece)
{
    while (size > 0 && n->state != TRIB_NEWCOMER_OVER) {
        size_t now = sizeof(n->in) - n->in_len;
        now = now < piece ? now : piece;
        now = now < size ? now : size;
        need(now > 0);
        memcpy(n->in + n->in_len, bytes, now);
        n->in_len += now;
        bytes += now;
        size -= now;
        trib_newcomer_take(n, rules);
        need(n->in_len < sizeof(n->in));
        need(memchr(n->why, 0, sizeof(n->why)) != NULL);
        go_on(n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct trib_newcomer_rules rules;
    uint8_t first[2 * TRIB_TCP_SMALL_BYTES];
    struct trib_admission a = {0};
    struct trib_newcomer *n;

    if (size == 0 || !(n = calloc(1, sizeof(*n))))
        return 0;
    if (!rules.fits)
        fill_rules(&rules);
    feed(n, &rules, first, begin(first, data[0] % 3u, &rules), sizeof(first));
    feed(n, &rules, data + 1, size - 1, 1 + data[0] / 3u * 7u);
    trib_newcomer_free(n);
    free(n);
    memcpy(&a, data, size < sizeof(a) ? size : sizeof(a));
    a.magic = TRIB_ADMISSION_MAGIC;
    a.version = TRIB_GROW_VERSION;
    if (trib_admission_is_sound(&a))
        need(a.rank >= a.members && a.rank < a.size && a.size <= 65536);
    return 0;
}
