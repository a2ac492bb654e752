/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "tests/topo/data.h"
#include "topo/racks/racks.h"

#define TEXT_BYTES 4096

static struct trib_racks *parse(const char *text, const char *format)
{
    const struct trib_racks_source source = {"test", text, strlen(text), format, 0};
    struct trib_racks *racks = NULL;
    struct trib_error err = {0};
    trib_status_t status = trib_racks_parse(&source, &err, &racks);

    if (status != TRIB_OK)
        fail_msg("%s", err.text);
    return racks;
}

static struct trib_racks *read_data(const char *name)
{
    struct trib_racks *racks = NULL;
    struct trib_error err = {0};

    if (trib_racks_read(data_path(name).text, NULL, &err, &racks) != TRIB_OK)
        fail_msg("%s", err.text);
    return racks;
}

static void check_error(const char *text, const char *format, const char *words)
{
    const struct trib_racks_source source = {"racks.txt", text, strlen(text), format,
                                             0};
    struct trib_racks *racks;
    struct trib_error err = {0};

    assert_status(trib_racks_parse(&source, &err, &racks), TRIB_ERR_INVALID);
    if (!strstr(err.text, words))
        fail_msg("\"%s\", not \"%s\"", err.text, words);
}

/* Append the tree as "core(pod1(leaf1: n1 n2) pod2)", with hosts after the colon. */
static void append_tree(const struct trib_racks *r, int parent, char *text)
{
    for (int i = 0; i < r->n_switches; i++) {
        const char *separator = ":";
        if (r->switches[i].parent != parent)
            continue;
        char last = text[strlen(text) - 1];
        sprintf(text + strlen(text), "%s%s", last == '(' ? "" : " ",
                r->switches[i].name);
        for (int h = 0; h < r->n_hosts; h++) {
            if (r->hosts[h].rack != i)
                continue;
            sprintf(text + strlen(text), "%s%s", separator, r->hosts[h].name);
            separator = ",";
        }
        strcat(text, "(");
        append_tree(r, i, text);
        if (text[strlen(text) - 1] == '(')
            text[strlen(text) - 1] = '\0';
        else
            strcat(text, ")");
    }
}

static void check_tree(const struct trib_racks *r, const char *expected)
{
    char text[TEXT_BYTES] = "(";

    for (int i = 0; i < r->n_switches; i++) {
        const struct trib_racks_switch *s = &r->switches[i];
        int hosts = 0;
        assert_true(s->parent < i);
        assert_int_equal(s->depth,
                         s->parent < 0 ? 0 : r->switches[s->parent].depth + 1);
        for (int h = 0; h < r->n_hosts; h++)
            hosts += r->hosts[h].rack == i;
        assert_int_equal(hosts, s->hosts);
    }
    append_tree(r, -1, text);
    assert_string_equal(text + 1, expected);
}

static void check_text(const char *text, const char *format, const char *expected)
{
    struct trib_racks *racks = parse(text, NULL);

    assert_string_equal(racks->format, format);
    check_tree(racks, expected);
    trib_racks_free(racks);
}

TEST(test_slurm)
{
    struct trib_racks *r = read_data("topology.conf");

    assert_string_equal(r->format, "slurm");
    check_tree(r,
               "core1(pod1(leaf1:n001,n002,n003,n004,n009 leaf2:n005,n006,n007,n008) "
               "pod2(leaf3:r2c1,r2c2,r3c1,r3c2 leaf4:gpu1,gpu2,gpu10))");
    assert_string_equal(r->switches[trib_racks_find(r, "n009")].name, "leaf1");
    assert_string_equal(r->switches[trib_racks_find(r, "gpu10.cluster.local")].name,
                        "leaf4");
    assert_int_equal(trib_racks_find(r, "n9"), -1);
    assert_int_equal(trib_racks_find(r, ""), -1);
    trib_racks_free(r);
}

