/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as elements of GF(2^8): redundancy that restores lost partitions bit by bit.
 * ISA-L multiplies long vectors; its field has the polynomial 0x11d.
 */
#ifndef TRAIN_CODED_GF_BYTES_H
#define TRAIN_CODED_GF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** trib_gf_bytes_add - compute to[i] ^= factor * from[i] for n bytes. */
void trib_gf_bytes_add(uint8_t *to, uint8_t factor, const uint8_t *from, size_t n);

/** trib_gf_bytes_inverse - return the inverse of a non-zero element. */
uint8_t trib_gf_bytes_inverse(uint8_t a);

/**
 * trib_gf_bytes_combine - compute factors by which rows add up to the unit row of
 * `wanted`.
 *
 * Earlier rows are preferred.
 *
 * rows     [n * columns]
 * factors_out  [n]
 * returns  false: no combination exists, or no memory (errno is then ENOMEM)
 */
bool trib_gf_bytes_combine(const uint8_t *rows, int n, int columns, int wanted,
                           uint8_t *factors_out);

#endif
