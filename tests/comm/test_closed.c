/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that have closed their standard streams and still print: the output is lost,
 * and reaches neither shared memory nor a socket. No log line ends a rank.
 */
#include <fcntl.h>

#include "build-config.h"
#include "tests/harness/ranks.h"

enum { STEPS = 40, COUNT = 4096 };

/* Longer than any head or slot; a closed descriptor accepts none of it. */
static void print(const struct ranks_self *self)
{
    static const char noise[16384] = {'#'};

    for (int fd = 0; fd < 3; fd++)
        if (write(fd, noise, sizeof(noise)) >= 0)
            ranks_die(self, "descriptor %d takes what the rank prints", fd);
}

/* Check that the streams are closed, or occupied by a file that can be neither read nor
 * written. */
static void look(const struct ranks_self *self)
{
    for (int fd = 0; fd < 3; fd++) {
        int flags = fcntl(fd, F_GETFL);
        if (flags >= 0 && !(flags & O_PATH))
            ranks_die(self, "the library has made descriptor %d", fd);
    }
}

static int close_and_sum(struct ranks_self *self)
{
    static float in[COUNT], out[COUNT];

    for (int fd = 0; fd < 3; fd++)
        close(fd);
    self->opts.log = NULL; /* standard error, which is closed */
    ranks_ok(self, trib_init(&self->opts, &self->comm));
    look(self);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            in[i] = (float)(step + self->rank);
        ranks_ok(self, trib_allreduce(self->comm, in, out, COUNT, TRIB_F32, TRIB_SUM));
        for (int i = 0; i < COUNT; i++)
            ranks_assert(self, out[i] == (float)(2 * step + 1));
        print(self);
    }
    look(self);
    trib_comm_t *comm = self->comm;
    self->comm = NULL;
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

static void over(const char *config)
{
    ranks_pass(.size = 2, .fn = close_and_sum, .config = config, .bare = true,
               .noisy = true);
}

TEST(test_auto)
{
    over("log=debug");
}

TEST(test_shm)
{
    over("transport=shm;log=debug");
}

TEST(test_tcp)
{
    over("transport=tcp;log=debug");
}

#if HAVE_UCX
TEST(test_ucx)
{
    over("transport=ucx;log=debug");
}
#endif
