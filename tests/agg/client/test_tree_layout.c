/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TRIB_SERVICE and TRIB_RACKS: each mistake has an error message, and a layout without
 * benefit for any rank has a warning.
 */
#include "tests/agg/client/layouts.h"

TEST(test_mistakes)
{
    static const struct {
        const char *service, *why;
    } rows[] = {
        {"a", "\"a\" is not host:port"},
        {"a:1,", "has an empty name"},
        {"a:1+", "has an empty name"},
        {"+a:1", "has an empty name"},
        {"a:1 b:1", "has an invalid character"},
        {"a[1:4700", "has a [ without its ]"},
        {"n[1-65]:1", "more than 64 aggregators"},
        {"a:1+c:1=", "has an empty name"},
        {"a:1+=x", "has an empty name"},
        {"a:1+c:1=x,[", "has a [ without its ]"},
        {"a:1+c:1=x=y", "has an invalid character"},
        {"a:1+c:1=x+a:1=y", "a:1 is in two groups"},
        {"a:1+c:1=x+d:1=x", "host x is in two groups"},
        {"a:1+c:1=n[1-9]+d:1=n[7-12]", "host n7 is in two groups"},
        {"a:1+c:1=x,d:1", "d:1 is a child of c:1, but it is not a listed aggregator"},
        {"a:1,d:1+c:1=x,d:1", "d:1 has no hosts to sum for: write d:1=host1,host2"},
        {"a:1+c:1=x,d:1+e:1=d:1+d:1=y",
         "d:1 is a child of e:1 and of another group"},
        {"a:1+c:1=c:1,x", "c:1 is its own ancestor"},
        {"a:1+c:1=d:1+d:1=c:1,x", "is its own ancestor"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trib_tree_layout l;
        struct trib_error err = {0};
        struct heard heard;
        assert_status(lay(rows[i].service, "", "x y", &err, &heard, &l),
                      TRIB_ERR_CONFIG);
        if (strncmp(err.text, "TRIB_SERVICE: ", 14) != 0 ||
            !strstr(err.text, rows[i].why))
            fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].service, err.text,
                     rows[i].why);
        trib_tree_layout_free(&l);
    }
}

/* Valid layouts that are probably mistakes. */
TEST(test_warnings)
{
    struct trib_tree_layout l;
    struct trib_error err = {0};
    struct heard heard;
    char path[] = "/tmp/test_service_treeXXXXXX";
    const int fd = mkstemp(path);

    assert_true(fd >= 0 && write(fd, "r1: x a\nr2: y b\n", 16) == 16);
    close(fd);
    assert_status(lay("a:1+c:1=z", "", "x y", &err, &heard, &l), TRIB_OK);
    assert_non_null(strstr(heard.text, "no rank runs on a host named in TRIB_SERVICE"));
    assert_true(!l.tree && l.n == 1);
    trib_tree_layout_free(&l);
    assert_status(lay("10.0.0.1:1,10.0.0.2:1", path, "x y", &err, &heard, &l), TRIB_OK);
    assert_non_null(strstr(heard.text, "no aggregator is in a rack"));
    assert_true(!l.tree && l.n == 2);
    trib_tree_layout_free(&l);
    assert_status(lay("a:1,b:1,c:1", path, "x y", &err, &heard, &l), TRIB_OK);
    assert_true(l.tree && l.n == 3 && l.tree->groups == 3 && !heard.text[0]);
    trib_tree_layout_free(&l);
    unlink(path);
    assert_status(lay("a:1", path, "x y", &err, &heard, &l), TRIB_ERR_SYSTEM);
    assert_non_null(strstr(err.text, path));
}
