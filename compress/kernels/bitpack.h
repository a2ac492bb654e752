/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codes of 1 to 8 bits, one per byte in memory, packed without gaps: code i occupies
 * bits i*bits … i*bits+bits-1 of the stream, where bit 0 is the lowest of byte 0. Eight
 * codes make `bits` whole bytes, so they are moved together, in three steps that close
 * the gaps between neighbours, pairs and fours.
 */
#ifndef COMPRESS_KERNELS_BITPACK_H
#define COMPRESS_KERNELS_BITPACK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline size_t trib_bits_bytes(size_t n, int bits)
{
    return n / 8 * (size_t)bits + (n % 8 * (size_t)bits + 7) / 8;
}

static inline uint64_t trib_bits_close(uint64_t w, int bits)
{
    w = (w & 0x00ff00ff00ff00ffu) | (w & 0xff00ff00ff00ff00u) >> (8 - bits);
    w = (w & 0x0000ffff0000ffffu) | (w & 0xffff0000ffff0000u) >> (16 - 2 * bits);
    return (w & 0xffffffffu) | w >> 32 << (4 * bits);
}

static inline uint64_t trib_bits_open(uint64_t w, int bits)
{
    const uint64_t four = (1ull << (4 * bits)) - 1;
    const uint64_t two = ((1ull << (2 * bits)) - 1) * 0x0000000100000001u;
    const uint64_t one = ((1ull << bits) - 1) * 0x0001000100010001u;
    w = (w & four) | (w >> (4 * bits) & four) << 32;
    w = (w & two) | (w & two << (2 * bits)) << (16 - 2 * bits);
    return (w & one) | (w & one << bits) << (8 - bits);
}

/**
 * trib_bits_pack - pack n codes into trib_bits_bytes(n, bits) bytes.
 *
 * codes    room for n rounded up to 8; the padding is overwritten
 * first    groups of eight codes that are already done
 */
static inline void trib_bits_pack(uint8_t *dst, uint8_t *codes, size_t n, int bits,
                                  size_t first)
{
    const size_t total = trib_bits_bytes(n, bits);
    size_t at = first * (size_t)bits;
    uint64_t w;
    memset(codes + n, 0, (8 - n % 8) % 8);
    for (codes += 8 * first; at < total; at += (size_t)bits, codes += 8) {
        memcpy(&w, codes, 8);
        w = trib_bits_close(w, bits);
        if (at + 8 <= total)
            memcpy(dst + at, &w, 8);
        else
            memcpy(dst + at, &w, total - at < (size_t)bits ? total - at : (size_t)bits);
    }
}

/** trib_bits_unpack - unpack n codes from trib_bits_bytes(n, bits) bytes; arguments as
 * trib_bits_pack. */
static inline void trib_bits_unpack(uint8_t *codes, const uint8_t *src, size_t n,
                                    int bits, size_t first)
{
    const size_t total = trib_bits_bytes(n, bits);
    size_t at = first * (size_t)bits;
    uint64_t w;
    for (codes += 8 * first; at < total; at += (size_t)bits, codes += 8) {
        w = 0;
        if (at + 8 <= total)
            memcpy(&w, src + at, 8);
        else
            memcpy(&w, src + at, total - at < (size_t)bits ? total - at : (size_t)bits);
        w = trib_bits_open(w, bits);
        memcpy(codes, &w, 8);
    }
}

#endif
