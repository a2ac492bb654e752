/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The description of a group as bytes, for ranks that have no such group yet.
 */
#ifndef TENSORS_GROUP_DESCRIBE_H
#define TENSORS_GROUP_DESCRIBE_H

#include "tensors/tensor_group.h"

/** trib_group_describe - tensors and options as bytes, without buffers and function;
 * free() them. NULL: no memory. */
char *trib_group_describe(const struct trib_group *g, size_t *bytes_out);

/**
 * trib_group_described - the tensors and options that such bytes describe.
 *
 * bytes    the texts of both lie in them
 * returns  [*n_out] tensors, to be freed; NULL: no memory, or the bytes are damaged
 */
trib_tensor_t *trib_group_described(const char *bytes, size_t n,
                                    trib_group_opts_t *opts, size_t *n_out);

#endif
