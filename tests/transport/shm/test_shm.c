/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties of shm alone: the peers that it refuses, and the place of its memory.
 */
#include "tests/harness/spawn.h"
#include "tests/transport/pair.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "transport/common/guard.h"
#include "transport/shm/shm.h"

/* One changed field of an address, and the error message of connect(). */
static void refuses(void (*change)(struct trib_shm_address *), trib_status_t expected,
                    const char *sentence)
{
    struct pair pair;
    struct trib_address address;
    struct trib_shm_address a;
    struct trib_transport *t;

    pair_open(&pair, "shm", "shm");
    assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
    memcpy(&a, address.bytes, sizeof(a));
    change(&a);
    memcpy(address.bytes, &a, sizeof(a));
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    assert_status(trib_transport_open("shm", &opts, &t), TRIB_OK);
    trib_error_clear(&pair.err);
    assert_status(t->ops->connect(t, 1, &address), expected);
    if (!strstr(pair.err.text, sentence))
        fail_msg("\"%s\", not \"%s\"", pair.err.text, sentence);
    t->ops->close(t);
    pair_close(&pair);
}

static void other_host(struct trib_shm_address *a)
{
    a->boot++;
}

static void other_space(struct trib_shm_address *a)
{
    a->space++;
}

static void other_version(struct trib_shm_address *a)
{
    a->version++;
}

static void other_backend(struct trib_shm_address *a)
{
    a->magic++;
}

static void earlier_process(struct trib_shm_address *a)
{
    a->start -= 1000;
}

static void no_process(struct trib_shm_address *a)
{
    a->pid = 0x3fffff;
}

static void other_key(struct trib_shm_address *a)
{
    a->key++;
}

static void other_file(struct trib_shm_address *a)
{
    a->fd = 0;
}

static void other_len(struct trib_shm_address *a)
{
    a->map_len += 4096;
}

static void absurd_len(struct trib_shm_address *a)
{
    a->map_len = UINT64_MAX - 4095;
}

TEST(test_refuses)
{
    refuses(other_host, TRIB_ERR_UNSUPPORTED,
            "runs on another host: shm reaches one host");
    refuses(other_space, TRIB_ERR_UNSUPPORTED, "is in another pid namespace");
    refuses(other_version, TRIB_ERR_MISMATCH,
            "has version 5 of shm, this process version 4: install");
    refuses(other_backend, TRIB_ERR_INVALID, "peer 1: not an address of shm");
    refuses(earlier_process, TRIB_ERR_PEER_LOST, "has died");
    refuses(no_process, TRIB_ERR_PEER_LOST, "process 4194303 has died");
    refuses(other_key, TRIB_ERR_INVALID, "is no longer the exported segment");
    refuses(other_file, TRIB_ERR_INVALID, "is no longer the exported segment");
    refuses(other_len, TRIB_ERR_INVALID, "is no longer the exported segment");
    refuses(absurd_len, TRIB_ERR_INVALID, "invalid segment of");
}

TEST(test_other_size)
{
    struct pair pair;
    struct trib_address address;
    struct trib_transport *t;

    pair_open(&pair, "shm", "shm");
    assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    opts.size = 3;
    assert_status(trib_transport_open("shm", &opts, &t), TRIB_OK);
    assert_status(t->ops->connect(t, 1, &address), TRIB_ERR_MISMATCH);
    assert_non_null(strstr(pair.err.text, "do all ranks have 3 peers"));
    t->ops->close(t);
    pair_close(&pair);
}

/* From now on the kernel refuses process_vm_readv and process_vm_writev, as yama does.
 */
