/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "base/sized.h"

struct options {
    size_t size;
    int first;
    int second;
    const char *added;
};

struct newer {
    struct options known;
    size_t unknown;
};

static const struct trib_sized kind = {"options_t", "OPTIONS_INIT",
                                       sizeof(struct options),
                                       TRIB_SIZED_UP_TO(struct options, second)};

TEST(test_takes_its_own)
{
    const struct options theirs = {sizeof(theirs), 1, 2, "x"};
    struct options ours = {.added = "default"};
    struct trib_error err = {0};

    assert_status(trib_sized_take(&kind, &theirs, &ours, &err), TRIB_OK);
    assert_memory_equal(&ours, &theirs, sizeof(ours));
}

/* A field that an older program lacks keeps its default; nothing past its struct is
 * read. */
TEST(test_takes_smaller_ones)
{
    const size_t size = TRIB_SIZED_UP_TO(struct options, second);
    struct options theirs = {size, 1, 2, "never read"};
    struct options ours = {.added = "default"};
    struct trib_error err = {0};

    assert_status(trib_sized_take(&kind, &theirs, &ours, &err), TRIB_OK);
    assert_int_equal(ours.size, sizeof(ours));
    assert_int_equal(ours.first, 1);
    assert_int_equal(ours.second, 2);
    assert_string_equal(ours.added, "default");
}

TEST(test_takes_larger_ones_that_ask_for_nothing_new)
{
    struct newer theirs = {.known = {sizeof(theirs), 1, 2, "x"}};
    struct options ours = {0};
    struct trib_error err = {0};

    assert_status(trib_sized_take(&kind, &theirs, &ours, &err), TRIB_OK);
    assert_int_equal(ours.size, sizeof(ours));
    assert_string_equal(ours.added, "x");
    theirs.unknown = 1;
    ours = (struct options){.first = 7};
    assert_status(trib_sized_take(&kind, &theirs, &ours, &err), TRIB_ERR_INVALID);
    assert_non_null(strstr(trib_error_text(&err), "older than the header"));
    assert_int_equal(ours.first, 7);
}

TEST(test_refuses_what_is_no_size)
{
    const size_t sizes[] = {
        0, 1, sizeof(size_t), TRIB_SIZED_UP_TO(struct options, first), 65537, SIZE_MAX};
    struct options ours = {0};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const struct options theirs = {.size = sizes[i]};
        struct trib_error err = {0};
        assert_status(trib_sized_take(&kind, &theirs, &ours, &err), TRIB_ERR_INVALID);
        assert_non_null(strstr(trib_error_text(&err), "options_t.size"));
        assert_non_null(strstr(trib_error_text(&err), "OPTIONS_INIT"));
    }
}

TEST(test_gives_as_much_as_there_is_room_for)
{
    const struct options ours = {sizeof(ours), 1, 2, "x"};
    struct options smaller = {TRIB_SIZED_UP_TO(struct options, second), 0, 0,
                              "untouched"};
    struct newer larger = {.known = {.size = sizeof(larger)}, .unknown = 9};
    struct trib_error err = {0};

    assert_status(trib_sized_fits(&kind, &smaller, &err), TRIB_OK);
    trib_sized_give(&kind, &ours, &smaller);
    assert_int_equal(smaller.size, TRIB_SIZED_UP_TO(struct options, second));
    assert_int_equal(smaller.second, 2);
    assert_string_equal(smaller.added, "untouched");
    trib_sized_give(&kind, &ours, &larger);
    assert_int_equal(larger.known.size, sizeof(larger));
    assert_string_equal(larger.known.added, "x");
    assert_int_equal(larger.unknown, 0);
}
