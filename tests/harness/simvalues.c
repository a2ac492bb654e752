/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/simvalues.h"

#include <string.h>

uint64_t trib_sim_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

bool trib_sim_by_rank(const struct trib_sim *sim)
{
    return sim->shape.coll == TRIB_ALLGATHER || sim->shape.coll == TRIB_REDUCE_SCATTER;
}

size_t trib_sim_chunk_first(const struct trib_sim *sim, uint32_t n_chunks,
                            uint32_t round, uint32_t c)
{
    if (trib_sim_by_rank(sim))
        return c * sim->count + sim->count * round / sim->rounds;
    return sim->count * ((size_t)round * n_chunks + c) /
           ((size_t)sim->rounds * n_chunks);
}

size_t trib_sim_chunk_end(const struct trib_sim *sim, uint32_t n_chunks, uint32_t round,
                          uint32_t c)
{
    if (trib_sim_by_rank(sim))
        return c * sim->count + sim->count * (round + 1) / sim->rounds;
    return sim->count * ((size_t)round * n_chunks + c + 1) /
           ((size_t)sim->rounds * n_chunks);
}

uint64_t trib_sim_chunk(const struct trib_sim *sim, uint32_t c)
{
    uint32_t n = sim->lists[0].n_chunks;
    uint64_t sum = 0;

    for (uint32_t t = 0; t < sim->rounds; t++)
        sum += trib_sim_chunk_end(sim, n, t, c) - trib_sim_chunk_first(sim, n, t, c);
    return sum;
}

double trib_sim_real(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint64_t as_bits(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

uint64_t trib_sim_contribution(const struct trib_sim *sim, uint32_t rank, size_t e)
{
    uint64_t x = trib_sim_mix(trib_sim_mix(sim->seed + rank + 1) + e);

    return sim->real ? as_bits((double)(x >> 11) * 0x1p-53) : x;
}

uint64_t trib_sim_combine(const struct trib_sim *sim, uint64_t a, uint64_t b)
{
    if (sim->real)
        return as_bits(trib_sim_real(a) + trib_sim_real(b));
    switch (sim->shape.op) {
    case TRIB_MIN:
        return a < b ? a : b;
    case TRIB_MAX:
        return a > b ? a : b;
    case TRIB_PROD:
        return (a | 1) * (b | 1); /* odd: a zero factor would hide the rest */
    default:
        return a + b;
    }
}

uint64_t trib_sim_scaled(const struct trib_sim *sim, uint64_t a)
{
    return sim->real ? as_bits(trib_sim_real(a) / sim->shape.size) : a * SIM_ODD;
}

uint64_t trib_sim_expect(const struct trib_sim *sim, size_t e)
{
    uint64_t x;

    if (sim->shape.coll == TRIB_ALLGATHER)
        return trib_sim_contribution(sim, (uint32_t)(e / sim->count), e);
    if (sim->shape.coll == TRIB_BROADCAST)
        return trib_sim_contribution(sim, (uint32_t)sim->shape.root, e);
    x = trib_sim_contribution(sim, 0, e);
    for (uint32_t q = 1; q < (uint32_t)sim->shape.size; q++)
        x = trib_sim_combine(sim, x, trib_sim_contribution(sim, q, e));
    return sim->shape.op == TRIB_MEAN && sim->shape.size + sim->shape.aggregators > 1
               ? trib_sim_scaled(sim, x)
               : x;
}