static bool forbid_cma(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* How the two ranks cannot reach each other's malloc memory. */
struct no_cma {
    const char *text;
    bool forbid;
    int lines; /* of the log */
};

/* Imports of it give a status, and one warning with the cure where it is a surprise. */
static void no_cma_rank(struct spawn *s)
{
    const struct no_cma *how = s->arg;
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, s->rank);
    struct trib_address address[2], own_address;
    struct trib_blob region[2], own;
    struct trib_transport *t;
    struct trib_region *r;
    struct trib_remote *remote;
    uint32_t caps;
    static uint8_t mem[100];

    if (!SPAWN_CHECK(s, !how->forbid || forbid_cma()) ||
        !SPAWN_CHECK(s, trib_transport_open(how->text, &opts, &t) == TRIB_OK))
        return;
    t->ops->address(t, &own_address);
    if (!spawn_allgather(s, &own_address, sizeof(own_address), address))
        return;
    SPAWN_CHECK(s, t->ops->caps(t, address, &caps) == TRIB_OK &&
                       caps == TRIB_CAP_MAPS && !t->ops->reads(t, !s->rank));
    SPAWN_CHECK(s, t->ops->connect(t, !s->rank, &address[!s->rank]) == TRIB_OK);
    SPAWN_CHECK(s, t->ops->reg(t, mem, sizeof(mem), &r) == TRIB_OK);
    t->ops->export_region(t, r, &own);
    if (!spawn_allgather(s, &own, sizeof(own), region))
        return;
    for (int i = 0; i < 3; i++)
        SPAWN_CHECK(s, t->ops->import_region(t, !s->rank, &region[!s->rank], &remote) ==
                           TRIB_ERR_UNSUPPORTED);
    SPAWN_CHECK(s, pair.lines == how->lines);
    SPAWN_CHECK(s, !how->lines || strstr(pair.logged, "kernel.yama.ptrace_scope=0"));
    spawn_barrier(s);
    t->ops->close(t);
}

TEST(test_no_cma)
{
    struct no_cma off = {"shm:cma=0", false, 0}, forbidden = {"shm", true, 1};
    struct spawn_opts opts = {
        .size = 2, .timeout_ms = 20000, .fn = no_cma_rank, .arg = &off};

    assert_int_equal(spawn_run(&opts, NULL), 0);
    opts.arg = &forbidden;
    assert_int_equal(spawn_run(&opts, NULL), 0);
}

/* Small regions share a segment and do not overlap; large ones begin at 2 MiB. */
TEST(test_memory)
{
    struct pair pair;
    struct trib_region *region[100];
    uint8_t *mem[100];
    void *p;

    pair_open(&pair, "shm", "shm");
    struct trib_transport *t = pair.t[0];
    for (int i = 0; i < 100; i++) {
        size_t len = 1 + (size_t)i * 3000;
        assert_status(t->ops->alloc(t, len, &p, &region[i]), TRIB_OK);
        mem[i] = p;
        for (size_t k = 0; k < len; k++)
            assert_int_equal(mem[i][k], 0);
        memset(p, i + 1, len);
    }
    for (int i = 0; i < 100; i++) {
        size_t len = 1 + (size_t)i * 3000;
        assert_int_equal(mem[i][0], i + 1);
        assert_int_equal(mem[i][len - 1], i + 1);
    }
    for (int i = 0; i < 100; i += 2) {
        t->ops->release_pages(t, region[i]);
        t->ops->dereg(t, region[i]);
    }
    assert_int_equal(mem[1][0], 2);
    /* The neighbouring pages are mapped, so the segment is; yet these pages were
     * returned. */
    unsigned char resident[2] = {1, 1};
    assert_int_equal(mincore(mem[2], 8192, resident), 0);
    assert_int_equal((resident[0] | resident[1]) & 1, 0);
    assert_status(t->ops->alloc(t, (size_t)5 << 20, &p, &region[0]), TRIB_OK);
    assert_int_equal((uintptr_t)p % ((uintptr_t)2 << 20), 0);
    assert_status(t->ops->alloc(t, 0, &p, &region[0]), TRIB_ERR_OVERFLOW);
    trib_error_clear(&pair.err);
    assert_status(t->ops->alloc(t, SIZE_MAX - 5, &p, &region[0]), TRIB_ERR_OVERFLOW);
    assert_non_null(
        strstr(pair.err.text, "cannot allocate 18446744073709551610 bytes"));
    pair_close(&pair);
}

