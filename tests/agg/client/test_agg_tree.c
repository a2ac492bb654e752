/* SPDX-License-Identifier: BSD-3-Clause */
/* Aggregators from TRIB_SERVICE and a file of racks, and trees encoded as bytes. */
#include "tests/agg/client/layouts.h"

static void append_tree(const struct trib_tree_layout *l, int ranks, char *text)
{
    const struct trib_agg_tree *t = l->tree;
    const char *names[TRIB_AGGREGATORS_MAX];
    const struct group_text u = {t->groups,    ranks,      t->parent, t->first,
                                 t->aggregators, t->leaf_of, names};

    for (int i = 0; i < l->n; i++)
        names[i] = l->addresses[i];
    group_text_append(&u, 0, text);
}

/* Ranks and aggregators decode the same tree from the bytes. */
static void check_bytes(const struct trib_tree_layout *l, int ranks,
                        const char *expected)
{
    struct trib_tree_layout again = {.n = l->n};
    struct trib_error err = {0};
    uint8_t bytes[TEXT_BYTES];
    char text[TEXT_BYTES] = "";
    size_t n, less;

    memcpy(again.addresses, l->addresses, sizeof(l->addresses));
    assert_ok(trib_agg_tree_pack(l->tree, ranks, bytes, sizeof(bytes), &n));
    assert_status(trib_agg_tree_pack(l->tree, ranks, bytes, n - 1, &less),
                  TRIB_ERR_OVERFLOW);
    assert_ok(trib_agg_tree_unpack(bytes, n, ranks, l->n, &err, &again.tree));
    append_tree(&again, ranks, text);
    assert_string_equal(text, expected);
    trib_tree_layout_free(&again);
    for (size_t cut = 1; cut < n; cut++) {
        assert_status(trib_agg_tree_unpack(bytes, cut, ranks, l->n, NULL, &again.tree),
                      TRIB_ERR_PROTOCOL);
        assert_null(again.tree);
    }
    assert_status(trib_agg_tree_unpack(bytes, n, ranks + 1, l->n, NULL, &again.tree),
                  TRIB_ERR_PROTOCOL);
    assert_status(trib_agg_tree_unpack(bytes, n, ranks, l->n + 1, NULL, &again.tree),
                  TRIB_ERR_PROTOCOL);
}

static void check(const char *service, const char *ranks, const char *expected)
{
    struct trib_tree_layout l;
    struct trib_error err = {0};
    struct heard heard;
    char text[TEXT_BYTES] = "";
    int n = 1;

    for (const char *p = ranks; *p; p++)
        n += *p == ' ';
    if (lay(service, "", ranks, &err, &heard, &l) != TRIB_OK)
        fail_msg("%s: %s", service, trib_error_text(&err));
    if (l.tree)
        append_tree(&l, n, text);
    for (int i = 0; !l.tree && i < l.n; i++)
        sprintf(text + strlen(text), "%s%s", i ? " " : "", l.addresses[i]);
    assert_string_equal(text, expected);
    if (l.tree)
        check_bytes(&l, n, expected);
    assert_string_equal(heard.text, "");
    trib_tree_layout_free(&l);
}

TEST(test_stars)
{
    check("a:1", "x y", "a:1");
    check("a:1,b:2", "x y", "a:1 b:2");
    check("n[1-3]:4700,[::1]:9", "x", "n1:4700 n2:4700 n3:4700 [::1]:9");
    check("a:1,a:1", "x", "a:1 a:1");
    check("a:1+b:1", "x", "a:1 b:1");
}

TEST(test_trees)
{
    check("a:1,b:1+c:1=x[1-2]+d:1=y1,y2", "x1 x2 y1", "a:1,b:1 (c:1:2) (d:1:1)");
    check("a:1+c[1-2]:1=x+d:1=y", "x y z", "a:1:1 (c1:1,c2:1:1) (d:1:1)");
    check("c:1=x+d:1=y+a:1", "x.cluster y", "a:1 (c:1:1) (d:1:1)");
    check("c:1=x+d:1=x.cluster+a:1", "x.cluster x.other", "a:1 (c:1:1) (d:1:1)");
    check("c:1=x+d:1=y", "x y", "c:1,d:1 (c:1:1) (d:1:1)");
    check("t:1+m:1=c:1,d:1+c:1=x+d:1=y+e:1=z", "x y z",
          "t:1 (m:1 (c:1:1) (d:1:1)) (e:1:1)");
    check("t:1+m:1=c:1,d:1,q+c:1=x+d:1=y+e:1=z", "x y q", "m:1:1 (c:1:1) (d:1:1)");
    check("t:1+c:1=x+d:1=y", "x x", "c:1");
}

/* Consecutive ranks take a few bytes, whatever their number; alternating ranks are too
 * many. */
TEST(test_many_ranks)
{
    enum { RANKS = 65536 };
    static const int parent[] = {0, 0, 0}, first[] = {0, 1, 2, 3},
                     aggregators[] = {0, 1, 2};
    static int leaf_of[RANKS];
    const struct trib_agg_tree t = {3, parent, first, aggregators, leaf_of};
    struct trib_agg_tree *got;
    uint8_t bytes[64];
    size_t n;

    for (int r = 0; r < RANKS; r++)
        leaf_of[r] = 1 + r % 2;
    assert_status(trib_agg_tree_pack(&t, RANKS, bytes, sizeof(bytes), &n),
                  TRIB_ERR_OVERFLOW);
    for (int r = 0; r < RANKS; r++)
        leaf_of[r] = r < 10 ? 2 : 1;
    assert_ok(trib_agg_tree_pack(&t, RANKS, bytes, sizeof(bytes), &n));
    assert_int_equal(n, 2 + 3 * 6 + 2 * 4);
    assert_ok(trib_agg_tree_unpack(bytes, n, RANKS, 3, NULL, &got));
    assert_memory_equal(got->leaf_of, leaf_of, sizeof(leaf_of));
    free(got);
}

TEST(test_peers)
{
    static const int parent[] = {0, 0, 0}, first[] = {0, 2, 3, 4},
                     aggregators[] = {0, 1, 2, 3}, leaf_of[] = {1, 1, 2};
    const struct trib_agg_tree t = {3, parent, first, aggregators, leaf_of};
    bool peer[7];

    assert_int_equal(trib_agg_tree_peers(&t, 3, 4, 0, peer), 2); /* both leaf
                                                                  * aggregators */
    assert_true(peer[5] && peer[6]);
    assert_int_equal(trib_agg_tree_peers(&t, 3, 4, 2, peer), 4); /* ranks 0 and 1, and
                                                                  * the roots */
    assert_true(peer[0] && peer[1] && peer[3] && peer[4]);
    assert_int_equal(trib_agg_tree_peers(NULL, 3, 4, 2, peer), 3);
    assert_true(peer[0] && peer[1] && peer[2]);
}
