/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of this process's own memory: what it knows becomes a pointer, nothing
 * else.
 */
#include "tests/harness/tribtest.h"

#include <stdatomic.h>

#include "base/error.h"
#include "transport/common/own_memory.h"

TEST(test_found_by_key_and_length)
{
    uint8_t memory[2][64];
    uint64_t key[2];

    for (int i = 0; i < 2; i++) {
        assert_ok(trib_own_memory_key(&key[i], NULL));
        assert_null(trib_own_memory_find(key[i], sizeof(memory[i])));
        assert_ok(trib_own_memory_add(key[i], memory[i], sizeof(memory[i]), NULL));
    }
    assert_true(key[0] != key[1]);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(trib_own_memory_find(key[i], 64), memory[i]);
        assert_null(trib_own_memory_find(key[i], 63));
        assert_null(trib_own_memory_find(key[i], 65));
        assert_null(trib_own_memory_find(key[i], UINT64_MAX));
        assert_null(trib_own_memory_find((uintptr_t)memory[i], 64));
        assert_null(trib_own_memory_join(key[i], 65));
        assert_true(trib_own_memory_leave(key[i]));
        assert_null(trib_own_memory_find(key[i], 64));
        assert_false(trib_own_memory_leave(key[i]));
    }
}

/* The last user of all frees it, in whatever order they go. */
TEST(test_users_are_counted)
{
    uint8_t memory[8];
    uint64_t key;

    assert_ok(trib_own_memory_key(&key, NULL));
    assert_ok(trib_own_memory_add(key, memory, sizeof(memory), NULL));
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(trib_own_memory_join(key, sizeof(memory)), memory);
    for (int i = 0; i < 3; i++)
        assert_false(trib_own_memory_leave(key));
    assert_ptr_equal(trib_own_memory_find(key, sizeof(memory)), memory);
    assert_true(trib_own_memory_leave(key));
    assert_null(trib_own_memory_join(key, sizeof(memory)));
}

static _Atomic bool stop;

static void *add_and_leave(void *arg)
{
    uint8_t memory[8];
    uint64_t key;

    (void)arg;
    while (!atomic_load(&stop)) {
        assert_ok(trib_own_memory_key(&key, NULL));
        assert_ok(trib_own_memory_add(key, memory, sizeof(memory), NULL));
        assert_ptr_equal(trib_own_memory_find(key, sizeof(memory)), memory);
        assert_true(trib_own_memory_leave(key));
    }
    return NULL;
}

/* A child that is forked while another thread is in the table can use it all the
 * same. */
TEST(test_forked_children)
{
    pthread_t thread;
    uint64_t key;
    uint8_t memory[8];

    assert_ok(trib_own_memory_key(&key, NULL));
    assert_ok(trib_own_memory_add(key, memory, sizeof(memory), NULL));
    assert_int_equal(pthread_create(&thread, NULL, add_and_leave, NULL), 0);
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(trib_own_memory_join(key, sizeof(memory)) == memory &&
                          trib_own_memory_add(key + 1, memory, 1, NULL) == TRIB_OK
                      ? 0
                      : 1);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(trib_own_memory_leave(key));
}
