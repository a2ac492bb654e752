/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol of a handout's socket, shared by handout.c and handout_ask.c. */
#ifndef TRANSPORT_COMMON_HANDOUT_WIRE_H
#define TRANSPORT_COMMON_HANDOUT_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* An asker's only message: the descriptors of which key it wants. */
struct trib_handout_request {
    uint64_t magic;
    uint64_t key;
};

#define TRIB_HANDOUT_MAGIC UINT64_C(0x5472696248616e64)

/* The answer: one such byte, and with HERE the descriptors, the memory's first. */
enum trib_handout_answer { TRIB_HANDOUT_HERE = 1, TRIB_HANDOUT_NONE = 2 };

enum {
    TRIB_HANDOUT_FDS = 2,
    /* The owner waits so long for an asker to say what it wants, and then hangs up. An
     * asker says it at once, unless it stands still meanwhile. */
    TRIB_HANDOUT_REQUEST_MS = 1000,
};

/** trib_handout_socket - a new one, non-blocking; -1 and errno. */
int trib_handout_socket(void);

/** trib_handout_peer - true, and who is at the other end of a connection, by the
 * kernel's word in this process's own name spaces. */
bool trib_handout_peer(int fd, struct ucred *out);

#endif
