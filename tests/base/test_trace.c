/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <jansson.h>

#include "base/trace.h"

static const struct trib_trace_owner alone = {
    .process = 5, .host = "here", .part = "", .within_ns = 0};

static json_t *dump_of(const struct trib_trace *trace,
                       const struct trib_trace_owner *owner)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    json_error_t error;

    assert_non_null(file);
    assert_status(trib_trace_dump(trace, owner, file), TRIB_OK);
    fclose(file);
    json_t *root = json_loads(text, 0, &error);
    if (!root)
        fail_msg("not JSON: %s\n%s", error.text, text);
    free(text);
    return root;
}

static json_t *dump(const struct trib_trace *trace)
{
    return dump_of(trace, &alone);
}

/* The i-th event that is no description of lanes and processes; or NULL. */
static json_t *event_of(const json_t *root, size_t i)
{
    json_t *events = json_object_get(root, "traceEvents"), *e;
    size_t at;

    json_array_foreach(events, at, e)
    {
        const char *phase = json_string_value(json_object_get(e, "ph"));
        if (strcmp(phase, "M") != 0 && i-- == 0)
            return e;
    }
    return NULL;
}

static double number_of(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

/* Return the text that a description ("thread_name") has for this lane, or "". */
static const char *told_of(const json_t *root, const char *name, const char *key,
                           unsigned lane)
{
    json_t *events = json_object_get(root, "traceEvents"), *e;
    size_t at;

    json_array_foreach(events, at, e)
    {
        if (strcmp(json_string_value(json_object_get(e, "name")), name) == 0 &&
            number_of(e, "tid") == lane)
            return json_string_value(json_object_get(json_object_get(e, "args"), key));
    }
    return "";
}

TEST(test_off_records_nothing)
{
    struct trib_trace trace;

    assert_status(trib_trace_create(&trace, 0), TRIB_OK);
    trib_trace_now(&trace, TRIB_TRACE_ARRIVED, 1, 2, 3);
    assert_int_equal(trace.count, 0);
    json_t *root = dump(&trace);
    assert_null(event_of(root, 0));
    json_decref(root);
    trib_trace_destroy(&trace);
}

TEST(test_keeps_the_newest)
{
    struct trib_trace trace;

    assert_status(trib_trace_create(&trace, 3), TRIB_OK); /* becomes 4 */
    for (uint32_t i = 0; i < 10; i++)
        trib_trace_now(&trace, TRIB_TRACE_ARRIVED, (int)i, 100 + i, 4096);
    json_t *root = dump(&trace);
    assert_null(event_of(root, 4));
    for (size_t i = 0; i < 4; i++) {
        json_t *e = event_of(root, i);
        json_t *args = json_object_get(e, "args");
        assert_string_equal(json_string_value(json_object_get(e, "name")), "arrived");
        assert_int_equal(json_integer_value(json_object_get(e, "pid")), 5);
        assert_int_equal(json_integer_value(json_object_get(args, "peer")), 6 + i);
        assert_int_equal(json_integer_value(json_object_get(args, "chunk")), 106 + i);
        assert_int_equal(json_integer_value(json_object_get(args, "seq")), 6 + i);
        assert_int_equal(json_integer_value(json_object_get(args, "value")), 4096);
    }
    json_decref(root);
    trib_trace_destroy(&trace);
}

TEST(test_spans_and_time)
{
    struct trib_trace trace;
    struct trib_trace_event e = {.time_ns = 1234567, .kind = TRIB_TRACE_ENCODE_BEGIN};

    assert_status(trib_trace_create(&trace, 4), TRIB_OK);
    trib_trace_add(&trace, &e);
    e.time_ns = 2000005;
    e.kind = TRIB_TRACE_ENCODE_END;
    trib_trace_add(&trace, &e);
    json_t *root = dump(&trace);
    const json_t *span = event_of(root, 0);
    assert_string_equal(json_string_value(json_object_get(span, "ph")), "X");
    assert_true(number_of(span, "ts") == 1234.567);
    assert_true(number_of(span, "dur") == 765.438);
    assert_null(event_of(root, 1));
    json_decref(root);
    trib_trace_destroy(&trace);
}

/* A ring that has overwritten the start of a span omits the span; an unfinished span
 * ends with the last event. */
TEST(test_half_spans)
{
    static const struct trib_trace_event events[] = {
        {.time_ns = 1000, .kind = TRIB_TRACE_ENCODE_END},
        {.time_ns = 2000, .kind = TRIB_TRACE_OP_BEGIN},
        {.time_ns = 5000, .kind = TRIB_TRACE_ARRIVED},
        {.time_ns = 3000, .kind = TRIB_TRACE_UNDER_WAY, .value = 7}};
    struct trib_trace trace;

    assert_status(trib_trace_create(&trace, 4), TRIB_OK);
    for (size_t i = 0; i < 4; i++)
        trib_trace_add(&trace, &events[i]);
    json_t *root = dump(&trace);
    assert_string_equal(json_string_value(json_object_get(event_of(root, 0), "name")),
                        "arrived");
    json_t *counted = event_of(root, 1), *span = event_of(root, 2);
    assert_int_equal(number_of(json_object_get(counted, "args"), "frames"), 7);
    assert_true(number_of(span, "ts") == 2 && number_of(span, "dur") == 3);
    assert_true(json_is_false(json_object_get(json_object_get(span, "args"), "ended")));
    assert_null(event_of(root, 3));
    json_decref(root);
    trib_trace_destroy(&trace);
}

/* A span that is recorded at its end begins where it did, and ends a wait there. */
TEST(test_later_spans)
{
    const struct trib_trace_event what = {.peer = 1, .chunk = 2, .value = 3};
    struct trib_trace trace, off;

    assert_status(trib_trace_create(&trace, 8), TRIB_OK);
    trib_trace_wait(&trace);
    const uint64_t begin = trib_trace_clock(&trace);
    trib_trace_span(&trace, TRIB_TRACE_SEND_BEGIN, begin, &what);
    assert_int_equal(trace.count, 4);
    assert_int_equal(trace.events[1].kind, TRIB_TRACE_WAIT_END);
    assert_int_equal(trace.events[1].time_ns, begin);
    assert_int_equal(trace.events[2].kind, TRIB_TRACE_SEND_BEGIN);
    assert_int_equal(trace.events[2].time_ns, begin);
    assert_int_equal(trace.events[3].kind, TRIB_TRACE_SEND_END);
    assert_true(trace.events[3].time_ns >= begin);
    assert_int_equal(trace.events[3].value, 3);
    trib_trace_destroy(&trace);
    assert_status(trib_trace_create(&off, 0), TRIB_OK);
    assert_int_equal(trib_trace_clock(&off), 0);
    trib_trace_destroy(&off);
}

/* Times are on the clock of rank 0, lanes have names, and communicators of one rank
 * have lanes of their own. */
TEST(test_owners)
{
    const struct trib_trace_event arrived = {.time_ns = 7000000,
                                             .kind = TRIB_TRACE_ARRIVED};
    struct trib_trace_owner owner = {.process = 3,
                                     .host = "a\"b",
                                     .part = "",
                                     .ahead_ns = 4000000,
                                     .within_ns = 1500};
    struct trib_trace trace;

    assert_status(trib_trace_create(&trace, 4), TRIB_OK);
    trib_trace_add(&trace, &arrived);
    json_t *root = dump_of(&trace, &owner);
    const json_t *e = event_of(root, 0);
    assert_int_equal(number_of(e, "pid"), 3);
    assert_true(number_of(e, "ts") == 3000);
    assert_int_equal(number_of(e, "tid"), TRIB_TRACE_LANE_RECEIVE);
    assert_string_equal(told_of(root, "process_name", "name", 0), "rank 3 (a\"b)");
    assert_string_equal(told_of(root, "process_labels", "labels", 0),
                        "clock +4000 us, within 2 us");
    assert_string_equal(told_of(root, "thread_name", "name", TRIB_TRACE_LANE_RECEIVE),
                        "receive");
    assert_string_equal(told_of(root, "thread_name", "name", TRIB_TRACE_LANE_SEND), "");
    json_decref(root);
    owner.part = "split1";
    owner.ahead_ns = -4000000;
    owner.within_ns = UINT64_MAX;
    root = dump_of(&trace, &owner);
    const unsigned lane = (unsigned)number_of(event_of(root, 0), "tid");
    assert_true(lane >= TRIB_TRACE_LANES);
    assert_true(number_of(event_of(root, 0), "ts") == 11000);
    assert_string_equal(told_of(root, "thread_name", "name", lane), "split1: receive");
    assert_string_equal(
        told_of(root, "process_labels", "labels", lane - TRIB_TRACE_LANE_RECEIVE),
        "own clock, not aligned");
    json_decref(root);
    trib_trace_destroy(&trace);
}

/* Threads other than the recording one have their own lanes. */
TEST(test_threads)
{
    static const enum trib_trace_kind kinds[] = {
        TRIB_TRACE_ENCODE_BEGIN, TRIB_TRACE_AHEAD_BEGIN, TRIB_TRACE_AHEAD_END,
        TRIB_TRACE_ENCODE_END};
    struct trib_trace trace;
    struct trib_trace_event e = {.peer = 2};

    assert_status(trib_trace_create(&trace, 4), TRIB_OK);
    for (size_t i = 0; i < 4; i++) {
        e.kind = kinds[i];
        trib_trace_add(&trace, &e);
    }
    json_t *root = dump(&trace);
    assert_int_equal(number_of(event_of(root, 0), "tid"), TRIB_TRACE_LANE_AHEAD + 2);
    assert_int_equal(number_of(event_of(root, 1), "tid"), TRIB_TRACE_LANE_ENCODE);
    assert_string_equal(told_of(root, "thread_name", "name", TRIB_TRACE_LANE_AHEAD + 2),
                        "encode ahead 3");
    json_decref(root);
    trib_trace_destroy(&trace);
}

/* A wait ends with the next event of any kind. */
TEST(test_waits)
{
    static const enum trib_trace_kind expected[] = {
        TRIB_TRACE_OP_BEGIN, TRIB_TRACE_WAIT_BEGIN, TRIB_TRACE_WAIT_END,
        TRIB_TRACE_ARRIVED,  TRIB_TRACE_WAIT_BEGIN, TRIB_TRACE_WAIT_END,
        TRIB_TRACE_OP_END};
    struct trib_trace trace, off;

    assert_status(trib_trace_create(&trace, 16), TRIB_OK);
    trib_trace_now(&trace, TRIB_TRACE_OP_BEGIN, -1, 0, 0);
    trib_trace_wait(&trace);
    trib_trace_wait(&trace);
    trib_trace_now(&trace, TRIB_TRACE_ARRIVED, 1, 2, 3);
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
    assert_status(trib_trace_create(&off, 0), TRIB_OK);
    trib_trace_wait(&off);
    assert_int_equal(off.count, 0);
}

/* Operations of named plans show the name, with any characters in it. */
TEST(test_names_of_plans)
{
    struct trib_trace trace, off;

    assert_status(trib_trace_create(&trace, 8), TRIB_OK);
    const uint32_t one = trib_trace_name(&trace, "layer1"),
                   two = trib_trace_name(&trace, "a\"\\b");
    assert_int_equal(trib_trace_name(&trace, "layer1"), one);
    assert_int_not_equal(one, two);
    const uint32_t plans[] = {one, two, 0};
    for (size_t i = 0; i < 3; i++) {
        trib_trace_now(&trace, TRIB_TRACE_OP_BEGIN, -1, plans[i], 5);
        trib_trace_now(&trace, TRIB_TRACE_OP_END, -1, plans[i], 5);
    }
    trib_trace_now(&trace, TRIB_TRACE_ARRIVED, 0, one, 5);
    json_t *root = dump(&trace);
    static const char *const expected[] = {"layer1", "a\"\\b", NULL, NULL};
    for (size_t i = 0; i < 4; i++) {
        json_t *plan =
            json_object_get(json_object_get(event_of(root, i), "args"), "plan");
        if (expected[i])
            assert_string_equal(json_string_value(plan), expected[i]);
        else
            assert_null(plan);
    }
    json_decref(root);
    trib_trace_destroy(&trace);
    assert_status(trib_trace_create(&off, 0), TRIB_OK);
    assert_int_equal(trib_trace_name(&off, "layer1"), 0);
    trib_trace_destroy(&off);
}

TEST(test_limits)
{
    struct trib_trace trace;

    assert_status(trib_trace_create(&trace, SIZE_MAX), TRIB_ERR_OVERFLOW);
}

TEST(test_unwritable_file)
{
    struct trib_trace trace;
    FILE *full = fopen("/dev/full", "we");

    if (!full)
        tribtest_skip("no /dev/full");
    assert_status(trib_trace_create(&trace, 1), TRIB_OK);
    assert_status(trib_trace_dump(&trace, &alone, full), TRIB_ERR_SYSTEM);
    fclose(full);
    trib_trace_destroy(&trace);
}
