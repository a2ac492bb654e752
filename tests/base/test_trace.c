/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <jansson.h>

#include "base/trace.h"

static json_t *dump(const struct trib_trace *trace)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    json_error_t error;

    assert_non_null(file);
    assert_status(trib_trace_dump(trace, file), TRIB_OK);
    fclose(file);
    json_t *root = json_loads(text, 0, &error);
    if (!root)
        fail_msg("not JSON: %s\n%s", error.text, text);
    free(text);
    return root;
}

static void test_off_records_nothing(void **state)
{
    struct trib_trace trace;

    (void)state;
    assert_status(trib_trace_create(&trace, 0, 0), TRIB_OK);
    trib_trace_now(&trace, TRIB_TRACE_POST, 1, 2, 3);
    assert_int_equal(trace.count, 0);
    json_t *root = dump(&trace);
    assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), 0);
    json_decref(root);
    trib_trace_destroy(&trace);
}

static void test_keeps_the_newest(void **state)
{
    struct trib_trace trace;

    (void)state;
    assert_status(trib_trace_create(&trace, 3, 5), TRIB_OK); /* becomes 4 */
    for (uint32_t i = 0; i < 10; i++)
        trib_trace_now(&trace, TRIB_TRACE_POST, (int)i, 100 + i, 4096);
    json_t *root = dump(&trace);
    json_t *events = json_object_get(root, "traceEvents");
    assert_int_equal(json_array_size(events), 4);
    for (size_t i = 0; i < 4; i++) {
        json_t *e = json_array_get(events, i);
        json_t *args = json_object_get(e, "args");
        assert_string_equal(json_string_value(json_object_get(e, "name")), "post");
        assert_int_equal(json_integer_value(json_object_get(e, "pid")), 5);
        assert_int_equal(json_integer_value(json_object_get(args, "peer")), 6 + i);
        assert_int_equal(json_integer_value(json_object_get(args, "chunk")), 106 + i);
        assert_int_equal(json_integer_value(json_object_get(args, "seq")), 6 + i);
        assert_int_equal(json_integer_value(json_object_get(args, "value")), 4096);
    }
    json_decref(root);
    trib_trace_destroy(&trace);
}

static void test_spans_and_time(void **state)
{
    struct trib_trace trace;
    struct trib_trace_event e = {.time_ns = 1234567, .kind = TRIB_TRACE_ENCODE_BEGIN};

    (void)state;
    assert_status(trib_trace_create(&trace, 4, 0), TRIB_OK);
    trib_trace_add(&trace, &e);
    e.time_ns = 2000005;
    e.kind = TRIB_TRACE_ENCODE_END;
    trib_trace_add(&trace, &e);
    json_t *root = dump(&trace);
    json_t *events = json_object_get(root, "traceEvents");
    json_t *begin = json_array_get(events, 0);
    json_t *end = json_array_get(events, 1);
    assert_string_equal(json_string_value(json_object_get(begin, "ph")), "B");
    assert_string_equal(json_string_value(json_object_get(end, "ph")), "E");
    assert_true(json_number_value(json_object_get(begin, "ts")) == 1234.567);
    assert_true(json_number_value(json_object_get(end, "ts")) == 2000.005);
    json_decref(root);
    trib_trace_destroy(&trace);
}

/* Threads beside the one that records have lines of their own. */
static void test_threads(void **state)
{
    static const int lines[] = {0, 3, 3};
    struct trib_trace trace;
    struct trib_trace_event e = {.kind = TRIB_TRACE_ENCODE_BEGIN, .peer = 2};

    (void)state;
    assert_status(trib_trace_create(&trace, 4, 0), TRIB_OK);
    trib_trace_add(&trace, &e);
    e.kind = TRIB_TRACE_AHEAD_BEGIN;
    trib_trace_add(&trace, &e);
    e.kind = TRIB_TRACE_AHEAD_END;
    trib_trace_add(&trace, &e);
    json_t *root = dump(&trace);
    for (size_t i = 0; i < 3; i++) {
        json_t *event = json_array_get(json_object_get(root, "traceEvents"), i);
        assert_int_equal(json_integer_value(json_object_get(event, "tid")), lines[i]);
    }
    json_decref(root);
    trib_trace_destroy(&trace);
}

