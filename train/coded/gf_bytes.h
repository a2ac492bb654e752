/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as elements of GF(2^8): what is stored beside the partitions, so that one which
 * is lost comes back bit by bit. The multiplications of long vectors are ISA-L's, whose
 * field has the polynomial 0x11d.
 */
#ifndef TRAIN_CODED_GF_BYTES_H
#define TRAIN_CODED_GF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** trib_gf_bytes_add - to[i] ^= factor * from[i], n bytes. */
void trib_gf_bytes_add(uint8_t *to, uint8_t factor, const uint8_t *from, size_t n);

/** trib_gf_bytes_inverse - of a number that is not 0. */
uint8_t trib_gf_bytes_inverse(uint8_t a);

/**
 * trib_gf_bytes_combine - factors by which rows add up to the unit row of `wanted`.
 *
 * Rows that come first are used first.
 * rows     [n * columns]
 * factors_out [n]
 * returns  false: no combination gives it; there was no memory (then errno is ENOMEM)
 */
bool trib_gf_bytes_combine(const uint8_t *rows, int n, int columns, int wanted,
                           uint8_t *factors_out);

#endif
