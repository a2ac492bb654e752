/* SPDX-License-Identifier: BSD-3-Clause */
/* State is sent to the ranks whose state differs from the majority: to none, to some,
 * to all but one, to newcomers that outnumber the members. */
#include "build-config.h"
#include "tests/comm/growing.h"

#define SIZE 5

static void fill(char *x, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (char)(seed * 31 + i * 7 + i / 251);
}

/* Ranks whose bit is set have another state, each a different one. */
static void differ(struct ranks_self *self, unsigned others, size_t n, unsigned usual)
{
    char *x = malloc(n), *right = malloc(n);
    int synced = -1;

    ranks_assert(self, x && right);
    fill(right, n, usual);
    fill(x, n, others >> self->rank & 1 ? 100 + (unsigned)self->rank : usual);
    ranks_ok(self, trib_comm_sync(self->comm, x, n, &synced));
    ranks_assert(self, synced == __builtin_popcount(others));
    ranks_assert(self, memcmp(x, right, n) == 0);
    ranks_ok(self, trib_comm_sync(self->comm, x, n, NULL));
    free(x);
    free(right);
}

RANKS_TEST_ON(test_syncs, ("shm", "tcp"), .size = SIZE)
{
    static const size_t sizes[] = {1, 7, 1023, 300001};
    char byte = 0;

    for (size_t i = 0; i < 4; i++) {
        differ(self, 0, sizes[i], 1);
        differ(self, 1u << 0, sizes[i], 2);
        differ(self, 1u << 1 | 1u << 4, sizes[i], 3);
        /* Rank 0 is the reference if no two ranks have the same state. */
        differ(self, 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4, sizes[i], 4);
    }
    ranks_assert(self, trib_comm_sync(self->comm, NULL, 1, NULL) == TRIB_ERR_INVALID);
    ranks_assert(self, trib_comm_sync(self->comm, &byte, 0, NULL) == TRIB_ERR_INVALID);
    char few[SIZE] = "";
    ranks_assert(self, trib_comm_sync(self->comm, few, self->rank == 3 ? 2 : 1, NULL) ==
                           TRIB_ERR_PROTOCOL);
    return 0;
}

struct trial {
    char root[TRIB_ROOT_TEXT_MAX];
    struct growing_board *board;
};

/* One member and four newcomers, which all have zeros. */
static int outnumbers(struct ranks_self *self)
{
    const struct trial *t = self->arg;
    trib_listener_t *l = NULL;
    trib_comm_t *bigger = NULL;
    char x[1000] = "", right[1000];
    int synced;

    fill(right, sizeof(right), 9);
    if (self->rank == 0) {
        growing_init(self, t->root, 1);
        l = growing_listen(self, self->comm, t->board);
        while (trib_listener_waiting(l) < SIZE - 1)
            usleep(500);
        ranks_ok(self, trib_comm_grow(self->comm, l, SIZE, &bigger));
        ranks_ok(self, trib_free_comm(self->comm));
        self->comm = bigger;
        fill(x, sizeof(x), 9);
    } else {
        ranks_ok(self, growing_join(self, t->board));
    }
    ranks_assert(self, trib_size(self->comm) == SIZE);
    ranks_ok(self, trib_comm_sync(self->comm, x, sizeof(x), &synced));
    ranks_assert(self, synced == SIZE - 1 && memcmp(x, right, sizeof(x)) == 0);
    trib_listener_close(l);
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

TEST_ON(test_newcomers_have_no_vote, "shm", "tcp", IF_UCX("ucx"))
{
    struct trial t = {.board = growing_board()};
    trib_local_t *local;

    assert_non_null(t.board);
    assert_int_equal(trib_local_create(1, &local), TRIB_OK);
    snprintf(t.root, sizeof(t.root), "%s", trib_local_root(local));
    ranks_pass(.size = SIZE, .fn = outnumbers, .arg = &t, .config = *state,
               .bare = true);
    trib_local_destroy(local);
    munmap(t.board, sizeof(*t.board));
}
