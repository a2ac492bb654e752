/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "tests/harness/draw.h"
#include "topo/services.h"

#define TEXT_BYTES 4096
#define SERVICES_MAX 64

static struct trib_racks *parse(const char *text)
{
    const struct trib_racks_source source = {"test", text, strlen(text), NULL, 0};
    struct trib_racks *racks = NULL;

    assert_status(trib_racks_parse(&source, NULL, &racks), TRIB_OK);
    return racks;
}

/* "a(a:4 b:3)": each node by its service's host, a leaf with the number of its hosts.
 */
static void append_node(const struct trib_tree *tree, const struct trib_tree_ask *ask,
                        int node, char *text)
{
    const struct trib_tree_node *n = &tree->nodes[node];

    sprintf(text + strlen(text), "%s", ask->services[n->service]);
    if (n->level == 0)
        sprintf(text + strlen(text), ":%d", n->hosts);
    for (int i = 0, first = 1; i < tree->n; i++) {
        if (tree->nodes[i].parent != node)
            continue;
        strcat(text, first ? "(" : " ");
        first = 0;
        append_node(tree, ask, i, text);
    }
    if (n->children > 0)
        strcat(text, ")");
}

/* What holds for every tree. */
static void check_tree(const struct trib_tree *tree, const struct trib_tree_ask *ask)
{
    int children[2 * SERVICES_MAX] = {0};
    int hosts = 0;
    bool leads[SERVICES_MAX] = {false};

    for (int i = 0; i < tree->n; i++) {
        const struct trib_tree_node *n = &tree->nodes[i];
        assert_true(i == tree->n - 1 ? n->parent == -1
                                     : n->parent > i && n->parent < tree->n);
        if (n->parent >= 0)
            children[n->parent]++;
        assert_int_equal(n->children, children[i]);
        assert_int_equal(n->level == 0, n->children == 0);
        assert_true(n->children != 1 && n->children <= ask->fan_in);
        assert_int_equal(n->hosts > 0, n->level == 0);
        if (n->parent >= 0)
            assert_true(n->level < tree->nodes[n->parent].level);
        if (n->level == 0) {
            assert_false(leads[n->service]);
            leads[n->service] = true;
        }
        hosts += n->hosts;
    }
    assert_int_equal(hosts, ask->racks->n_hosts);
    for (int i = 0; i < ask->racks->n_switches; i++) {
        assert_int_equal(tree->of_rack[i] >= 0, ask->racks->switches[i].hosts > 0);
        if (tree->of_rack[i] >= 0)
            assert_int_equal(tree->nodes[tree->of_rack[i]].level, 0);
    }
}

static void check(struct trib_racks *racks, const char *const *services, int n,
                  int fan_in, const char *expected)
{
    const struct trib_tree_ask ask = {racks, services, n, fan_in};
    struct trib_tree tree;
    char text[TEXT_BYTES] = "";

    assert_status(trib_tree_make(&ask, NULL, &tree), TRIB_OK);
    check_tree(&tree, &ask);
    append_node(&tree, &ask, tree.n - 1, text);
    assert_string_equal(text, expected);
    trib_tree_free(&tree);
    trib_tree_free(&tree);
}

static const char pods[] =
    "p1/r1: a1 a2 s1 t1\np1/r2: b1 b2 s2\np2/r3: c1 s3\np2/r4: d1 s4\n";

static void test_pods(void **state)
{
    static const char *const services[] = {"s1", "s2", "s3", "s4", "t1"};
    char text[256];

    (void)state;
    snprintf(text, sizeof(text),
             "SwitchName=p1 Switches=r1,r2\nSwitchName=p2 Switches=r3,r4\n"
             "SwitchName=c Switches=p[1-2]\n"
             "SwitchName=r1 Nodes=a[1-2],s1,t1\n"
             "SwitchName=r2 Nodes=b[1-2],s2\nSwitchName=r3 Nodes=c1,s3\n"
             "SwitchName=r4 Nodes=d1,s4\n");
    struct trib_racks *racks = parse(text);
    check(racks, services, 1, 2, "s1:11");
    /* each pod becomes one below its switch; the first of those that play one part */
    check(racks, services, 4, 2, "s2(s3(s3:2 s4:2) s1(s1:4 s2:3))");
    /* a service without a rack of its own comes first */
    check(racks, services, 5, 2, "t1(s3(s3:2 s4:2) t1(s1:4 s2:3))");
    check(racks, services, 5, 8, "t1(s3(s3:2 s4:2) t1(s1:4 s2:3))");
    trib_racks_free(racks);
}

