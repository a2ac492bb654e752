/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Status codes. One table defines the enum, the texts and the scopes.
 *
 * 0 is success, a positive value means "not yet", a negative value is an error.
 * The scope is the largest object that the error makes unusable and that must therefore
 * be created again: op < endpoint < comm < context.
 */
#ifndef TRIBUTARY_STATUS_H
#define TRIBUTARY_STATUS_H

#include <tributary/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
#define TRIB_STATUS_MAP(X) \
    X(OK, 0, NONE, "success") \
    X(INPROGRESS, 1, NONE, "not finished yet") \
    X(ERR_INVALID, -1, OP, "invalid argument") \
    X(ERR_UNSUPPORTED, -2, OP, "not supported") \
    X(ERR_OVERLAP, -3, OP, "buffers overlap") \
    X(ERR_OVERFLOW, -4, OP, "size does not fit") \
    X(ERR_CODEC, -5, OP, "invalid codec text or encoded data") \
    X(ERR_BUSY, -6, OP, "the object is in use") \
    X(ERR_NO_RESOURCE, -20, ENDPOINT, "no free slot, try again") \
    X(ERR_RANGE, -21, ENDPOINT, "address outside its region") \
    X(ERR_PEER_LOST, -22, COMM, "a peer is lost") \
    X(ERR_TIMEOUT, -40, COMM, "no progress before the deadline") \
    X(ERR_MISMATCH, -41, COMM, "ranks disagree") \
    X(ERR_ABORTED, -42, COMM, "the communicator has failed") \
    X(ERR_PROTOCOL, -43, COMM, "invalid frame received") \
    X(ERR_BOOT, -60, CONTEXT, "ranks could not find each other") \
    X(ERR_CONFIG, -61, CONTEXT, "a setting cannot be applied") \
    X(ERR_NO_MEMORY, -62, CONTEXT, "out of memory") \
    X(ERR_SYSTEM, -63, CONTEXT, "a system call failed")
/* clang-format on */

typedef enum trib_status {
#define TRIB_STATUS_ENUM(name, value, scope, text) TRIB_##name = value,
    TRIB_STATUS_MAP(TRIB_STATUS_ENUM)
#undef TRIB_STATUS_ENUM
} trib_status_t;

typedef enum trib_scope {
    TRIB_SCOPE_NONE,
    TRIB_SCOPE_OP,
    TRIB_SCOPE_ENDPOINT,
    TRIB_SCOPE_COMM,
    TRIB_SCOPE_CONTEXT,
} trib_scope_t;

/**
 * trib_status_str - return a short description of a status.
 *
 * owner    a string literal; never NULL, even for unknown values
 * thread   any
 */
TRIB_API const char *trib_status_str(trib_status_t status);

/** trib_status_name - return the name of a status, such as "TRIB_ERR_TIMEOUT". */
TRIB_API const char *trib_status_name(trib_status_t status);

/** trib_status_scope - return the largest object that the status makes unusable. */
TRIB_API trib_scope_t trib_status_scope(trib_status_t status);

#ifdef __cplusplus
}
#endif

#endif
