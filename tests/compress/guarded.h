/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers of the kernel tests: buffers that end at an inaccessible page, and inputs
 * that cover all classes of IEEE 754 values.
 */
#ifndef TESTS_COMPRESS_GUARDED_H
#define TESTS_COMPRESS_GUARDED_H

#include "tests/harness/tribtest.h"

#include <math.h>
#include <sys/mman.h>

#include "compress/kernels/kernels.h"

enum {
    BUFFER_BYTES = 1 << 18,
    BUFFERS = TRIB_REDUCE_MAX_SRC + 2 * TRIB_REDUCE_MAX_DST
};

static const char *const isa_names[] = {"avx2", "avx512", "neon"};
enum { ISAS = 3 };

/* Define a case that runs with each instruction set of this CPU: CHECK(copy) { ... } */
#define CHECK(id) \
    static void check_##id(const struct trib_kernels *isa); \
    TEST(id) \
    { \
        for (int i = 0; i < ISAS; i++) \
            if (trib_kernels_get(isa_names[i])) \
                check_##id(trib_kernels_get(isa_names[i])); \
    } \
    static void check_##id(const struct trib_kernels *isa)

static const size_t dtype_bytes[TRIB_DTYPE_COUNT] = {4, 8, 2, 2, 1, 4, 8, 1,
                                                     2, 2, 4, 8, 1, 1, 1};

static uint64_t random_state = 88172645463325252u;

static inline uint32_t random_u32(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

static inline uint32_t random_below(uint32_t n)
{
    return random_u32() % n;
}

/* A buffer whose last byte is followed by a page without access. */
static inline unsigned char *guarded_new(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = (bytes + page - 1) / page * page;
    unsigned char *p = mmap(NULL, whole + page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + whole, page, PROT_NONE), 0);
    return p + whole - bytes;
}

static unsigned char *buffers[BUFFERS];

static inline int buffers_create(void **state)
{
    (void)state;
    for (int i = 0; i < BUFFERS; i++)
        buffers[i] = guarded_new(BUFFER_BYTES);
    return 0;
}

/* n bytes that end at the guard page, or up to 70 bytes before it */
static inline unsigned char *place(int buffer, size_t bytes, size_t before)
{
    return buffers[buffer] + BUFFER_BYTES - bytes - before;
}

static inline float special_f32(void)
{
    static const float values[] = {0.0f,     -0.0f,     INFINITY,   -INFINITY,
                                   NAN,      0x1p-149f, -0x1p-130f, 0x1.fffffep127f,
                                   65504.0f, 65519.9f,  65520.0f,   0x1p-14f,
                                   0x1p-24f, 0x1p-25f,  0x1.8p-25f, 1.0f};
    return values[random_below(sizeof values / sizeof *values)];
}

static inline float random_f32(void)
{
    float v;
    const uint32_t u = random_u32();
    switch (random_below(8)) {
    case 0:
        return special_f32();
    case 1: /* any bits */
        memcpy(&v, &u, sizeof v);
        return v;
    case 2:
        return ldexpf((float)(int32_t)u, (int)random_below(60) - 60);
    default:
        return (float)(int32_t)u * 0x1p-31f;
    }
}

static inline void fill(trib_dtype_t dtype, unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float v = random_f32();
        const double d = random_below(4) ? (double)v * (1.0 + 0x1p-30) : (double)v;
        const uint64_t u = (uint64_t)random_u32() << 32 | random_u32();
        if (dtype == TRIB_F32)
            memcpy(p + 4 * i, &v, 4);
        else if (dtype == TRIB_F64)
            memcpy(p + 8 * i, &d, 8);
        else if (dtype == TRIB_F16 || dtype == TRIB_BF16)
            trib_kernels_get("c")->from_f32[dtype](p + 2 * i, &v, 1);
        else
            memcpy(p + dtype_bytes[dtype] * i, &u, dtype_bytes[dtype]);
    }
}

static inline bool is_nan(trib_dtype_t dtype, const unsigned char *p)
{
    uint16_t h;
    double d;
    float f;
    switch (dtype) {
    case TRIB_F32:
        memcpy(&f, p, sizeof f);
        return isnan(f);
    case TRIB_F64:
        memcpy(&d, p, sizeof d);
        return isnan(d);
    case TRIB_F16:
        memcpy(&h, p, sizeof h);
        return (h & 0x7fff) > 0x7c00;
    case TRIB_BF16:
        memcpy(&h, p, sizeof h);
        return (h & 0x7fff) > 0x7f80;
    case TRIB_F8_E4M3:
        return (*p & 0x7f) == 0x7f;
    case TRIB_F8_E5M2:
        return (*p & 0x7f) > 0x7c;
    default:
        return false;
    }
}

/* Return the index of the first element that differs, or n if all are equal. */
static inline size_t differs(trib_dtype_t dtype, const unsigned char *a,
                      const unsigned char *b, size_t n)
{
    const size_t w = dtype_bytes[dtype];
    for (size_t i = 0; i < n; i++) {
        if (memcmp(a + i * w, b + i * w, w) == 0)
            continue;
        if (!is_nan(dtype, a + i * w) || !is_nan(dtype, b + i * w))
            return i;
    }
    return n;
}

/* n floats are the same, but for payloads of NaN. */
#define assert_same_floats(a, b, n) \
    assert_int_equal(differs(TRIB_F32, (const unsigned char *)(a), \
                             (const unsigned char *)(b), n), \
                     n)

/* The encode, the decode and the add of a codec of one byte a code: isa against the
 * reference, on the values of x, and on codes of any bits. */
#define check_codes(isa, name, x, n, args) \
    do { \
        const struct trib_kernels *judge = trib_kernels_get("c"); \
        float *of_ref = (float *)place(1, 4 * (n), 0); \
        float *of_isa = (float *)place(2, 4 * (n), 0); \
        unsigned char *p = place(3, n, 0), *q = place(4, n, random_below(70)); \
        judge->name##_encode(p, x, n, args), (isa)->name##_encode(q, x, n, args); \
        assert_memory_equal(p, q, n); \
        fill(TRIB_I8, p, n); \
        memcpy(q, p, n); \
        judge->name##_decode(of_ref, p, n, args), \
            (isa)->name##_decode(of_isa, q, n, args); \
        assert_same_floats(of_ref, of_isa, n); \
        judge->name##_add(of_ref, p, n, args), (isa)->name##_add(of_isa, q, n, args); \
        assert_same_floats(of_ref, of_isa, n); \
    } while (0)

#endif
