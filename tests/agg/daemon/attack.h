/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by attack.c, attack_rank.c, attack_words.c, attack_flood.c and
 * attack_beside.c. */
#ifndef TESTS_AGG_DAEMON_ATTACK_H
#define TESTS_AGG_DAEMON_ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"
#include "tests/agg/daemon/caller.h"

struct attack {
    const char *name;
    bool (*run)(struct attack *a); /* false: it could not begin, and `said` tells why */
    const char *sentence; /* what the attacker must be told, in part; NULL: it is told
                           * nothing */
    const char *log;      /* what tribd's log must say of it, in part */
    struct caller c;
    char said[600]; /* what tribd has told the attacker */
    char harm[200]; /* empty, or what the attack has done that it must not do */
};

/** attack_join - come, prove, send the JOIN and be admitted; else the answer is in
 * a->said. */
bool attack_join(struct attack *a, const struct trib_control *join);

/** attack_await_end - wait until tribd ends a connection; a->said has its last
 * words. */
void attack_await_end(struct attack *a, struct caller *c, int ms);

/** attack_find - where a number of 32 bits lies in a blob first; `bytes` where it does
 * not. */
size_t attack_find(const uint8_t *blob, size_t bytes, uint32_t magic);

/** attack_secret - make a secret for the job's ranks and nodes, and put it into the
 * JOIN. */
bool attack_secret(struct trib_control *join, struct trib_secret *out);

/** attack_give - all blobs of an exchange, in as many messages as they need. */
bool attack_give(struct caller *c, uint32_t exchange, const uint8_t *all,
                 uint32_t total, uint32_t each);

/* attack_rank.c: a rank of tribd's host that shares memory with tribd. */
bool attack_cma(struct attack *a);
bool attack_pid(struct attack *a);
bool attack_short(struct attack *a);
bool attack_unsealed(struct attack *a);

/* attack_words.c: words on the control connection alone. */
bool attack_foreign(struct attack *a);
bool attack_loop(struct attack *a);
bool attack_log(struct attack *a);
bool attack_ranks(struct attack *a);

/* attack_flood.c: peers that authenticate and peers that do not, and send nothing. */
bool attack_stall(struct attack *a);
bool attack_mute(struct attack *a);
bool attack_emfile(struct attack *a);

/** attack_beside - a rank of the job that takes steps beside the attacks; an exit
 * code. */
int attack_beside(const char *file, int pause_ms);

/** attack_longest - print what the job beside has measured since the last call; an exit
 * code. */
int attack_longest(const char *file);

#endif
