/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elements other than float32: has any rank overflowed (bool), which layers are active
 * (bit masks), how many samples were read (u64), and a mean of 8-bit gradients.
 *
 *     trib-run -n 3 -- elements
 */
#include <stdio.h>
#include <tributary.h>

int main(void)
{
    trib_comm_t *comm;

    if (trib_init(NULL, &comm) != TRIB_OK) {
        fprintf(stderr, "%s\n", trib_last_error(NULL));
        return 1;
    }
    const int rank = trib_rank(comm);
    unsigned char overflow = rank == 1; /* a TRIB_BOOL is one byte */
    uint32_t layers = 1u << rank;
    uint64_t samples = UINT64_C(1) << 62;
    unsigned char gradient = 0x38 + 8 * (unsigned char)rank; /* f8_e4m3: 1, 2, 4 … */
    trib_status_t st = trib_allreduce(comm, NULL, &overflow, 1, TRIB_BOOL, TRIB_LOR);

    if (st == TRIB_OK)
        st = trib_allreduce(comm, NULL, &layers, 1, TRIB_U32, TRIB_BOR);
    if (st == TRIB_OK)
        st = trib_allreduce(comm, NULL, &samples, 1, TRIB_U64, TRIB_SUM);
    if (st == TRIB_OK)
        st = trib_allreduce(comm, NULL, &gradient, 1, TRIB_F8_E4M3, TRIB_MEAN);
    if (st != TRIB_OK)
        fprintf(stderr, "%s\n", trib_last_error(comm));
    else if (rank == 0)
        printf("overflow %d, layers 0x%x, samples %llu, gradient 0x%02x\n", overflow,
               layers, (unsigned long long)samples, gradient);
    return trib_free_comm(comm) != TRIB_OK || st != TRIB_OK;
}
