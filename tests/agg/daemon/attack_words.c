/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks by messages of rank 0 on the control connection: no rank of these jobs
 * exists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tributary.h>

#include "base/host.h"
#include "base/sockets.h"
#include "base/time.h"
#include "tests/agg/daemon/attack.h"
#include "transport/shm/shm_layout.h"

enum {
    BLOB = TRIB_CONTROL_BLOB_MAX,
    JOBS_MOST = 250, /* fewer than tribd admits at a time: the limit of memory must
                      * refuse them */
    RANKS = 65536,
    PAGE_MOST = 1 << 20, /* of the page for Prometheus, whatever jobs claim about
                          * themselves */
};

/* Build a tree with a unit of one service below another; all ranks but `above` send to
 * the lower one. */
static uint32_t put_tree(uint16_t ranks, uint16_t above, uint16_t out[13])
{
    const uint16_t head[] = {2, 0, 1, 0, 0, 1, 1};
    uint32_t n = sizeof(head) / sizeof(*head);

    memcpy(out, head, sizeof(head));
    if (above) {
        out[n++] = (uint16_t)(above - 1);
        out[n++] = 0;
    }
    out[n++] = (uint16_t)(ranks - above - 1);
    out[n++] = 1;
    return n * (uint32_t)sizeof(*out);
}

/* foreign -------------------------------------------------------------------------- */

/* Join two nodes of one job in one tribd, each with a separate connection. */
static bool join_both(struct attack *a, struct caller *other, const uint16_t *tree,
                      uint32_t bytes)
{
    struct trib_control join = caller_join(&a->c, a->name, 1, "shm");

    join.join.aggregators = 2;
    join.join.slots *= 2;
    join.join.bytes *= 2;
    join.join.tree = (struct trib_control_bytes){(const uint8_t *)tree, bytes};
    if (!attack_join(a, &join))
        return false;
    join.join.aggregator = 1;
    return caller_come(other, a->name, true) && caller_say(other, &join) &&
           caller_hear(other, TRIB_CONTROL_ADMITTED);
}

static bool hear_both(struct caller *const c[2], uint8_t (*out)[BLOB], uint32_t *each)
{
    for (int i = 0; i < 2; i++) {
        if (!caller_hear(c[i], TRIB_CONTROL_BLOBS) || c[i]->m.blobs.each > BLOB)
            return false;
        *each = c[i]->m.blobs.each;
        memcpy(out[i], c[i]->m.blobs.data.at, *each);
    }
    return true;
}

/* Send the blob of the rank and the blobs of both nodes. */
static bool give_three(struct caller *c, uint32_t exchange, uint32_t each,
                       const uint8_t *rank, uint8_t (*nodes)[BLOB])
{
    uint8_t all[3 * BLOB];

    memcpy(all, rank, each);
    memcpy(all + each, nodes[0], each);
    memcpy(all + 2 * each, nodes[1], each);
    return attack_give(c, exchange, all, 3, each);
}

/* Name an arena in the memory of tribd, at an address that the attacker chooses. */
static void name_memory(uint8_t *facts, uint32_t each)
{
    const size_t at = attack_find(facts, each, TRIB_SHM_EXPORT_MAGIC);
    struct trib_shm_export x;

    if (at + sizeof(x) > each)
        return;
    memcpy(&x, facts + at, sizeof(x));
    x.kind = TRIB_SHM_FOREIGN;
    x.addr = UINT64_C(0x414141414000);
    x.len = UINT64_C(1) << 40;
    memcpy(facts + at, &x, sizeof(x));
}

bool attack_foreign(struct attack *a)
{
    struct caller other = a->c, *const c[2] = {&a->c, &other};
    uint8_t hello[2][BLOB], facts[2][BLOB], forged[BLOB];
    uint16_t tree[13];
    uint32_t each = 0;

    if (!join_both(a, &other, tree, put_tree(1, 0, tree)) ||
        !hear_both(c, hello, &each))
        return false;
    if (!give_three(c[0], 0, each, hello[1], hello) ||
        !give_three(c[1], 0, each, hello[0], hello) || !hear_both(c, facts, &each))
        return false;
    memcpy(forged, facts[0], each);
    name_memory(forged, each);
    if (!give_three(c[0], 1, each, facts[0], facts) ||
        !give_three(c[1], 1, each, forged, facts))
        return false;
    (void)caller_plan(c[1], "these words are to be written there");
    attack_await_end(a, c[1], CALLER_PATIENCE_MS);
    return true;
}