/* Racks without a service take that of their pod. */
static void test_nearest(void **state)
{
    static const char *const services[] = {"s3", "s1"};
    static const char *const three[] = {"s3", "s1", "s2"};
    struct trib_racks *racks = parse("p0/x: y\np1/r5: e1\n");

    (void)state;
    trib_racks_free(racks);
    racks = parse(pods);
    check(racks, services, 2, 2, "s3(s1:7 s3:4)");
    check(racks, three, 3, 2, "s3(s3:4 s1(s1:4 s2:3))");
    trib_racks_free(racks);
    racks = parse("p1/r1: s1 a\np1/r2: s2 b\np1/r3: c\np1/r4: d\np1/r5: e f\n");
    check(racks, three + 1, 2, 2, "s1(s1:5 s2:3)"); /* r3 and r5, and r4 */
    trib_racks_free(racks);
}

/* As even as can be: no node with one child, none with many more than another. */
static void test_even(void **state)
{
    static char names[9][4];
    const char *services[9];
    char text[256] = "";

    (void)state;
    for (int i = 0; i < 9; i++) {
        snprintf(names[i], sizeof(names[i]), "s%d", i);
        services[i] = names[i];
        sprintf(text + strlen(text), "r/%d: s%d\n", i, i);
    }
    struct trib_racks *racks = parse(text);
    check(racks, services, 9, 16, "s0(s0:1 s1:1 s2:1 s3:1 s4:1 s5:1 s6:1 s7:1 s8:1)");
    check(racks, services, 9, 8,
          "s1(s0(s0:1 s1:1 s2:1 s3:1 s4:1) s5(s5:1 s6:1 s7:1 s8:1))");
    check(racks, services, 9, 4,
          "s1(s0(s0:1 s1:1 s2:1) s3(s3:1 s4:1 s5:1) s6(s6:1 s7:1 s8:1))");
    trib_racks_free(racks);
}

/* Several services of a host, racks that nothing joins. */
static void test_odd(void **state)
{
    static const char *const twice[] = {"a", "a", "a"};
    static const char *const apart[] = {"a", "c"};
    struct trib_racks *racks = parse("r1: a b\nr2: c\nr3: d\n");

    (void)state;
    check(racks, twice, 3, 2, "a(a:1 a(a:2 a:1))"); /* they share the racks */
    check(racks, apart, 2, 2, "a(a:3 c:1)");
    trib_racks_free(racks);
}

static void test_random(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 300; round++) {
        struct trib_rng rng = {.seed = 7, .step = round};
        static char names[SERVICES_MAX][16];
        const char *services[SERVICES_MAX];
        char text[TEXT_BYTES] = "";
        uint32_t racks_n = 1 + draw_u32(rng, 0) % 60;
        struct trib_tree_ask ask = {.services = services};
        struct trib_tree trees[2];
        for (uint32_t i = 0; i < racks_n; i++)
            sprintf(text + strlen(text), "p%u/q%u/r%u: n%u[1-3]\n", i % 4, i % 3, i, i);
        ask.n_services = 1 + (int)(draw_u32(rng, 1) % SERVICES_MAX);
        ask.fan_in = 2 + (int)(draw_u32(rng, 2) % 9);
        for (int i = 0; i < ask.n_services; i++) {
            snprintf(names[i], sizeof(names[i]), "n%u%u",
                     draw_u32(rng, 3 + 2 * (uint32_t)i) % racks_n,
                     1 + draw_u32(rng, 4 + 2 * (uint32_t)i) % 3);
            services[i] = names[i];
        }
        struct trib_racks *racks = parse(text);
        ask.racks = racks;
        for (int i = 0; i < 2; i++) {
            assert_status(trib_tree_make(&ask, NULL, &trees[i]), TRIB_OK);
            check_tree(&trees[i], &ask);
        }
        assert_int_equal(trees[0].n, trees[1].n);
        assert_memory_equal(trees[0].nodes, trees[1].nodes,
                            (size_t)trees[0].n * sizeof(*trees[0].nodes));
        trib_tree_free(&trees[0]);
        trib_tree_free(&trees[1]);
        trib_racks_free(racks);
    }
}

static void test_errors(void **state)
{
    static const char *const services[] = {"a", "x"};
    struct trib_racks *racks = parse("r: a b");
    struct trib_tree_ask ask = {racks, services, 2, 2};
    struct trib_tree tree;
    struct trib_error err = {0};

    (void)state;
    assert_status(trib_tree_make(&ask, &err, &tree), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "the service on x is in no rack"));
    trib_error_clear(&err);
    ask.n_services = 1;
    ask.fan_in = 1;
    assert_status(trib_tree_make(&ask, &err, &tree), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "must be 2 at least"));
    trib_error_clear(&err);
    ask.n_services = 0;
    assert_status(trib_tree_make(&ask, &err, &tree), TRIB_ERR_INVALID);
    trib_racks_free(racks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods),   cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_even),   cmocka_unit_test(test_odd),
        cmocka_unit_test(test_random), cmocka_unit_test(test_errors),
    };

    tribtest_deadline(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
