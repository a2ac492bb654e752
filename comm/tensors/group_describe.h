/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serialized description of a group, for ranks that have no such group yet.
 */
#ifndef COMM_TENSORS_GROUP_DESCRIBE_H
#define COMM_TENSORS_GROUP_DESCRIBE_H

#include "comm/tensors/tensor_group.h"

/** trib_group_describe - serialize tensors and options, without buffers and callback.
 * The caller frees the result. NULL: out of memory. */
char *trib_group_describe(const struct trib_group *g, size_t *bytes_out);

/**
 * trib_group_described - parse a serialized description.
 *
 * bytes    outlives the result, whose strings point into it
 * returns  [*n_out] tensors that the caller frees; NULL: out of memory, or the bytes
 *          are damaged
 */
trib_tensor_t *trib_group_described(const char *bytes, size_t n,
                                    trib_group_opts_t *opts, size_t *n_out);

#endif