/* loop ----------------------------------------------------------------------------- */

bool attack_loop(struct attack *a)
{
    const struct trib_control join = caller_join(&a->c, a->name, 1, "loop");

    if (attack_join(a, &join))
        snprintf(a->harm, sizeof(a->harm), "the job is admitted with transport=loop");
    return true;
}

/* log ------------------------------------------------------------------------------ */

/* Fill both texts of a rank with line ends, forged log lines and colour codes. */
static void forge_lines(uint8_t *hello, uint32_t each)
{
    static const char host[] =
        "n1\n<0>kernel: Out of memory\ntributary: info: job a is kicked\x1b[31m";
    static const char library[12] = "9.9\n<1>su:";
    char name[TRIB_HOST_BYTES] = "";

    if (!trib_host_name(name))
        return;
    for (uint32_t at = 0; at + sizeof(host) <= each; at++) {
        if (memcmp(hello + at, name, strlen(name) + 1) == 0)
            memcpy(hello + at, host,
                   TRIB_HOST_BYTES < sizeof(host) ? TRIB_HOST_BYTES : sizeof(host));
        if (memcmp(hello + at, trib_version(), strlen(trib_version()) + 1) == 0)
            memcpy(hello + at, library, sizeof(library));
    }
}

bool attack_log(struct attack *a)
{
    const struct trib_control join = caller_join(&a->c, a->name, 2, "tcp");
    uint8_t all[3 * BLOB];

    if (!attack_join(a, &join) || !caller_hear(&a->c, TRIB_CONTROL_BLOBS))
        return false;
    const uint32_t each = a->c.m.blobs.each;
    for (int i = 0; i < 3 && each <= BLOB; i++)
        memcpy(all + (size_t)i * each, a->c.m.blobs.data.at, each);
    forge_lines(all + each, each);
    if (each > BLOB || !attack_give(&a->c, 0, all, 3, each))
        return false;
    attack_await_end(a, &a->c, CALLER_PATIENCE_MS);
    for (const char *s = a->said; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            snprintf(a->harm, sizeof(a->harm), "the sentence has control characters");
    return true;
}

/* ranks ---------------------------------------------------------------------------- */

/* Return the size of /metrics of the tribd at TRIBD_HTTP in bytes; -1: no answer. */
static long metrics_bytes(void)
{
    static const char ask[] = "GET /metrics HTTP/1.0\r\n\r\n";
    const char *http = trib_config_environment("TRIBD_HTTP");
    struct trib_tcp_root at;
    char why[160], room[4096];
    long n = 0;

    if (!http || !trib_tcp_root_parse(http, &at))
        return -1;
    const int fd = trib_sockets_connect(&at, trib_deadline_ms(CALLER_PATIENCE_MS), NULL,
                                        why, sizeof(why));
    if (fd < 0)
        return -1;
    /* The socket does not block, because connect has a deadline. */
    const uint64_t until = trib_deadline_ms(CALLER_PATIENCE_MS);
    (void)!send(fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL);
    for (ssize_t got; (got = recv(fd, room, sizeof(room), MSG_DONTWAIT)) != 0;) {
        if (got > 0)
            n += got;
        else if (trib_deadline_passed(until))
            break;
        else
            usleep(1000);
    }
    close(fd);
    return n;
}

bool attack_ranks(struct attack *a)
{
    struct trib_control join = caller_join(&a->c, a->name, 2, "tcp");
    uint16_t tree[13];
    int n = 0;

    join.join.ranks = RANKS;
    join.join.aggregators = 2;
    join.join.tree = (struct trib_control_bytes){(const uint8_t *)tree, 0};
    join.join.tree.n = put_tree(0, 1, tree); /* 65536 modulo 2^16 */
    while (n < JOBS_MOST && attack_join(a, &join))
        n++;
    const long bytes = metrics_bytes();
    printf("%s: %d jobs of %d ranks were admitted; /metrics has %ld bytes\n", a->name,
           n, RANKS, bytes);
    if (bytes > PAGE_MOST)
        snprintf(a->harm, sizeof(a->harm), "/metrics has %ld bytes, more than %d",
                 bytes, PAGE_MOST);
    return true;
}
