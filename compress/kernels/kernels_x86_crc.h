/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels_scalar_crc.h with the SSE4.2 instruction, which takes 8 bytes per cycle with
 * a latency of three. So three parts of a long input are processed in parallel. The
 * register of a part is then shifted by the length of the next part: this is linear, so
 * it is a look-up per nibble.
 */
#ifndef COMPRESS_KERNELS_KERNELS_X86_CRC_H
#define COMPRESS_KERNELS_KERNELS_X86_CRC_H

#include <nmmintrin.h>
#include <string.h>

#include "compress/kernels/kernels_scalar.h"

enum { CRC_PART = 1024 /* bytes */ };

/* [j][v]: the register for nibble v at bit 4 j, after CRC_PART zero bytes. */
static const uint32_t crc_behind[8][16] = {
    {0x00000000, 0xfe314258, 0xf98ef241, 0x07bfb019, 0xf6f19273, 0x08c0d02b,
     0x0f7f6032, 0xf14e226a, 0xe80f5217, 0x163e104f, 0x1181a056, 0xefb0e20e,
     0x1efec064, 0xe0cf823c, 0xe7703225, 0x1941707d},
    {0x00000000, 0xd5f2d2df, 0xae09d34f, 0x7bfb0190, 0x59ffd06f, 0x8c0d02b0,
     0xf7f60320, 0x2204d1ff, 0xb3ffa0de, 0x660d7201, 0x1df67391, 0xc804a14e,
     0xea0070b1, 0x3ff2a26e, 0x4409a3fe, 0x91fb7121},
    {0x00000000, 0x6213374d, 0xc4266e9a, 0xa63559d7, 0x8da0abc5, 0xefb39c88,
     0x4986c55f, 0x2b95f212, 0x1ead217b, 0x7cbe1636, 0xda8b4fe1, 0xb89878ac,
     0x930d8abe, 0xf11ebdf3, 0x572be424, 0x3538d369},
    {0x00000000, 0x3d5a42f6, 0x7ab485ec, 0x47eec71a, 0xf5690bd8, 0xc833492e,
     0x8fdd8e34, 0xb287ccc2, 0xef3e6141, 0xd26423b7, 0x958ae4ad, 0xa8d0a65b,
     0x1a576a99, 0x270d286f, 0x60e3ef75, 0x5db9ad83},
    {0x00000000, 0xdb90b473, 0xb2cd1e17, 0x695daa64, 0x60764adf, 0xbbe6feac,
     0xd2bb54c8, 0x092be0bb, 0xc0ec95be, 0x1b7c21cd, 0x72218ba9, 0xa9b13fda,
     0xa09adf61, 0x7b0a6b12, 0x1257c176, 0xc9c77505},
    {0x00000000, 0x84355d8d, 0x0d86cdeb, 0x89b39066, 0x1b0d9bd6, 0x9f38c65b,
     0x168b563d, 0x92be0bb0, 0x361b37ac, 0xb22e6a21, 0x3b9dfa47, 0xbfa8a7ca,
     0x2d16ac7a, 0xa923f1f7, 0x20906191, 0xa4a53c1c},
    {0x00000000, 0x6c366f58, 0xd86cdeb0, 0xb45ab1e8, 0xb535cb91, 0xd903a4c9,
     0x6d591521, 0x016f7a79, 0x6f87e1d3, 0x03b18e8b, 0xb7eb3f63, 0xdbdd503b,
     0xdab22a42, 0xb684451a, 0x02def4f2, 0x6ee89baa},
    {0x00000000, 0xdf0fc3a6, 0xbbf3f1bd, 0x64fc321b, 0x720b958b, 0xad04562d,
     0xc9f86436, 0x16f7a790, 0xe4172b16, 0x3b18e8b0, 0x5fe4daab, 0x80eb190d,
     0x961cbe9d, 0x49137d3b, 0x2def4f20, 0xf2e08c86},
};

static uint64_t crc_move(uint64_t r)
{
    uint32_t next = 0;

    for (int j = 0; j < 8; j++)
        next ^= crc_behind[j][r >> 4 * j & 15];
    return next;
}

KERNEL uint64_t crc_take8(uint64_t r, const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return _mm_crc32_u64(r, v);
}

static uint64_t crc_three(uint64_t a, const uint8_t *p)
{
    uint64_t b = 0, c = 0;

    for (size_t i = 0; i < CRC_PART; i += 8) {
        a = crc_take8(a, p + i);
        b = crc_take8(b, p + CRC_PART + i);
        c = crc_take8(c, p + 2 * CRC_PART + i);
    }
    return crc_move(crc_move(a) ^ b) ^ c;
}

static uint32_t crc32c(uint32_t crc, const void *src, size_t bytes)
{
    const uint8_t *p = src;
    uint64_t r = ~crc;

    for (; bytes >= 3 * CRC_PART; bytes -= 3 * CRC_PART, p += 3 * CRC_PART)
        r = crc_three(r, p);
    for (; bytes >= 8; bytes -= 8, p += 8)
        r = crc_take8(r, p);
    for (; bytes > 0; bytes--, p++)
        r = _mm_crc32_u8((uint32_t)r, *p);
    return ~(uint32_t)r;
}

#endif
