/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that describe different groups get an error that names the difference, and may
 * try again.
 */
#include "tests/harness/tribtest.h"

#include "tests/comm/tensors/net.h"

/* After each refusal the communicator is unchanged. */
static int differs(struct ranks_self *self)
{
    const bool other = self->rank == 1;
    trib_group_t *group;
    static struct net net;

#define WITH(change, n, ...) \
    do { \
        describe(&net); \
        if (other) \
            change; \
        const trib_status_t st = \
            trib_group_create(self->comm, net.of, n, &net.opts, &group); \
        said(self, st, TRIB_ERR_INVALID, WORDS(__VA_ARGS__)); \
        ranks_ok(self, trib_barrier(self->comm)); \
    } while (0)
    WITH((void)0, (size_t)(other ? N : N - 1), "different numbers", "10 to 11");
    WITH(net.of[7].count = 9, N, "tensor 7 differs", "\"t7\"");
    WITH(net.of[3].priority = 9, N, "tensor 3 differs", "\"t3\"");
    WITH(net.of[3].name = "else", N, "tensor 3 differs");
    WITH(net.of[3].codec = "bf16", N, "tensor 3 differs");
    WITH(net.opts.bucket_bytes = 99, N, "different options");
    WITH(net.opts.op = TRIB_MAX, N, "different options");
    describe(&net);
    if (other)
        net.of[4].dims = -1;
    const trib_status_t st =
        trib_group_create(self->comm, net.of, N, &net.opts, &group);
    if (other)
        said(self, st, TRIB_ERR_INVALID, WORDS("\"t4\"", "dims"));
    else
        said(self, st, TRIB_ERR_INVALID, WORDS("another rank"));
    ranks_ok(self, trib_barrier(self->comm));
#undef WITH
    return 0;
}

TEST_ON(test_differs, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = differs, .config = *state);
}
