/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layouts of machines that are not here: files of hwloc with a machine of two packages
 * and a device each (dual), one of two packages with four NUMA nodes and devices each
 * (octo), and one with two network cards without RDMA (mono); pair is for tests/comm.
 * Two are recordings of real machines: two packages and a device (mirage), and 16
 * packages in four NUMA nodes with two network cards each (bertha).
 */
#include "tests/topo/data_layout.h"
#include "topo/leaders.h"

/* The NUMA node of each device of octo. */
static const int octo_numa[8] = {3, 2, 1, 0, 7, 6, 5, 4};

static void check_nic(const struct trib_layout *l, int i, const char *name,
                      const char *netdev, int package, int numa)
{
    assert_string_equal(l->nics[i].name, name);
    assert_string_equal(l->nics[i].netdev, netdev);
    assert_int_equal(l->nics[i].package, package);
    assert_int_equal(l->nics[i].numa, numa);
}

TEST(test_machine)
{
    struct trib_layout l;
    struct trib_machine m;

    data_layout("octo.xml", &l);
    m = l.machine;
    trib_layout_free(&l);
    assert_int_equal(m.packages, 2);
    assert_int_equal(m.numa_nodes, 8);
    assert_int_equal(m.cores, 64);
    assert_int_equal(m.cores_allowed, 64);
    assert_int_equal(m.l3_count, 16);
    assert_string_equal(m.model, "Two Sockets 32-Core");
    trib_machine_read(&m);
    assert_true(m.cpus_allowed >= 1 && m.cpus_allowed <= m.cpus);
    assert_status(trib_layout_read("/nonexistent", NULL, &l), TRIB_ERR_INVALID);
}

TEST(test_dual)
{
    struct trib_layout l;

    data_layout("dual.xml", &l);
    assert_string_equal(l.host, "dual");
    assert_int_equal(l.n_cores, 16);
    assert_int_equal(l.n_numa, 2);
    assert_true(l.numa[1].memory_bytes == UINT64_C(64) << 30 && l.numa[1].package == 1);
    assert_int_equal(l.n_nics, 2); /* eno1 does not count where there is RDMA */
    check_nic(&l, 0, "mlx5_0", "ib0", 0, 0);
    check_nic(&l, 1, "mlx5_1", "ib1", 1, 1);
    for (int core = 0; core < 16; core++) {
        assert_int_equal(l.cores[core].cpu, core);
        assert_int_equal(l.cores[core].package, core / 8);
        assert_int_equal(l.cores[core].l3, core / 8);
        assert_int_equal(trib_layout_nic(&l, core), core / 8);
        assert_int_equal(trib_layout_distance(&l, core, core / 8), TRIB_DISTANCE_NUMA);
        assert_int_equal(trib_layout_distance(&l, core, !(core / 8)),
                         TRIB_DISTANCE_MACHINE);
    }
    trib_layout_free(&l);
    trib_layout_free(&l);
}

/* Places of ranks that are bound to cores, to a NUMA node, to a package, or unbound. */
TEST(test_bound)
{
    struct trib_layout l;
    struct trib_rank_place place;
    cpu_set_t cpus;

    data_layout("octo.xml", &l);
    for (int first = 0; first < 64; first += 4) {
        CPU_ZERO(&cpus);
        for (int i = 0; i < 4; i++)
            CPU_SET(first + i, &cpus);
        trib_layout_bound(&l, &cpus, &place);
        assert_true(place.package == first / 32 && place.numa == first / 8 &&
                    place.l3 == first / 4);
        assert_string_equal(place.nic, l.nics[trib_layout_nic(&l, first)].name);
    }
    CPU_ZERO(&cpus);
    for (int i = 32; i < 64; i++)
        CPU_SET(i, &cpus);
    trib_layout_bound(&l, &cpus, &place);
    assert_true(place.package == 1 && place.numa == -1 && place.l3 == -1 &&
                place.nic[0]);
    CPU_SET(0, &cpus);
    trib_layout_bound(&l, &cpus, &place);
    assert_true(place.package == -1 && !place.nic[0]);
    CPU_ZERO(&cpus);
    trib_layout_bound(&l, &cpus, &place);
    assert_true(place.package == -1 && place.numa == -1 && !place.nic[0]);
    trib_layout_free(&l);
}

