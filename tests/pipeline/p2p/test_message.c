/* SPDX-License-Identifier: BSD-3-Clause */
/* Message headers: their layout, and the headers from a peer that are rejected. */
#include "tests/harness/tribtest.h"

#include "pipeline/p2p/message.h"

TEST(test_layout)
{
    assert_int_equal(offsetof(struct trib_message, kind), 2);
    assert_int_equal(offsetof(struct trib_message, dtype), 3);
    assert_int_equal(offsetof(struct trib_message, tag), 4);
    assert_int_equal(offsetof(struct trib_message, send_id), 8);
    assert_int_equal(offsetof(struct trib_message, recv_id), 12);
    assert_int_equal(offsetof(struct trib_message, count), 16);
    assert_int_equal(offsetof(struct trib_message, bytes), 24);
    assert_int_equal(offsetof(struct trib_message, check), 28);
    assert_int_equal(offsetof(struct trib_message, payload), 32);
    assert_int_equal(offsetof(struct trib_message, position), 60);
}

TEST(test_bytes)
{
    size_t bytes = 0;

    assert_true(trib_message_bytes(7, TRIB_F64, &bytes) && bytes == 56);
    assert_true(trib_message_bytes(0, TRIB_BOOL, &bytes) && bytes == 0);
    assert_false(trib_message_bytes(1, TRIB_DTYPE_COUNT, &bytes));
    assert_false(trib_message_bytes(UINT64_MAX, TRIB_F32, &bytes));
    assert_false(trib_message_bytes(SIZE_MAX, TRIB_I8, &bytes));
}

static struct trib_message eager(uint64_t count)
{
    return (struct trib_message){.magic = TRIB_MESSAGE_MAGIC,
                                 .kind = TRIB_MESSAGE_IS_EAGER,
                                 .dtype = TRIB_F32,
                                 .tag = 5,
                                 .count = count,
                                 .bytes = (uint32_t)(4 * count)};
}

#define assert_fault(m, room, word) \
    do { \
        const char *fault = trib_message_fault(m, room); \
        assert_non_null(fault); \
        assert_non_null(strstr(fault, word)); \
    } while (0)

TEST(test_faults)
{
    struct trib_message m = eager(100);

    assert_null(trib_message_fault(&m, 400));
    assert_fault(&m, 399, "longer than its slot");
    m.magic++;
    assert_fault(&m, 400, "version");
    m = eager(100);
    m.kind = 0;
    assert_fault(&m, 400, "kind");
    m.kind = TRIB_MESSAGE_KIND_END;
    assert_fault(&m, 400, "kind");
    m = eager(100);
    m.dtype = TRIB_DTYPE_COUNT;
    assert_fault(&m, 400, "type or length");
    m = eager(100);
    m.count++;
    assert_fault(&m, 400, "does not match its elements");
    m = eager(TRIB_MESSAGE_EAGER / 4 + 1);
    assert_fault(&m, 8192, "does not match its elements");
    m = eager(100);
    m.kind = TRIB_MESSAGE_TAKEN;
    assert_fault(&m, 400, "does not match its elements");
    m.kind = TRIB_MESSAGE_ANNOUNCE;
    assert_fault(&m, 400, "invalid location");
    m.bytes = TRIB_MESSAGE_PLACE;
    assert_null(trib_message_fault(&m, 400));
    m.count = 0;
    assert_fault(&m, 400, "invalid location");
    m.count = 100;
    m.bytes = 0;
    assert_null(trib_message_fault(&m, 400));
    m.count = UINT64_MAX / 2;
    assert_fault(&m, 400, "type or length");
    m = eager(100);
    m.kind = TRIB_MESSAGE_DATA;
    m.count = UINT64_MAX; /* the receive rejects it */
    assert_null(trib_message_fault(&m, 400));
    m.bytes = 0;
    assert_null(trib_message_fault(&m, 400)); /* all was written: the receive knows */
    m.count = 0;
    assert_fault(&m, 400, "without elements");
}
