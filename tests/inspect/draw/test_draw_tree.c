/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/draw/draw_tree.h"
#include "tests/topo/data_layout.h"

#define TEXT_BYTES 65536

static void append(void *arg, const char *line)
{
    char *text = arg;
    size_t n = strlen(text);

    snprintf(text + n, TEXT_BYTES - n, "%s\n", line);
}

static void check_text(const struct trib_drawing *drawing, const char *expected)
{
    static char text[TEXT_BYTES];

    text[0] = '\0';
    assert_ok(trib_draw_text(drawing, append, text));
    assert_string_equal(text, expected);
}

static struct trib_racks *parse(const char *text)
{
    const struct trib_racks_source source = {"test", text, strlen(text), NULL, 0};
    struct trib_racks *racks = NULL;

    assert_ok(trib_racks_parse(&source, NULL, &racks));
    return racks;
}

TEST(test_machine)
{
    struct trib_layout l;
    struct trib_drawing drawing = {.layout = &l};

    data_layout("dual.xml", &l);
    check_text(&drawing, "dual, Two Sockets 8-Core, 16 cores\n"
                         "├─ package 0\n"
                         "│  └─ NUMA node 0, 64 GiB\n"
                         "│     ├─ L3 cache 0, cores 0-7\n"
                         "│     └─ mlx5_0 (ib0)\n"
                         "└─ package 1\n"
                         "   └─ NUMA node 1, 64 GiB\n"
                         "      ├─ L3 cache 1, cores 8-15\n"
                         "      └─ mlx5_1 (ib1)\n");
    trib_layout_free(&l);
}

/* Devices and nodes that are in no package; caches that are not known. */
TEST(test_odd_machine)
{
    struct trib_layout_core cores[] = {{0, 0, 0, -1}, {1, 0, -1, -1}, {2, 1, 1, 0}};
    struct trib_layout_numa numa[] = {{.package = 0, .memory_bytes = 1 << 28},
                                      {.package = -1}};
    struct trib_layout_nic nics[] = {{.name = "a", .package = -1, .numa = -1},
                                     {.name = "b\n", .package = 0, .numa = -1},
                                     {.name = "c", .package = -1, .numa = 1}};
    const struct trib_layout l = {.host = "h",
                                  .machine = {.packages = 2, .l3_count = 1},
                                  .n_cores = 3,
                                  .n_numa = 2,
                                  .n_nics = 3,
                                  .cores = cores,
                                  .numa = numa,
                                  .nics = nics};
    struct trib_drawing drawing = {.layout = &l};

    check_text(&drawing, "h, 3 cores\n"
                         "├─ package 0\n"
                         "│  ├─ NUMA node 0, 0.25 GiB\n"
                         "│  │  └─ core 0\n"
                         "│  ├─ core 1\n"
                         "│  └─ b?\n"
                         "├─ package 1\n"
                         "│  └─ L3 cache 0, core 2\n"
                         "├─ NUMA node 1, 0 GiB\n"
                         "│  └─ c\n"
                         "└─ a\n");
}

/* A rank is drawn at the deepest level of its place that exists. */
TEST(test_ranks)
{
    struct trib_rank_place places[12];
    struct trib_layout l;
    struct trib_drawing drawing = {.layout = &l, .places = places, .n_places = 12};

    data_layout("dual.xml", &l);
    for (int rank = 0; rank < 12; rank++)
        trib_layout_place(&l, rank < 8 ? 2 * rank : 0, &places[rank]);
    places[1].l3 = -1;
    places[2].l3 = 99;
    places[3].numa = places[3].l3 = -1;
    places[4].package = -1;
    places[5].package = 0; /* which its cache is not in */
    for (int rank = 10; rank < 12; rank++)
        snprintf(places[rank].host, sizeof(places[rank].host), "other");
    check_text(&drawing, "dual, Two Sockets 8-Core, 16 cores, rank 4\n"
                         "├─ package 0, ranks 3 5\n"
                         "│  └─ NUMA node 0, 64 GiB, ranks 1-2\n"
                         "│     ├─ L3 cache 0, cores 0-7, ranks 0 8-9\n"
                         "│     └─ mlx5_0 (ib0)\n"
                         "└─ package 1\n"
                         "   └─ NUMA node 1, 64 GiB\n"
                         "      ├─ L3 cache 1, cores 8-15, ranks 6-7\n"
                         "      └─ mlx5_1 (ib1)\n"
                         "other, ranks 10-11\n");
    trib_layout_free(&l);
}