/* Return whether a blob has an address of `len` bytes at or near ptr. */
static bool tells(const uint8_t *bytes, size_t n, const void *ptr)
{
    for (size_t i = 0; i + sizeof(uint64_t) <= n; i++) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof(word));
        if (word >> 24 == (uintptr_t)ptr >> 24)
            return true;
    }
    return false;
}

/* Addresses of memory are in no blob, but for memory in no segment of ranks that trust
 * each other. */
TEST(test_no_addresses)
{
    for (int guarded = 0; guarded < 2; guarded++) {
        struct trib_guard guard = {.ranks = 1};
        struct pair pair = {0};
        struct trib_transport_opts opts = pair_opts(&pair, 0);
        struct trib_address address;
        struct trib_blob blob;
        struct trib_region *region;
        struct trib_transport *t;
        uint8_t *mine = malloc(5000);
        void *ptr;

        opts.guard = guarded ? &guard : NULL;
        assert_status(trib_transport_open("shm", &opts, &t), TRIB_OK);
        assert_status(t->ops->address(t, &address), TRIB_OK);
        assert_false(tells(address.bytes, address.len, shm_of(t)->control.base));
        assert_false(tells(address.bytes, address.len, t));
        for (size_t len = 100; len < 100000000; len *= 100) {
            assert_status(t->ops->alloc(t, len, &ptr, &region), TRIB_OK);
            assert_status(t->ops->export_region(t, region, &blob), TRIB_OK);
            assert_false(tells(blob.bytes, blob.len, ptr));
        }
        const struct trib_segment *seg = &shm_of(t)->control;
        assert_false(tells(seg->base + seg->len, 4096, seg->base)); /* its trailer */
        assert_status(t->ops->reg(t, mine, 5000, &region), TRIB_OK);
        assert_status(t->ops->export_region(t, region, &blob), TRIB_OK);
        assert_int_equal(tells(blob.bytes, blob.len, mine), !guarded);
        t->ops->close(t);
        free(mine);
    }
}

/* A thread of this process names its memory: it is found in the process's table, never
 * by an address. */
TEST(test_own_memory)
{
    struct pair pair;
    struct trib_region *region;
    struct trib_remote *remote;
    struct trib_shm_export x;
    struct trib_blob blob, wrong;
    uint8_t mine[300] = {0};
    size_t len;

    pair_open(&pair, "shm", "shm");
    struct trib_transport *t = pair.t[0], *o = pair.t[1];
    assert_status(o->ops->reg(o, mine, sizeof(mine), &region), TRIB_OK);
    assert_status(o->ops->export_region(o, region, &blob), TRIB_OK);
    memcpy(&x, blob.bytes, sizeof(x));
    x.addr = UINT64_C(0x4141414141414000);
    memcpy(blob.bytes, &x, sizeof(x));
    assert_status(t->ops->import_region(t, 1, &blob, &remote), TRIB_OK);
    assert_ptr_equal(t->ops->map(t, remote, &len), mine);
    assert_int_equal(len, sizeof(mine));
    t->ops->release(t, remote);
    for (int i = 0; i < 4; i++) {
        struct trib_shm_export y = x;
        y.addr = (uintptr_t)mine;
        y.key += i == 0;
        y.len += i == 1;
        y.len -= i == 2;
        y.key = i == 3 ? shm_of(t)->control.key : y.key;
        wrong = blob;
        memcpy(wrong.bytes, &y, sizeof(y));
        trib_error_clear(&pair.err);
        assert_status(t->ops->import_region(t, 1, &wrong, &remote), TRIB_ERR_INVALID);
        assert_non_null(
            strstr(pair.err.text, "the memory in its export is not registered"));
    }
    o->ops->dereg(o, region);
    assert_status(t->ops->import_region(t, 1, &blob, &remote), TRIB_ERR_INVALID);
    pair_close(&pair);
}

