/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attackers of a tribd, with or without its key, one at a time. Each attack is valid
 * except for one detail, so that the check under test must refuse it.
 *
 *     attack NAME             run once; TRIB_SERVICE names the tribd
 *         cma         a rank claims to be a process of root, through a socket on which
 *                     that process listens, and names its memory as an arena
 *         pid         a rank sends the pid of another process
 *         foreign     rank 0 sends to one node of the job the address of another
 *                     node in the same tribd process, with any address there as
 *                     the arena
 *         short       a rank's arena is shorter than the range tribd addresses
 *         unsealed    a rank's arena can be truncated at any time
 *         loop        a job requests the transport of tests
 *         ranks       jobs of 65536 ranks that do not exist
 *         stall       400 peers accept connections and send nothing; then rank 0
 *                     disconnects
 *         mute        the same, and the peers owe proofs of the job's secret
 *         log         a rank's host and version contain forged log lines
 *         emfile      more unauthenticated connections than tribd has descriptors
 *     attack names            print the names, one a line
 *     attack beside FILE MS   run a rank of a job that takes a step every MS ms: see
 *                             attack_beside.c
 *     attack longest FILE     print what that job measured since the last such call
 *
 * It prints the error message of the refusal after "refused:", and after "log:" words
 * that the log of tribd must contain. Exit code 1: the attack was not refused, was
 * refused by another check, or did harm.
 */
#include "tests/agg/daemon/attack.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"

bool attack_join(struct attack *a, const struct trib_control *join)
{
    struct caller *c = &a->c;

    if (caller_come(c, join->join.job, true) && caller_say(c, join) &&
        caller_hear(c, TRIB_CONTROL_ADMITTED))
        return true;
    if (c->session &&
        (c->m.kind == TRIB_CONTROL_REFUSED || c->m.kind == TRIB_CONTROL_QUEUED))
        snprintf(a->said, sizeof(a->said), "%s",
                 c->m.kind == TRIB_CONTROL_QUEUED ? c->m.queued.text : c->m.said.text);
    else
        snprintf(a->said, sizeof(a->said), "%s", trib_error_text(&c->err));
    return false;
}

void attack_await_end(struct attack *a, struct caller *c, int ms)
{
    const uint64_t until = trib_deadline_ms(ms);
    trib_status_t st;

    while ((st = trib_session_take_wait(c->session, until, &c->m)) == TRIB_OK)
        if (c->m.kind == TRIB_CONTROL_REFUSED || c->m.kind == TRIB_CONTROL_GOODBYE)
            break;
    if (st == TRIB_OK)
        snprintf(a->said, sizeof(a->said), "%s", c->m.said.text);
    else if (st != TRIB_INPROGRESS)
        snprintf(a->said, sizeof(a->said), "%s", trib_error_text(&c->err));
}

size_t attack_find(const uint8_t *blob, size_t bytes, uint32_t magic)
{
    for (size_t at = 0; at + sizeof(magic) <= bytes; at++)
        if (memcmp(blob + at, &magic, sizeof(magic)) == 0)
            return at;
    return bytes;
}

bool attack_secret(struct trib_control *join, struct trib_secret *secret)
{
    char digits[TRIB_SECRET_TEXT], why[160], rest[sizeof(join->join.settings)];
    struct trib_error err = {0};

    if (trib_secret_make(secret, &err) != TRIB_OK ||
        !trib_secret_arm(secret, why, sizeof(why)))
        return false;
    trib_secret_format(secret, digits);
    memcpy(rest, join->join.settings, sizeof(rest));
    return snprintf(join->join.settings, sizeof(join->join.settings), "key=%s %s",
                    digits, rest) < (int)sizeof(join->join.settings);
}

bool attack_give(struct caller *c, uint32_t exchange, const uint8_t *all,
                 uint32_t total, uint32_t each)
{
    const uint32_t most = TRIB_CONTROL_BLOBS_BYTES / each;
    struct trib_control m = {
        .kind = TRIB_CONTROL_BLOBS,
        .blobs = {.exchange = exchange, .total = total, .each = each}};

    for (uint32_t first = 0; first < total; first += m.blobs.count) {
        m.blobs.first = first;
        m.blobs.count = total - first < most ? total - first : most;
        m.blobs.data = (struct trib_control_bytes){all + (size_t)first * each,
                                                   m.blobs.count * each};
        if (!caller_say(c, &m))
            return false;
    }
    return true;
}

/* The messages belong to the checks under test: another refusal means that an attack no
 * longer gets as far. */
static struct attack attacks[] = {
    {.name = "cma",
     .run = attack_cma,
     .sentence = "exports memory outside a shared segment",
     .log = "warning: tribd: job cma: "},
    {.name = "pid",
     .run = attack_pid,
     .sentence = "does not own the socket in its address",
     .log = "warning: tribd: job pid: "},
    {.name = "foreign",
     .run = attack_foreign,
     .sentence = "claims to be this process",
     .log = "warning: tribd: job foreign: "},
    {.name = "short",
     .run = attack_short,
     .sentence = "64 bytes of memory, but this rank must address",
     .log = "warning: tribd: job short: "},
    {.name = "unsealed",
     .run = attack_unsealed,
     .sentence = "its size is not sealed",
     .log = "warning: tribd: job unsealed: "},
    {.name = "loop",
     .run = attack_loop,
     .sentence = "transport loop is not allowed for jobs",
     .log = "job loop refused: transport loop is not allowed"},
    {.name = "ranks",
     .run = attack_ranks,
     .sentence = "needs",
     .log = "job ranks refused: "},
    {.name = "stall", .run = attack_stall, .log = "job stall has ended"},
    {.name = "mute", .run = attack_mute, .log = "job mute has ended"},
    {.name = "log",
     .run = attack_log,
     .sentence = "install the same version",
     .log = "warning: tribd: job log: "},
    {.name = "emfile",
     .run = attack_emfile,
     .sentence = "was closed to admit another",
     .log = "had not authenticated"},
};
enum { ATTACKS = sizeof(attacks) / sizeof(*attacks) };

/* An attacker frees nothing: the kernel closes its descriptors. */
static void run(struct attack *a)
{
    if (!caller_prepare(&a->c))
        exit(1);
    const bool ran = a->run(a);
    const bool refused = !a->sentence || strstr(a->said, a->sentence);

    printf("%s: refused: %s\n", a->name, a->said[0] ? a->said : "-");
    printf("%s: log: %s\n", a->name, a->log);
    if (!ran)
        printf("%s: it could not begin\n", a->name);
    else if (!refused)
        printf("%s: the words \"%s\" were expected\n", a->name, a->sentence);
    if (a->harm[0])
        printf("%s: harm: %s\n", a->name, a->harm);
    fflush(stdout);
    _exit(!ran || !refused || a->harm[0]);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 4 && strcmp(name, "beside") == 0)
        return attack_beside(argv[2], atoi(argv[3]));
    if (argc == 3 && strcmp(name, "longest") == 0)
        return attack_longest(argv[2]);
    for (size_t i = 0; i < ATTACKS && argc == 2; i++) {
        if (strcmp(name, "names") == 0)
            puts(attacks[i].name);
        if (strcmp(name, attacks[i].name) == 0)
            run(&attacks[i]);
    }
    if (argc == 2 && strcmp(name, "names") == 0)
        return 0;
    fprintf(stderr, "usage: attack NAME | names | beside FILE MS | longest FILE\n");
    return 1;
}
