/* SPDX-License-Identifier: BSD-3-Clause */
/* Protocol of a handout socket, shared by handout.c and handout_ask.c. */
#ifndef TRANSPORT_COMMON_HANDOUT_WIRE_H
#define TRANSPORT_COMMON_HANDOUT_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A requester's only message: the key whose descriptors it requests. */
struct trib_handout_request {
    uint64_t magic;
    uint64_t key;
};

#define TRIB_HANDOUT_MAGIC UINT64_C(0x5472696248616e64)

/* The first byte of the answer. HERE comes with the descriptors, the memory's first.
 * FAILED: they cannot be sent; a second byte is the errno. */
enum trib_handout_answer {
    TRIB_HANDOUT_HERE = 1,
    TRIB_HANDOUT_NONE = 2,
    TRIB_HANDOUT_FAILED = 3,
};

enum {
    TRIB_HANDOUT_FDS = 2,
    /* How long the owner waits for the request before it closes. A requester sends
     * its request at once, unless it is stopped in between. */
    TRIB_HANDOUT_REQUEST_MS = 1000,
};

/** trib_handout_socket - return a new non-blocking socket; -1 and errno on failure. */
int trib_handout_socket(void);

/** trib_handout_peer - get the process at the other end of a connection, as the kernel
 * reports it in this process's namespaces; false on failure. */
bool trib_handout_peer(int fd, struct ucred *out);

#endif