/* A wait ends with the next event, whatever that is. */
static void test_waits(void **state)
{
    static const enum trib_trace_kind expected[] = {
        TRIB_TRACE_OP_BEGIN, TRIB_TRACE_WAIT_BEGIN, TRIB_TRACE_WAIT_END,
        TRIB_TRACE_POST,     TRIB_TRACE_WAIT_BEGIN, TRIB_TRACE_WAIT_END,
        TRIB_TRACE_OP_END};
    struct trib_trace trace, off;

    (void)state;
    assert_status(trib_trace_create(&trace, 16, 0), TRIB_OK);
    trib_trace_now(&trace, TRIB_TRACE_OP_BEGIN, -1, 0, 0);
    trib_trace_wait(&trace);
    trib_trace_wait(&trace);
    trib_trace_now(&trace, TRIB_TRACE_POST, 1, 2, 3);
    trib_trace_wait(&trace);
    trib_trace_now(&trace, TRIB_TRACE_OP_END, -1, 0, 0);
    assert_int_equal(trace.count, sizeof(expected) / sizeof(*expected));
    for (uint64_t i = 0; i < trace.count; i++) {
        assert_int_equal(trace.events[i].kind, expected[i]);
        assert_int_equal(trace.events[i].seq, i);
    }
    assert_int_equal(trace.events[3].peer, 1);
    assert_int_equal(trace.events[3].value, 3);
    trib_trace_destroy(&trace);
    assert_status(trib_trace_create(&off, 0, 0), TRIB_OK);
    trib_trace_wait(&off);
    assert_int_equal(off.count, 0);
}

/* Operations of plans that have a name show it, whatever characters are in it. */
static void test_names_of_plans(void **state)
{
    struct trib_trace trace, off;

    (void)state;
    assert_status(trib_trace_create(&trace, 8, 0), TRIB_OK);
    const uint32_t one = trib_trace_name(&trace, "layer1"),
                   two = trib_trace_name(&trace, "a\"\\b");
    assert_int_equal(trib_trace_name(&trace, "layer1"), one);
    assert_int_not_equal(one, two);
    trib_trace_now(&trace, TRIB_TRACE_OP_BEGIN, -1, one, 5);
    trib_trace_now(&trace, TRIB_TRACE_OP_END, -1, two, 5);
    trib_trace_now(&trace, TRIB_TRACE_OP_BEGIN, -1, 0, 5);
    trib_trace_now(&trace, TRIB_TRACE_POST, 0, one, 5);
    json_t *root = dump(&trace);
    static const char *const expected[] = {"layer1", "a\"\\b", NULL, NULL};
    for (size_t i = 0; i < 4; i++) {
        json_t *event = json_array_get(json_object_get(root, "traceEvents"), i);
        json_t *plan = json_object_get(json_object_get(event, "args"), "plan");
        if (expected[i])
            assert_string_equal(json_string_value(plan), expected[i]);
        else
            assert_null(plan);
    }
    json_decref(root);
    trib_trace_destroy(&trace);
    assert_status(trib_trace_create(&off, 0, 0), TRIB_OK);
    assert_int_equal(trib_trace_name(&off, "layer1"), 0);
    trib_trace_destroy(&off);
}

static void test_limits(void **state)
{
    struct trib_trace trace;

    (void)state;
    assert_status(trib_trace_create(&trace, SIZE_MAX, 0), TRIB_ERR_OVERFLOW);
}

static void test_unwritable_file(void **state)
{
    struct trib_trace trace;
    FILE *full = fopen("/dev/full", "we");

    (void)state;
    if (!full)
        tribtest_skip("no /dev/full");
    assert_status(trib_trace_create(&trace, 1, 0), TRIB_OK);
    assert_status(trib_trace_dump(&trace, full), TRIB_ERR_SYSTEM);
    fclose(full);
    trib_trace_destroy(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off_records_nothing),
        cmocka_unit_test(test_keeps_the_newest),
        cmocka_unit_test(test_spans_and_time),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_names_of_plans),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_unwritable_file),
    };

    tribtest_deadline(180);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
