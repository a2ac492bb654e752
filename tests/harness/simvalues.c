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
    return trib_coll_is_blocked(sim->shape.coll);
}

bool trib_sim_by_receiver(const struct trib_sim *sim)
{
    return sim->shape.coll == TRIB_ALLTOALL || trib_coll_is_prefix(sim->shape.coll);
}

/* Return the first element of block c. Uneven blocks have up to `count` elements; 1 in
 * 4 is empty. */
static size_t block_first(const struct trib_sim *sim, uint32_t c)
{
    size_t first = 0;

    if (!sim->uneven)
        return c * sim->count;
    for (uint32_t i = 0; i < c; i++) {
        const uint64_t bits = trib_sim_mix(sim->seed / 7 + i);
        first += bits % 4 ? (size_t)(bits >> 8) % (sim->count + 1) : 0;
    }
    return first;
}

size_t trib_sim_total(const struct trib_sim *sim)
{
    return trib_sim_by_rank(sim) ? block_first(sim, (uint32_t)sim->shape.size)
                                 : sim->count;
}

uint32_t trib_sim_block_of(const struct trib_sim *sim, size_t e)
{
    uint32_t c = sim->uneven ? 0 : (uint32_t)(e / sim->count);

    while (block_first(sim, c + 1) <= e)
        c++;
    return c;
}

static size_t border(const struct trib_sim *sim, uint32_t n_chunks, uint32_t round,
                     uint32_t c, uint32_t next)
{
    if (trib_sim_by_rank(sim)) {
        const size_t first = block_first(sim, c), n = block_first(sim, c + 1) - first;
        return first + n * (round + next) / sim->rounds;
    }
    return sim->count * ((size_t)round * n_chunks + c + next) /
           ((size_t)sim->rounds * n_chunks);
}

size_t trib_sim_chunk_first(const struct trib_sim *sim, uint32_t n_chunks,
                            uint32_t round, uint32_t c)
{
    return border(sim, n_chunks, round, c, 0);
}

size_t trib_sim_chunk_end(const struct trib_sim *sim, uint32_t n_chunks, uint32_t round,
                          uint32_t c)
{
    return border(sim, n_chunks, round, c, 1);
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

uint64_t trib_sim_expect(const struct trib_sim *sim, uint32_t rank, size_t e)
{
    const uint32_t size = (uint32_t)sim->shape.size, root = (uint32_t)sim->shape.root;
    uint32_t end = size; /* number of ranks summed */
    uint64_t x;

    switch (sim->shape.coll) {
    case TRIB_ALLGATHER:
    case TRIB_GATHER:
        return trib_sim_contribution(sim, trib_sim_block_of(sim, e), e);
    case TRIB_BROADCAST:
    case TRIB_SCATTER:
        return trib_sim_contribution(sim, root, e);
    case TRIB_ALLTOALL:
        return trib_sim_contribution(
            sim, (rank + size - trib_sim_block_of(sim, e)) % size, e);
    case TRIB_SCAN:
        end = rank + 1;
        break;
    case TRIB_EXSCAN:
        end = rank;
        break;
    default:
        break;
    }
    x = trib_sim_contribution(sim, 0, e);
    for (uint32_t q = 1; q < end; q++)
        x = trib_sim_combine(sim, x, trib_sim_contribution(sim, q, e));
    return sim->shape.op == TRIB_MEAN && sim->shape.size + sim->shape.aggregators > 1
               ? trib_sim_scaled(sim, x)
               : x;
}