TEST(test_racks)
{
    struct trib_racks *racks =
        parse("SwitchName=top Switches=r[1-2]\nSwitchName=r1 Nodes=n[1-4]\n"
              "SwitchName=r2 Nodes=m[1-30]");
    struct trib_rank_place places[5] = {{.host = "n3"},
                                        {.host = "m7"},
                                        {.host = "n3"},
                                        {.host = "x"},
                                        {.host = "n1.there.org"}};
    struct trib_layout l;
    struct trib_drawing drawing = {
        .layout = &l, .racks = racks, .places = places, .n_places = 5};

    data_layout("mono.xml", &l);
    snprintf(l.host, sizeof(l.host), "n2");
    check_text(
        &drawing,
        "top\n"
        "├─ r1, 4 hosts\n"
        "│  ├─ n2, One Socket 6-Core, 6 cores\n"
        "│  │  └─ package 0\n"
        "│  │     └─ NUMA node 0, 16 GiB\n"
        "│  │        ├─ L3 cache 0, cores 0-5\n"
        "│  │        ├─ eno2\n"
        "│  │        └─ eno10\n"
        "│  ├─ n3, ranks 0 2\n"
        "│  ├─ n1.there.org, rank 4\n"
        "│  └─ n4\n"
        "└─ r2, 30 hosts\n"
        "   ├─ m7, rank 1\n"
        "   └─ m1 m2 m3 m4 m5 m6 m8 m9 m10 m11 m12 m13 m14 m15 m16 m17 m18 m19 m20 "
        "m21 and 9 more\n"
        "x, rank 3\n");
    trib_racks_free(racks);
    trib_layout_free(&l);
}

TEST(test_rates)
{
    struct trib_racks *racks = NULL;
    struct trib_drawing drawing = {0};

    assert_ok(trib_racks_read(data_path("ibnetdiscover.txt").text, NULL, NULL, &racks));
    drawing.racks = racks;
    check_text(&drawing, "spine1, 1 host\n"
                         "├─ storage1\n"
                         "├─ leaf1, 2 hosts, 100 Gb/s up\n"
                         "│  └─ n1 n2\n"
                         "├─ leaf2, 2 hosts, 100 Gb/s up\n"
                         "│  └─ n3 n4\n"
                         "└─ leaf3, 2 hosts, 100 Gb/s up\n"
                         "   └─ n5 n6\n");
    trib_racks_free(racks);
    drawing.racks = NULL;
    check_text(&drawing, "");
}

/* Many ranks that are not adjacent: the list is cut, with a count of the omitted
 * ones. */
TEST(test_many_ranks)
{
    static struct trib_rank_place places[400];
    struct trib_drawing drawing = {.places = places, .n_places = 400};

    for (int rank = 0; rank < 400; rank++)
        snprintf(places[rank].host, sizeof(places[rank].host), "n%d", rank % 2);
    check_text(
        &drawing,
        "n0, ranks 0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 32 34 36 and 181 more\n"
        "n1, ranks 1 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31 33 35 37 and 181 more\n");
}

/* Switches below switches, without an end. */
TEST(test_deep)
{
    static char text[TEXT_BYTES];
    static char tree[8 * TEXT_BYTES];
    struct trib_drawing drawing = {0};
    size_t n = 0;

    for (int i = 0; i < 200; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "SwitchName=s%d Switches=s%d\n", i, i + 1);
    snprintf(text + n, sizeof(text) - n, "SwitchName=s200 Nodes=n");
    struct trib_racks *racks = parse(text);
    drawing.racks = racks;
    tree[0] = '\0';
    assert_ok(trib_draw_text(&drawing, append, tree));
    assert_non_null(strstr(tree, "├─ s199\n"));
    tree[0] = '\0';
    assert_ok(trib_draw_dot(&drawing, append, tree));
    assert_non_null(strstr(tree, "label=\"s200\\n1 host\""));
    trib_racks_free(racks);
}

TEST(test_dot)
{
    static char text[TEXT_BYTES];
    struct trib_racks *racks = parse("r1: a b\nr2: c");
    struct trib_rank_place places[1] = {{.host = "x\"\\"}};
    struct trib_drawing drawing = {.racks = racks, .places = places, .n_places = 1};

    assert_ok(trib_draw_dot(&drawing, append, text));
    assert_string_equal(
        text, "graph topology {\n"
              "    node [fontname=\"sans-serif\", fontsize=10];\n"
              "    n0 [shape=ellipse, label=\"r1\\n2 hosts\"];\n"
              "    n1 [shape=box, penwidth=2, label=\"a b\"];\n"
              "    n0 -- n1;\n"
              "    n2 [shape=ellipse, label=\"r2\\n1 host\"];\n"
              "    n3 [shape=box, penwidth=2, label=\"c\"];\n"
              "    n2 -- n3;\n"
              "    n4 [shape=box, penwidth=2, label=\"x\\\"\\\\\\nrank 0\"];\n"
              "}\n");
    trib_racks_free(racks);
}