TEST(test_slurm_text)
{
    check_text("SwitchName = \"a\"  Nodes = n[8-11]\r\nswitchNAME=b nodes=m\n"
               "SwitchName=t Switches=a,b",
               "slurm", "t(a:n8,n9,n10,n11 b:m)");
    check_text(
        "# a comment \\\nSwitchName=a \\\n Nodes=n1,\\\nn3\nSwitchName=b Nodes=n2",
        "slurm", "a:n1,n3 b:n2");
    check_text(
        "SwitchName=a Nodes=n1,n1\nSwitchName=b Nodes=n2\nSwitchName=c Switches=b\n"
        "SwitchName=d Switches=b,a\nSwitchName=e Switches=e0\n"
        "SwitchName=e0 Switches=e1\nSwitchName=e1 Nodes=n3",
        "slurm", "c(b:n2) d(a:n1) e(e0(e1:n3))");
}

TEST(test_plain)
{
    struct trib_racks *r = read_data("racks.txt");

    assert_string_equal(r->format, "hosts");
    check_tree(r,
               "cellar:login1 row1(row1/rack1:n01,n02,n03,n04 row1/rack2:n05,n06,n07) "
               "row2(row2/rack9:n11,n12,n13 row2/rack10:n08,n09,n10)");
    trib_racks_free(r);
    r = parse("r1: a b.x.org\nr2: b c.x.org d.y.org d.x.org", NULL);
    assert_int_equal(trib_racks_find(r, "b.x.org"), 0);
    assert_int_equal(trib_racks_find(r, "b.z.org"), 1);
    assert_int_equal(trib_racks_find(r, "c"), 1);
    assert_int_equal(trib_racks_find(r, "a.anything"), 0);
    trib_racks_free(r);
    check_text("r: a b \\\n c", "hosts", "r:a,b,c");
}

TEST(test_fabric)
{
    struct trib_racks *r = read_data("ibnetdiscover.txt");

    assert_string_equal(r->format, "ibnetdiscover");
    check_tree(r, "spine1:storage1(leaf1:n1,n2 leaf2:n3,n4 leaf3:n5,n6)");
    for (int i = 1; i < r->n_switches; i++)
        assert_int_equal(r->switches[i].Gbps, 100);
    for (int i = 0; i < r->n_hosts; i++)
        assert_int_equal(r->hosts[i].Gbps, 100);
    trib_racks_free(r);
}

#define SWITCH(id, name) \
    "Switch\t36 \"S-" id "\"\t\t# \"" name "\" base port 0 lid 1 lmc 0\n"
#define TO(port, id, rest) "[" #port "]\t\"" id "\"[1]\t\t# " rest "\n"

/* Leaf 1 has more bandwidth to the second spine, leaf 2 as much to both. */
TEST(test_fabric_bandwidth)
{
    static const char text[] = SWITCH("s1", "A B C") TO(1, "S-l1", "\"x\" lid 2 4xEDR")
        TO(2, "S-l2", "\"x\" lid 2 4xEDR") SWITCH("s2", "A B C")
            TO(1, "S-l1", "\"x\" lid 2 4xEDR") TO(2, "S-l2", "\"x\" lid 2 4xEDR") TO(
                3, "S-l1", "\"x\" lid 2 4xHDR") SWITCH("s3", "A B C")
                TO(1, "S-l3", "\"x\" lid 2 4xEDR") SWITCH("c", "MF0;core:X/U1") TO(
                    1, "S-s1", "\"x\" lid 2 4xEDR") TO(2, "S-s2", "\"x\" lid 2 4xEDR")
                    TO(3, "S-s3", "\"x\" lid 2 4xEDR") SWITCH("l1", "leaf one") TO(
                        1, "H-a", "\"n1 mlx5_0\" lid 9 2xFDR") TO(2, "S-s1",
                                                                  "\"x\" lid 1 4xEDR")
                        TO(3, "S-s2", "\"x\" lid 1 4xEDR") TO(4, "S-s2",
                                                              "\"x\" lid 1 4xHDR")
                            TO(5, "S-l1", "\"loop\" lid 1 4xHDR")
                                SWITCH("l2", "MF0;leaf:X/U2") TO(1, "H-b",
                                                                 "\"n2\" lid 9 4xSDR")
                                    TO(2, "H-b2", "\"n1 mlx5_1\" lid 9 4xFDR10")
                                        TO(3, "S-s1", "\"x\" lid 1 4xEDR")
                                            TO(4, "S-s2", "\"x\" lid 1 4xEDR")
                                                SWITCH("l3", "MF0;leaf:X/U3") TO(
                                                    1, "H-d", "\"n4 HCA-1\" lid 1")
                                                    TO(2, "S-s3", "\"x\" lid 1 4xEDR")
                                                        SWITCH("l4", "alone") TO(
                                                            1, "H-e",
                                                            "\"n5 HCA-1\" lid 1 4xODD");
    struct trib_racks *r = parse(text, NULL);

    check_tree(r, "alone:n5 core(S-s1(MF0;leaf:X/U2:n1,n2) S-s3(MF0;leaf:X/U3:n4))");
    /* n1 has 40 Gb/s to l2, 28 to l1; without its host l1 is left out */
    assert_int_equal(r->hosts[0].Gbps, 40);
    assert_int_equal(r->hosts[1].Gbps, 10);
    assert_int_equal(r->hosts[2].Gbps, 0);
    assert_int_equal(r->hosts[3].Gbps, 0);
    trib_racks_free(r);
    char *changed = strdup(text); /* n1's second adapter moves to a host n3 */
    assert_non_null(changed);
    memcpy(strstr(changed, "n1 mlx5_1"), "n3", 2);
    r = parse(changed, NULL);
    check_tree(r, "alone:n5 core(S-s1(MF0;leaf:X/U2:n2,n3) S-s2(leaf one:n1) "
                  "S-s3(MF0;leaf:X/U3:n4))");
    assert_int_equal(r->switches[trib_racks_find(r, "n1")].Gbps, 300);
    trib_racks_free(r);
    free(changed);
}