TEST(test_octo)
{
    struct trib_layout l;

    data_layout("octo.xml", &l);
    assert_int_equal(l.n_nics, 8);
    check_nic(&l, 5, "mlx5_5", "ib5", 1, 6);
    for (int core = 0; core < 64; core++) {
        assert_int_equal(l.cores[core].numa, core / 8);
        assert_int_equal(l.cores[core].l3, core / 4);
        for (int nic = 0; nic < 8; nic++)
            assert_int_equal(trib_layout_distance(&l, core, nic),
                             octo_numa[nic] == core / 8        ? TRIB_DISTANCE_NUMA
                             : octo_numa[nic] / 4 == core / 32 ? TRIB_DISTANCE_PACKAGE
                                                               : TRIB_DISTANCE_MACHINE);
        assert_int_equal(octo_numa[trib_layout_nic(&l, core)], core / 8);
    }
    trib_layout_free(&l);
}

/* Devices that are as near: a block of cores each. */
TEST(test_mono)
{
    struct trib_layout l;

    data_layout("mono.xml", &l);
    assert_int_equal(l.n_nics, 2);
    check_nic(&l, 0, "eno2", "", 0, 0); /* 2 before 10 */
    check_nic(&l, 1, "eno10", "", 0, 0);
    assert_false(l.nics[0].rdma);
    for (int core = 0; core < 6; core++) {
        assert_int_equal(l.cores[core].cpu, 2 * core);
        assert_int_equal(trib_layout_nic(&l, core), core / 3);
    }
    l.nics[1].numa = l.nics[1].package = -1; /* then the other one is nearer */
    assert_int_equal(trib_layout_nic(&l, 5), 0);
    l.nics[0].numa = l.nics[0].package = -1;
    assert_int_equal(trib_layout_nic(&l, 5), 1);
    l.n_nics = 0;
    assert_int_equal(trib_layout_nic(&l, 5), -1);
    trib_layout_free(&l);
}

/* Two hosts with a rank on every fourth core: their groups and leaders. */
TEST(test_groups)
{
    struct trib_rank_place places[32];
    struct trib_groups groups;
    struct trib_leaders leaders;
    struct trib_leaders_ask ask;
    struct trib_layout l;

    data_layout("octo.xml", &l);
    for (int rank = 0; rank < 32; rank++) {
        trib_layout_place(&l, rank % 16 * 4, &places[rank]);
        places[rank].host[0] = (char)('A' + rank / 16);
    }
    assert_string_equal(places[3].host, "Acto");
    assert_string_equal(places[3].nic, "mlx5_2");
    assert_status(trib_groups_make(places, 32, "numa", NULL, &groups), TRIB_OK);
    assert_int_equal(groups.n, 16);
    for (int rank = 0; rank < 32; rank++)
        assert_int_equal(groups.of_rank[rank], rank / 2);
    trib_groups_free(&groups);
    assert_status(trib_groups_make(places, 32, "nic", NULL, &groups), TRIB_OK);
    assert_int_equal(groups.n, 16);
    trib_groups_free(&groups);
    assert_status(trib_groups_make(places, 32, "auto", NULL, &groups), TRIB_OK);
    assert_int_equal(groups.n, 2);
    trib_leaders_ask_of(&groups, places, &ask);
    assert_int_equal(ask.nics, 8);
    ask.bytes = 1 << 20;
    assert_int_equal(trib_leaders_choose(&ask) % 8, 0);
    assert_status(trib_leaders_appoint(&groups, places, 8, NULL, &leaders), TRIB_OK);
    for (int i = 0; i < 16; i++)
        assert_int_equal(leaders.rank[i], i / 8 * 16 + 2 * octo_numa[i % 8]);
    trib_leaders_free(&leaders);
    trib_groups_free(&groups);
    trib_layout_free(&l);
}

