/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a communicator: plans are freed first, and all ranks disconnect together.
 */
#include <sys/mman.h>

#include "comm/core/communicator.h"
#include "tests/harness/ranks.h"

static int ends(struct ranks_self *self)
{
    trib_desc_t d = TRIB_DESC_INIT;
    trib_comm_t *comm;
    trib_plan_t *plans[2];

    ranks_ok(self, trib_init(&self->opts, &comm));
    d.count = 10;
    for (int i = 0; i < 2; i++)
        ranks_ok(self, trib_plan_allreduce(comm, &d, &plans[i]));
    ranks_assert(self, trib_free_comm(comm) == TRIB_ERR_BUSY);
    ranks_assert(self, strstr(trib_last_error(NULL), "2 plans are not freed"));
    ranks_ok(self, trib_plan_free(plans[0]));
    ranks_assert(self, trib_free_comm(comm) == TRIB_ERR_BUSY);
    ranks_assert(self, strstr(trib_last_error(NULL), "1 plan is not freed"));
    ranks_ok(self, trib_plan_free(plans[1]));
    if (self->rank == 0)
        usleep(50000); /* the others wait for it in the last barrier */
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

TEST(test_ends)
{
    static const char *const configs[] = {"transport=shm", "transport=tcp"};

    assert_status(trib_free_comm(NULL), TRIB_OK);
    for (int i = 0; i < 2; i++)
        for (int size = 1; size <= 3; size++)
            ranks_pass(.size = size, .fn = ends, .config = configs[i], .bare = true);
}

enum { COMMS = 3 };

static void sum(struct ranks_self *self, trib_comm_t *comm)
{
    int64_t x = 1;

    ranks_ok(self, trib_allreduce(comm, NULL, &x, 1, TRIB_I64, TRIB_SUM));
    ranks_assert(self, x == trib_size(comm));
}

/* Each rank frees its communicators in another order, and a sum between two of them
 * shows that none blocks. */
static int tries(struct ranks_self *self)
{
    trib_comm_t *comm, *parts[COMMS];
    int left = COMMS;

    ranks_ok(self, trib_init(&self->opts, &comm));
    for (int i = 0; i < COMMS; i++) {
        ranks_ok(self, trib_split(comm, 0, 0, &parts[i]));
        ranks_ok(self, trib_barrier(parts[i]));
    }
    for (int i = 0; i < COMMS; i++) {
        trib_comm_t **one = &parts[(i + self->rank) % COMMS];
        const trib_status_t st = trib_try_free_comm(*one);
        ranks_assert(self, st == TRIB_OK || st == TRIB_INPROGRESS);
        ranks_assert(self, st == TRIB_INPROGRESS || self->size == 1 || i > 0);
        if (st == TRIB_OK)
            *one = NULL;
        sum(self, comm);
    }
    while (left) {
        left = 0;
        for (int i = 0; i < COMMS; i++) {
            if (parts[i] && trib_try_free_comm(parts[i]) == TRIB_OK)
                parts[i] = NULL;
            left += parts[i] != NULL;
        }
    }
    ranks_ok(self, trib_free_comm(comm));
    return 0;
}

/* A request that was started earlier completes, and a plan is refused. One rank tries,
 * the others wait. */
static int tries_with_requests(struct ranks_self *self)
{
    int64_t x = 1, y = 0;
    trib_comm_t *comm;
    trib_request_t *request;
    trib_status_t st = TRIB_INPROGRESS;

    ranks_ok(self, trib_init(&self->opts, &comm));
    trib_plan_t *plan = ranks_plan_on(self, comm, TRIB_ALLREDUCE, .count = 10);
    ranks_assert(self, trib_try_free_comm(comm) == TRIB_ERR_BUSY);
    ranks_ok(self, trib_plan_free(plan));
    ranks_ok(self, trib_iallreduce(comm, &x, &y, 1, TRIB_I64, TRIB_SUM, &request));
    if (self->rank == 0)
        for (int i = 0; i < 100; i++)
            ranks_assert(self, trib_try_free_comm(comm) == TRIB_INPROGRESS);
    ranks_ok(self, trib_request_wait(request));
    ranks_assert(self, y == self->size);
    ranks_ok(self, trib_request_free(request));
    if (self->rank > 0)
        ranks_ok(self, trib_free_comm(comm));
    while (self->rank == 0 && st == TRIB_INPROGRESS)
        st = trib_try_free_comm(comm);
    ranks_assert(self, self->rank > 0 || st == TRIB_OK);
    return 0;
}

/* A barrier that fails while a request is not freed yet: the caller gets its error when
 * the communicator is freed. An odd rank calls trib_free_comm. */
static int tries_in_vain(struct ranks_self *self)
{
    _Atomic int *started = self->arg; /* ranks that have started the barrier */
    int64_t x = 1, y = 0;
    trib_comm_t *comm;
    trib_request_t *request;
    trib_status_t st = TRIB_INPROGRESS;

    ranks_ok(self, trib_init(&self->opts, &comm));
    ranks_ok(self, trib_iallreduce(comm, &x, &y, 1, TRIB_I64, TRIB_SUM, &request));
    ranks_ok(self, trib_request_wait(request));
    ranks_assert(self, y == self->size);
    if (self->rank == self->size - 1) {
        while (atomic_load(started) < self->size - 1)
            usleep(100);
        ranks_ok(self, trib_comm_abort(comm, "the loss is NaN"));
    } else {
        ranks_assert(self, trib_try_free_comm(comm) == TRIB_INPROGRESS);
        atomic_fetch_add(started, 1);
        while (!strstr(trib_last_error(comm), "the loss is NaN"))
            ranks_assert(self, trib_try_free_comm(comm) == TRIB_INPROGRESS);
        ranks_assert(self, trib_try_free_comm(comm) == TRIB_INPROGRESS);
    }
    ranks_ok(self, trib_request_free(request));
    if (self->rank == self->size - 1)
        ranks_ok(self, trib_free_comm(comm));
    else if (self->rank % 2)
        ranks_assert(self, trib_free_comm(comm) == TRIB_ERR_ABORTED);
    else {
        while (st == TRIB_INPROGRESS)
            st = trib_try_free_comm(comm);
        ranks_assert(self, st == TRIB_ERR_ABORTED);
    }
    return 0;
}

TEST(test_tries)
{
    static const char *const configs[] = {"transport=shm", "transport=tcp",
                                          "transport=shm;progress=caller"};

    assert_status(trib_try_free_comm(NULL), TRIB_OK);
    for (int i = 0; i < 3; i++)
        for (int size = 1; size <= 4; size++) {
            ranks_pass(.size = size, .fn = tries, .config = configs[i], .bare = true);
            ranks_pass(.size = size, .fn = tries_with_requests, .config = configs[i],
                       .bare = true);
        }
}

TEST(test_tries_in_vain)
{
    static const char *const configs[] = {"transport=shm",
                                          "transport=shm;progress=caller"};
    _Atomic int *started = mmap(NULL, sizeof(*started), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(started, MAP_FAILED);
    for (int i = 0; i < 2; i++) {
        atomic_store(started, 0);
        ranks_pass(.size = 3, .fn = tries_in_vain, .config = configs[i], .bare = true,
                   .arg = (void *)started);
    }
    munmap((void *)started, sizeof(*started));
}