/* Two spines that are equal but for their rates. */
TEST(test_fabric_root)
{
    check_text(SWITCH("a", "a") TO(1, "S-l", "\"x\" lid 2 4xEDR")
                   TO(2, "S-m", "\"x\" lid 2 4xEDR") SWITCH("b", "b")
                       TO(1, "S-l", "\"x\" lid 2 4xHDR")
                           TO(2, "S-m", "\"x\" lid 2 4xEDR") SWITCH("l", "l")
                               TO(1, "H-1", "\"n1\" lid 2 4xEDR") SWITCH("m", "m")
                                   TO(1, "H-2", "\"n2\" lid 2 4xEDR")
                                       TO(2, "H-3", "\"n3\" lid 2 4xEDR"),
               "ibnetdiscover", "b(l:n1 m:n2,n3)");
}

TEST(test_fabric_equal_links)
{
    struct trib_racks *r =
        parse(SWITCH("b", "b") TO(1, "H-2", "\"n1 mlx5_1\" lid 2 4xEDR")
                  SWITCH("a", "a") TO(1, "H-1", "\"n1 mlx5_10\" lid 2 4xEDR"),
              NULL);

    check_tree(r, "b:n1"); /* mlx5_1 is the first device */
    trib_racks_free(r);
}

TEST(test_formats)
{
    check_text("\n# rack\n  \n a: b", "hosts", "a:b");
    check_text("\n# SwitchName=a\na: b", "hosts", "a:b");
    check_error("", NULL, "racks.txt: the file is empty");
    check_error("\n# nothing\n", NULL, "the file is empty");
    check_error("a: b", "slrum", "did you mean \"slurm\"?");
    check_error("a: b", "slurm", "line 1: \"a: b\" is not key=value");
    check_error("a: b", "ibnetdiscover", "no switch found");
    check_error("SwitchName=a Nodes=b", "hosts", "line 1: ");
}

