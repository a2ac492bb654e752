/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments: another process maps the same bytes, nobody maps another one's by mistake,
 * and the size cannot change.
 */
#include "tests/harness/tribtest.h"

#include <sys/mman.h>

#include "base/error.h"
#include "base/process.h"
#include "transport/common/segment.h"

static struct trib_error err;
static struct trib_process me;
static struct trib_segment seg;
static struct trib_segment_id id;

static int setup(void **state)
{
    (void)state;
    assert_status(trib_segment_owner(&me, &err), TRIB_OK);
    assert_status(trib_segment_create(5000, &seg, &err), TRIB_OK);
    id = trib_segment_id(&seg);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    trib_segment_release(&seg, false);
    trib_segment_release(&seg, false); /* does nothing the second time */
    return 0;
}

TEST(test_create, setup, teardown)
{
    assert_true(seg.len >= 5000 && seg.len % 4096 == 0 && seg.map_len > seg.len);
    assert_int_equal((uintptr_t)seg.base % 4096, 0);
    for (size_t i = 0; i < seg.len; i++)
        assert_int_equal(seg.base[i], 0);
    assert_int_not_equal(ftruncate(seg.fd, 4096), 0);
    assert_int_not_equal(ftruncate(seg.fd, 1 << 20), 0);
    struct trib_segment none;
    assert_status(trib_segment_create(SIZE_MAX, &none, &err), TRIB_ERR_OVERFLOW);
}

/* Threads of the owner's process share the owner's own mapping. */
TEST(test_same_process, setup, teardown)
{
    struct trib_segment other;

    assert_status(trib_segment_attach(&id, &me, &me, &other, &err), TRIB_OK);
    assert_ptr_equal(other.base, seg.base);
    assert_int_equal(other.fd, -1);
    assert_false(trib_segment_abandoned(&other));
    trib_segment_release(&other, false);
}

TEST(test_other_process, setup, teardown)
{
    int status;

    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct trib_segment mine;
        struct trib_process self;
        trib_process_self(&self);
        if (trib_segment_attach(&id, &me, &self, &mine, &err) != TRIB_OK)
            _exit(1);
        mine.base[4711] = 42;
        trib_segment_release(&mine, false);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(seg.base[4711], 42);
}

TEST(test_wrong_segment, setup, teardown)
{
    struct trib_segment_id wrong[3] = {id, id, id};
    struct trib_segment none;

    wrong[0].key++;
    wrong[1].map_len += 4096;
    wrong[2].fd = 0;
    for (int i = 0; i < 2; i++) /* in this process the key alone counts */
        assert_status(trib_segment_attach(&wrong[i], &me, &me, &none, &err),
                      TRIB_ERR_INVALID);
    for (int i = 1; i < 3; i++)
        assert_status(trib_segment_adopt(&wrong[i], i == 1 ? seg.fd : 0, me.pid, &none,
                                         &err),
                      TRIB_ERR_INVALID);
}

/* A memfd that its maker could still shorten is not adopted. */
TEST(test_adopt, setup, teardown)
{
    struct trib_segment given;

    assert_status(trib_segment_adopt(&id, seg.fd, me.pid, &given, &err), TRIB_OK);
    assert_ptr_not_equal(given.base, seg.base);
    seg.base[1] = 7;
    assert_int_equal(given.base[1], 7);
    trib_segment_release(&given, false);
    int loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(loose >= 0);
    assert_int_equal(ftruncate(loose, (off_t)id.map_len), 0);
    assert_status(trib_segment_adopt(&id, loose, me.pid, &given, &err),
                  TRIB_ERR_INVALID);
    close(loose);
}
