/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a job that mixes two releases: it sums vectors of several lengths, or
 * reports an error. It is built with the headers of either release.
 */
#include <stdio.h>
#include <stdlib.h>

#include <tributary.h>

static int says(const char *text)
{
    printf("says: %s\n", text);
    return 3;
}

int main(void)
{
    static const size_t counts[] = {1, 40, 3000, 300001};
    trib_comm_t *comm;

    if (trib_init(NULL, &comm) != TRIB_OK)
        return says(trib_last_error(NULL));
    const int n = trib_size(comm);
    for (int k = 0; k < 4; k++) {
        float *x = malloc(counts[k] * sizeof(*x));
        for (size_t i = 0; i < counts[k]; i++)
            x[i] = (float)trib_rank(comm) + (float)(i % 8);
        if (trib_allreduce(comm, NULL, x, counts[k], TRIB_F32, TRIB_SUM) != TRIB_OK)
            return says(trib_last_error(comm));
        for (size_t i = 0; i < counts[k]; i++)
            if (x[i] != (float)(n * (n - 1) / 2) + (float)n * (float)(i % 8))
                return printf("a wrong sum\n"), 1;
        free(x);
    }
    if (trib_free_comm(comm) != TRIB_OK)
        return says("trib_free_comm");
    printf("sum, %s\n", trib_version());
    return 0;
}
