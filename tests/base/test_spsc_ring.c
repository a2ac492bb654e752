/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <sched.h>
#include <sys/mman.h>

#include "base/spsc_ring.h"
#include "base/time.h"

#define RECORDS 8
#define MESSAGES 20000

struct record {
    uint64_t number;
    uint64_t check; /* ~number: a torn or stale record does not match */
};

static void *map_ring(void)
{
    void *memory = mmap(NULL, trib_ring_bytes(RECORDS, sizeof(struct record)),
                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    trib_ring_format(memory);
    return memory;
}

static void unmap_ring(void *memory)
{
    munmap(memory, trib_ring_bytes(RECORDS, sizeof(struct record)));
}

static void attach(struct trib_ring *ring, void *memory)
{
    trib_ring_attach(ring, memory, RECORDS, sizeof(struct record));
}

static void test_full_and_empty(void **state)
{
    struct trib_ring in;
    struct trib_ring out;
    void *memory = map_ring();

    (void)state;
    attach(&in, memory);
    attach(&out, memory);
    for (uint64_t round = 0; round < 5; round++) {
        assert_null(trib_ring_peek(&out));
        for (uint64_t i = 0; i < RECORDS; i++) {
            struct record *r = trib_ring_reserve(&in);
            assert_non_null(r);
            r->number = round * 100 + i;
            trib_ring_commit(&in);
        }
        assert_null(trib_ring_reserve(&in));
        for (uint64_t i = 0; i < RECORDS; i++) {
            const struct record *r = trib_ring_peek(&out);
            assert_non_null(r);
            assert_int_equal(r->number, round * 100 + i);
            trib_ring_release(&out);
        }
    }
    unmap_ring(memory);
}

static void test_not_seen_before_commit(void **state)
{
    struct trib_ring in;
    struct trib_ring out;
    void *memory = map_ring();

    (void)state;
    attach(&in, memory);
    attach(&out, memory);
    assert_non_null(trib_ring_reserve(&in));
    assert_null(trib_ring_peek(&out));
    trib_ring_commit(&in);
    assert_non_null(trib_ring_peek(&out));
    unmap_ring(memory);
}

static void test_counters_wrap(void **state)
{
    struct trib_ring in;
    struct trib_ring out;
    void *memory = map_ring();
    struct trib_ring_shared *shared = memory;

    (void)state;
    attach(&in, memory);
    attach(&out, memory);
    in.mine = in.theirs = out.mine = out.theirs = UINT32_MAX - 3;
    atomic_store(&shared->tail, UINT32_MAX - 3);
    atomic_store(&shared->head, UINT32_MAX - 3);
    for (uint64_t i = 0; i < RECORDS; i++) {
        struct record *r = trib_ring_reserve(&in);
        assert_non_null(r);
        r->number = i;
        trib_ring_commit(&in);
    }
    assert_null(trib_ring_reserve(&in));
    for (uint64_t i = 0; i < RECORDS; i++) {
        assert_int_equal(((const struct record *)trib_ring_peek(&out))->number, i);
        trib_ring_release(&out);
    }
    assert_null(trib_ring_peek(&out));
    unmap_ring(memory);
}

static int produce(struct trib_ring *ring)
{
    uint64_t deadline = trib_deadline_ms(30000 * (int)tribtest_slowness());

    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct record *r;
        while (!(r = trib_ring_reserve(ring))) {
            if (trib_deadline_passed(deadline))
                return 1;
            sched_yield();
        }
        *r = (struct record){i, ~i};
        trib_ring_commit(ring);
    }
    return 0;
}

static int consume(struct trib_ring *ring)
{
    uint64_t deadline = trib_deadline_ms(30000 * (int)tribtest_slowness());

    for (uint64_t i = 0; i < MESSAGES; i++) {
        const struct record *r;
        while (!(r = trib_ring_peek(ring))) {
            if (trib_deadline_passed(deadline))
                return 1;
            sched_yield();
        }
        if (r->number != i || r->check != ~i)
            return 1;
        trib_ring_release(ring);
    }
    return trib_ring_peek(ring) != NULL;
}

static int one_side(int rank, int size, void *arg)
{
    struct trib_ring ring;

    (void)size;
    attach(&ring, arg);
    return rank ? consume(&ring) : produce(&ring);
}

static void test_between_threads(void **state)
{
    void *memory = map_ring();

    (void)state;
    assert_int_equal(tribtest_threads(2, one_side, memory), 0);
    unmap_ring(memory);
}

static void test_between_processes(void **state)
{
    void *memory = map_ring();

    (void)state;
    assert_int_equal(tribtest_forks(2, 60, one_side, memory), 0);
    unmap_ring(memory);
}

static void test_wild_counter_stays_inside(void **state)
{
    struct trib_ring out;
    void *memory = map_ring();
    struct trib_ring_shared *shared = memory;

    (void)state;
    attach(&out, memory);
    atomic_store(&shared->tail, 0x7fffffffu);
    for (int i = 0; i < 3 * RECORDS; i++) {
        const char *r = trib_ring_peek(&out);
        assert_in_range((size_t)(r - shared->records), 0,
                        (RECORDS - 1) * sizeof(struct record));
        trib_ring_release(&out);
    }
    unmap_ring(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_and_empty),
        cmocka_unit_test(test_not_seen_before_commit),
        cmocka_unit_test(test_counters_wrap),
        cmocka_unit_test(test_between_threads),
        cmocka_unit_test(test_between_processes),
        cmocka_unit_test(test_wild_counter_stays_inside),
    };

    tribtest_deadline(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