/* Whatever a peer writes into a segment, where its owner has it mapped is not read
 * there, nor how many use it. */
TEST(test_forged_trailer)
{
    struct pair pair;
    struct trib_address address;
    struct trib_transport *t;

    pair_open(&pair, "shm", "shm");
    struct trib_segment *seg = &shm_of(pair.t[1])->control;
    memset(seg->base + seg->len + 16, 0x41, 4096 - 16);
    assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    assert_status(trib_transport_open("shm", &opts, &t), TRIB_OK);
    assert_status(t->ops->connect(t, 1, &address), TRIB_OK);
    assert_ptr_equal(shm_of(t)->peers[1].control.base, seg->base);
    t->ops->close(t);
    uint8_t *base = seg->base;
    pair_close(&pair);
    assert_int_equal(msync(base, 4096, MS_ASYNC), -1); /* unmapped */
    assert_int_equal(errno, ENOMEM);
}

struct flipper {
    struct trib_shm_header *header;
    _Atomic bool stop;
};

static void *flip(void *arg)
{
    struct flipper *f = arg;
    _Atomic uint32_t *slots = (_Atomic uint32_t *)(void *)&f->header->ring_slots;

    while (!atomic_load(&f->stop))
        atomic_store(slots, atomic_load(slots) == 256 ? 1u << 19 : 256);
    return NULL;
}

/* A header that changes while it is checked: the checked copy is used. */
TEST(test_header_that_changes)
{
    struct pair pair;
    struct trib_address address;
    pthread_t thread;
    int connected = 0;

    pair_open(&pair, "shm", "shm");
    struct flipper f = {.header = shm_of(pair.t[1])->header};
    assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
    assert_int_equal(pthread_create(&thread, NULL, flip, &f), 0);
    const uint64_t end = trib_deadline_ms(1500);
    while (!trib_deadline_passed(end)) {
        struct trib_transport_opts opts = pair_opts(&pair, 0);
        struct trib_transport *t;
        assert_status(trib_transport_open("shm", &opts, &t), TRIB_OK);
        const trib_status_t st = t->ops->connect(t, 1, &address);
        assert_true(st == TRIB_OK || st == TRIB_ERR_MISMATCH);
        if (st == TRIB_OK)
            assert_int_equal(shm_of(t)->peers[1].out_slots, 256);
        connected += st == TRIB_OK;
        t->ops->close(t);
    }
    assert_true(connected > 0);
    atomic_store(&f.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pair_close(&pair);
}

/* An aggregator accepts no peer that claims to be this process … */
TEST(test_guard_against_itself)
{
    struct pair pair;
    struct trib_address address;
    struct trib_guard guard = {.serves = true, .ranks = 2, .user = TRIB_GUARD_ANYBODY};
    struct trib_transport *t;

    pair_open(&pair, "shm", "shm");
    assert_status(pair.t[1]->ops->address(pair.t[1], &address), TRIB_OK);
    struct trib_transport_opts opts = pair_opts(&pair, 0);
    opts.guard = &guard;
    assert_status(trib_transport_open("shm", &opts, &t), TRIB_OK);
    assert_status(t->ops->reach(t, 1, &address), TRIB_ERR_UNSUPPORTED);
    assert_status(t->ops->connect(t, 1, &address), TRIB_ERR_UNSUPPORTED);
    assert_non_null(strstr(pair.err.text, "peer 1 claims to be this process"));
    t->ops->close(t);
    struct trib_error err = {0};
    opts.err = &err;
    assert_status(trib_transport_open("loop", &opts, &t), TRIB_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "unsafe for untrusted peers"));
    pair_close(&pair);
}