/* Its device is near the first package; processors are numbered by turns. */
TEST(test_mirage)
{
    struct trib_layout l;
    struct trib_rank_place place;
    cpu_set_t cpus;

    data_layout("mirage.xml", &l);
    assert_string_equal(l.host, "mirage004");
    assert_int_equal(l.n_cores, 12);
    assert_int_equal(l.machine.cpus, 24);
    assert_int_equal(l.n_numa, 2);
    assert_int_equal(l.n_nics, 1); /* Ethernet cards do not count where there is RDMA */
    check_nic(&l, 0, "mlx4_0", "eth2", 0, 0);
    for (int core = 0; core < 12; core++) {
        assert_int_equal(l.cores[core].package, core / 6);
        assert_int_equal(l.cores[core].numa, core / 6);
        assert_int_equal(trib_layout_distance(&l, core, 0),
                         core < 6 ? TRIB_DISTANCE_NUMA : TRIB_DISTANCE_MACHINE);
        CPU_ZERO(&cpus);
        CPU_SET(l.cores[core].cpu, &cpus);
        trib_layout_bound(&l, &cpus, &place);
        assert_int_equal(place.numa, core / 6);
        assert_string_equal(place.nic, "mlx4_0");
    }
    trib_layout_free(&l);
}

/* NUMA nodes span four packages each; the cores of a node divide its two devices. */
TEST(test_bertha)
{
    enum { CORES = 96 };
    struct trib_rank_place places[CORES];
    struct trib_groups groups;
    struct trib_layout l;

    data_layout("bertha.xml", &l);
    assert_int_equal(l.n_cores, CORES);
    assert_int_equal(l.machine.packages, 16);
    assert_int_equal(l.n_numa, 4);
    assert_int_equal(l.n_nics, 8);
    for (int core = 0; core < CORES; core++) {
        trib_layout_place(&l, core, &places[core]);
        assert_int_equal(places[core].package, core / 6);
        assert_int_equal(places[core].numa, core / 24);
        assert_int_equal(trib_layout_nic(&l, core), core / 12);
    }
    check_nic(&l, 7, "eth7", "", -1, 3);
    assert_status(trib_groups_make(places, CORES, "numa", NULL, &groups), TRIB_OK);
    assert_int_equal(groups.n, 4);
    trib_groups_free(&groups);
    assert_status(trib_groups_make(places, CORES, "nic", NULL, &groups), TRIB_OK);
    assert_int_equal(groups.n, 8);
    for (int core = 0; core < CORES; core++)
        assert_int_equal(groups.of_rank[core], core / 12);
    trib_groups_free(&groups);
    trib_layout_free(&l);
}

static void check_sane(const struct trib_layout *l)
{
    assert_true(l->host[0] && l->n_cores >= 1 && l->n_cores == l->machine.cores);
    for (int i = 0; i < l->n_cores; i++) {
        struct trib_rank_place place;
        trib_layout_place(l, i, &place);
        assert_in_range(l->cores[i].package + 1, 0, l->machine.packages);
        assert_in_range(l->cores[i].numa + 1, 0, l->n_numa);
        assert_in_range(trib_layout_nic(l, i) + 1, 0, l->n_nics);
    }
}

TEST(test_here)
{
    struct trib_layout l;

    assert_status(trib_layout_read(NULL, NULL, &l), TRIB_OK);
    check_sane(&l);
    trib_layout_free(&l);
}

static void check_wrong(const char *path, const char *words)
{
    struct trib_layout l;
    struct trib_error err = {0};

    assert_status(trib_layout_read(path, &err, &l), TRIB_ERR_INVALID);
    if (!strstr(err.text, words))
        fail_msg("\"%s\", not \"%s\"", err.text, words);
}

TEST(test_errors)
{
    struct trib_layout l;

    data_layout("mono.xml", &l); /* or it is skipped */
    trib_layout_free(&l);
    check_wrong("/nonexistent.xml", "/nonexistent.xml cannot be read: No such file");
    check_wrong(data_path("racks.txt").text,
                "does not describe a machine: create it with lstopo");
    check_wrong("/", "does not describe a machine");
}
