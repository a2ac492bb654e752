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
    bool (*run)(struct attack *a); /* false: it could not begin, and `said` contains the
                                    * reason */
    const char *sentence; /* part of the message the attacker must receive; NULL: no
                           * message */
    const char *log;      /* text that the log of tribd must contain */
    struct caller c;
    char said[600]; /* what tribd has sent to the attacker */
    char harm[200]; /* empty, or harm that the attack has done */
};

/** attack_join - connect, authenticate, send the JOIN and be admitted; otherwise
 * a->said contains the answer. */
bool attack_join(struct attack *a, const struct trib_control *join);

/** attack_await_end - wait until tribd closes a connection; a->said contains its last
 * message. */
void attack_await_end(struct attack *a, struct caller *c, int ms);

/** attack_find - return the first offset of a 32-bit number in a blob; `bytes` if it is
 * absent. */
size_t attack_find(const uint8_t *blob, size_t bytes, uint32_t magic);

/** attack_secret - create a secret for the ranks and nodes of the job and put it into
 * the JOIN. */
bool attack_secret(struct trib_control *join, struct trib_secret *out);

/** attack_give - send all blobs of an exchange, in as many messages as they need. */
bool attack_give(struct caller *c, uint32_t exchange, const uint8_t *all,
                 uint32_t total, uint32_t each);

/* attack_rank.c: a rank on the host of tribd that shares memory with tribd. */
bool attack_cma(struct attack *a);
bool attack_pid(struct attack *a);
bool attack_short(struct attack *a);
bool attack_unsealed(struct attack *a);

/* attack_words.c: messages on the control connection only. */
bool attack_foreign(struct attack *a);
bool attack_loop(struct attack *a);
bool attack_log(struct attack *a);
bool attack_ranks(struct attack *a);

/* attack_flood.c: peers, authenticated or not, that send nothing. */
bool attack_stall(struct attack *a);
bool attack_mute(struct attack *a);
bool attack_emfile(struct attack *a);

/** attack_beside - run a rank of the job that takes steps during the attacks; return an
 * exit code. */
int attack_beside(const char *file, int pause_ms);

/** attack_longest - print what that job has measured since the last call; return an
 * exit code. */
int attack_longest(const char *file);

#endif