TEST(test_errors_slurm)
{
    check_error("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1", NULL,
                "line 2: host n1 is on b, but line 1 has it on a; keep only one");
    check_error("SwitchName=a Nodes=n1\n#\nSwitchName=a Nodes=n2", NULL,
                "line 3: switch a is already on line 1");
    check_error("SwitchName=leaf1 Nodes=n1\nSwitchName=t Switches=laef1", NULL,
                "line 2: switch laef1 is not defined; did you mean leaf1?");
    check_error(
        "SwitchName=a Nodes=n\nSwitchName=x Switches=y\nSwitchName=y Switches=x", NULL,
        "line 2: switch x is in a cycle of switches");
    check_error("SwitchName=a Switches=a", NULL, "line 1: switch a is below itself");
    check_error("SwitchName=a Nodes=n\nx\033[2Jy", "slurm", "\"x?[2Jy\" is not key");
    check_error("SwitchName=a", NULL, "line 1: switch a has no hosts or switches");
    check_error("Nodes=n1", NULL, "line 1: no switch is named");
    check_error("SwitchName=a Node=n1", NULL, "did you mean Nodes?");
    check_error("SwitchName=a Nodes=n1 Nodes=n2", NULL, "Nodes occurs twice");
    check_error("SwitchName=a Nodes=\"n1", NULL, "is not key=value");
    check_error("SwitchName=a[1] Nodes=n1", NULL, "is not a switch name");
    check_error("SwitchName=a Nodes=", NULL, "has an empty name");
    check_error("SwitchName=a Nodes=n[1-", NULL, "has a [ without its ]");
    check_error("SwitchName=a Nodes=n[0-999999999]", NULL, "has too many names");
}

TEST(test_errors_other)
{
    char zero[] = "a: b\0c";
    const struct trib_racks_source source = {"racks.txt", zero, sizeof(zero), NULL, 0};
    struct trib_racks *racks;
    struct trib_error err = {0};

    check_error("r1: a\n\nr2: a", NULL,
                "line 3: host a is on r2, but line 1 has it on r1");
    check_error("a b c", NULL, "line 1: \"a ...\" names no rack");
    check_error("host", NULL, "line 1: \"host\" names no rack");
    check_error("r1:", NULL, "rack r1 has no host");
    check_error(": a", NULL, "one name must precede the colon");
    check_error("/r1: a", NULL, "is not a rack name");
    check_error("r1: a[", NULL, "has a [ without its ]");
    check_error(SWITCH("a", "x") TO(1, "S-b", "\"y\" lid 1 4xEDR"), "ibnetdiscover",
                "no adapter is described");
    check_error(SWITCH("a", "x") TO(1, "H-1", "\"n1 m\" lid 1 4xEDR")
                    TO(1, "S-b", "\"y\" lid 1 4xEDR"),
                NULL, "line 3: switch S-b has no section");
    check_error(SWITCH("a", "x") TO(1, "H-1", "\"n1 m\" lid 1 4xEDR") SWITCH("a", "x"),
                NULL, "line 3: switch S-a already has a section at line 1");
    check_error(SWITCH("a", "x") "[1] nothing", NULL,
                "line 2: not a line of ibnetdiscover");
    assert_status(trib_racks_parse(&source, &err, &racks), TRIB_ERR_INVALID);
    assert_non_null(strstr(err.text, "zero byte"));
    trib_error_clear(&err);
    assert_status(trib_racks_read("/nonexistent/racks", NULL, &err, &racks),
                  TRIB_ERR_SYSTEM);
    assert_non_null(strstr(err.text, "/nonexistent/racks: No such file"));
    trib_error_clear(&err);
    assert_status(trib_racks_read("/", NULL, &err, &racks), TRIB_ERR_SYSTEM);
}

/* Parsing a large cluster is fast. */
TEST(test_many)
{
    enum { RACKS = 2000, BYTES = 200000 };
    char *text = calloc(1, BYTES);
    size_t n = 0;

    assert_non_null(text);
    for (int i = 0; i < RACKS; i++)
        n += (size_t)snprintf(text + n, BYTES - n,
                              "SwitchName=s%d Nodes=r%dn[01-32] %s%d\n", i, i,
                              i + 1 < RACKS ? "Switches=s" : "LinkSpeed=", i + 1);
    struct trib_racks *r = parse(text, NULL); /* each below the one before */
    assert_int_equal(r->n_hosts, 32 * RACKS);
    assert_int_equal(r->switches[RACKS - 1].depth, RACKS - 1);
    assert_int_equal(trib_racks_find(r, "r1999n32"), RACKS - 1);
    trib_racks_free(r);
    free(text);
}
