/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/doctor/doctor_parts.h"
#include "inspect/doctor/doctor_report.h"
#include "tests/harness/fakeroot.h"

#define HW "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/"

struct lines {
    int n;
    char line[64][1200];
};

static void note(void *arg, const trib_finding_t *f)
{
    static const char *const verdicts[] = {"ok", "warn", "FAIL"};
    struct lines *lines = arg;

    if (lines->n < 64)
        snprintf(lines->line[lines->n++], sizeof(lines->line[0]), "%s|%s|%s|%s|%s",
                 verdicts[f->verdict], f->where, f->topic, f->text, f->cure);
}

/* Return the number of lines with this prefix and these words. */
static int count(const struct lines *lines, const char *begin, const char *words)
{
    int n = 0;

    for (int i = 0; i < lines->n; i++)
        n += strncmp(lines->line[i], begin, strlen(begin)) == 0 &&
             strstr(lines->line[i], words) != NULL;
    return n;
}

static trib_verdict_t look(const struct fakeroot *root, struct lines *lines)
{
    trib_doctor_opts_t opts = TRIB_DOCTOR_OPTS_INIT;
    trib_verdict_t worst = TRIB_VERDICT_OK;
    trib_opts_t join = sized(trib_opts_t, .ranks = 1, .rank_plus_1 = 1);

    opts.join = &join;
    opts.folder = root ? root->path : NULL;
    lines->n = 0;
    assert_status(trib_doctor(&opts, note, lines, &worst), TRIB_OK);
    assert_true(lines->n > 0);
    return worst;
}

static const char limits[] =
    "Limit                     Soft Limit           Hard Limit\n"
    "Max file size             %s            unlimited            bytes\n"
    "Max open files            %d                   65536 files\n"
    "Max locked memory         %s                   8388608 bytes";

static void write_limits(const struct fakeroot *root, const char *file, int files,
                         const char *memlock)
{
    char text[512];

    snprintf(text, sizeof(text), limits, file, files, memlock);
    fakeroot_write(root, "/proc/self/limits", text);
}

/* A host with one good RoCE port. */
static void make_host(struct fakeroot *root)
{
    fakeroot_make(root);
    fakeroot_rdma(root, "mlx5_0", "Ethernet", "4: ACTIVE");
    fakeroot_gid(root, "mlx5_0", 0, "0000:0000:0000:0000:0000:ffff:0a4d:0001",
                 "RoCE v2", "eth2");
    fakeroot_write(root, "/sys/class/net/eth2/mtu", "9000");
    fakeroot_write(root, "/sys/class/net/eth2/operstate", "up");
    fakeroot_write(root,
                   "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                   "tsc");
    fakeroot_write(root, "/dev/shm/nothing", "");
    write_limits(root, "unlimited", 4096, "unlimited");
}

TEST(test_this_host)
{
    static struct lines lines;

    look(NULL, &lines);
    assert_int_equal(count(&lines, "ok||version|", trib_version()), 1);
    assert_int_equal(count(&lines, "ok||shm|", "opens"), 1);
    assert_int_equal(count(&lines, "ok||tcp|", "opens"), 1);
}

TEST(test_good_host)
{
    static struct lines lines;
    struct fakeroot root;

    make_host(&root);
    assert_int_not_equal(look(&root, &lines), TRIB_VERDICT_FAIL);
    assert_int_equal(
        count(&lines, "ok||rdma|", "mlx5_0 port 1: Ethernet, ACTIVE/LinkUp"), 1);
    assert_int_equal(count(&lines, "ok||rdma|", "active MTU 4096"), 1);
    assert_int_equal(count(&lines, "ok||links|", "eth2 9000"), 1);
    assert_int_equal(count(&lines, "ok||memlock|", "unlimited"), 1);
    assert_int_equal(count(&lines, "ok||open files|", "4096"), 1);
    assert_int_equal(count(&lines, "ok||file size|", "unlimited"), 1);
    assert_int_equal(count(&lines, "ok||clock|", "tsc"), 1);
    fakeroot_remove(&root);
}

/* Port counters are reported. If one grows during the checks, a warning is added. */
TEST(test_counters)
{
    static struct trib_doctor d;
    static struct lines lines;
    struct fakeroot root;
    trib_finding_t f;

    make_host(&root);
    fakeroot_write(&root, HW "rp_cnp_handled", "3");
    fakeroot_write(&root, HW "local_ack_timeout_err", "0");
    (void)look(&root, &lines);
    assert_int_equal(
        count(&lines, "ok||rdma counters|mlx5_0 port 1: cnp_handled 3|", ""), 1);
    assert_int_equal(count(&lines, "warn||rdma counters|", ""), 0);

    d.folder = root.path;
    trib_report_init(&d.report);
    trib_doctor_counters_begin(&d);
    fakeroot_write(&root, HW "rp_cnp_handled", "9");
    trib_doctor_counters_end(&d); /* normal with ECN */
    fakeroot_write(&root, HW "local_ack_timeout_err", "2");
    trib_doctor_counters_end(&d);
    lines.n = 0;
    for (size_t at = 0; trib_report_next(&d.report, &at, &f);)
        note(&lines, &f);
    assert_int_equal(lines.n, 2);
    assert_int_equal(count(&lines, "warn||rdma counters|mlx5_0 port 1: ",
                           "local_ack_timeout grew by 2 "),
                     1);
    trib_report_free(&d.report);
    fakeroot_remove(&root);
}

TEST(test_bad_host)
{
    static struct lines lines;
    struct fakeroot root;

    make_host(&root);
    fakeroot_rdma(&root, "mlx5_1", "Ethernet",
                  "4: ACTIVE"); /* no GID, no network device */
    fakeroot_rdma(&root, "mlx5_2", "InfiniBand", "2: INIT");
    fakeroot_delete(&root, "/dev/infiniband/uverbs2");
    fakeroot_rdma(&root, "siw0", "Ethernet", "4: ACTIVE");
    fakeroot_write(&root, "/sys/class/infiniband/siw0/node_type", "4: RNIC");
    fakeroot_write(&root, "/sys/fs/cgroup/rdma.max",
                   "mlx5_0 hca_handle=2 hca_object=max\n"
                   "mlx5_1 hca_handle=max hca_object=max\n");
    fakeroot_write(&root, "/sys/class/net/eth2/mtu", "1500");
    fakeroot_write(&root, "/sys/class/net/eth2/operstate", "down");
    fakeroot_write(&root, "/sys/fs/cgroup/cpu.max", "150000 100000");
    fakeroot_write(&root, "/sys/fs/cgroup/memory.max", "134217728");
    fakeroot_write(&root, "/sys/fs/cgroup/memory.current", "0");
    fakeroot_write(&root, "/proc/meminfo", "MemAvailable: 8388608 kB");
    fakeroot_write(&root,
                   "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                   "hpet");
    fakeroot_write(&root, "/run/.containerenv", "");
    write_limits(&root, "1048576", 20, "65536");
    assert_int_equal(look(&root, &lines), TRIB_VERDICT_FAIL);
    assert_int_equal(count(&lines, "FAIL||rdma|", "mlx5_1 port 1 has no GID"), 1);
    assert_int_equal(count(&lines, "FAIL||rdma|", "mlx5_2 has no device file"), 1);
    assert_int_equal(count(&lines, "warn||rdma|mlx5_2 port 1", "opensm"), 1);
    assert_int_equal(count(&lines, "warn||rdma|", "RDMA packets of 1024"), 1);
    assert_int_equal(count(&lines, "warn||rdma|siw0 is an iWARP device", ""), 1);
    assert_int_equal(count(&lines, "FAIL||rdma|siw0 port 1", ""), 0);
    assert_int_equal(count(&lines, "ok||rdma|verbs:cache ", ""), 1);
    assert_int_equal(
        count(&lines, "warn||rdma|", "objects: mlx5_0 hca_handle=2 hca_object=max ("),
        1);
    assert_int_equal(count(&lines, "warn||links|", "ip link set"), 1);
    assert_int_equal(
        count(&lines, "FAIL||memlock|64 KiB may be locked, ", "ulimit -l unlimited"),
        1);
    assert_int_equal(count(&lines, "FAIL||open files|20 files", "ulimit -n"), 1);
    assert_int_equal(
        count(&lines, "warn||file size|files are limited to 1024 KiB", "ulimit -f"), 1);
    assert_int_equal(count(&lines, "ok||container|Podman", ""), 1);
    assert_int_equal(count(&lines, "warn||cpu quota|1.5 CPUs", ""), 1);
    assert_int_equal(
        count(&lines,
              "warn||memory|the control group of this process is limited to 0.1 GiB "
              "(/sys/fs/cgroup/memory.max), and 0.1 GiB are left",
              "raise the limit"),
        1);
    assert_int_equal(count(&lines, "ok||memory|8.0 GiB of the host", ""), 1);
    assert_int_equal(count(&lines, "warn||clock|hpet", "clocksource=tsc"), 1);
    fakeroot_remove(&root);
}

TEST(test_no_active_port)
{
    static struct lines lines;
    struct fakeroot root;

    fakeroot_make(&root);
    fakeroot_rdma(&root, "mlx4_0", "InfiniBand", "1: DOWN");
    assert_int_equal(look(&root, &lines), TRIB_VERDICT_FAIL);
    assert_int_equal(count(&lines, "FAIL||rdma|none of the 1 RDMA ports", ""), 1);
    fakeroot_remove(&root);
}

TEST(test_impossible_settings)
{
    static struct lines lines;
    trib_doctor_opts_t opts = TRIB_DOCTOR_OPTS_INIT;
    trib_opts_t join = TRIB_OPTS_INIT;
    trib_verdict_t worst = TRIB_VERDICT_OK;

    join.config = "window=much";
    opts.join = &join;
    lines.n = 0;
    assert_status(trib_doctor(&opts, note, &lines, &worst), TRIB_OK);
    assert_int_equal(worst, TRIB_VERDICT_FAIL);
    assert_int_equal(count(&lines, "FAIL|rank", "window"), 1);
    assert_status(trib_doctor(&opts, NULL, NULL, NULL), TRIB_ERR_INVALID);
    opts.size = 1;
    assert_status(trib_doctor(&opts, note, &lines, &worst), TRIB_ERR_INVALID);
}

/* Every pair of ranks is paired once, and pairing is symmetric. */
TEST(test_rounds)
{
    for (int size = 1; size <= 33; size++) {
        bool met[33][33] = {{false}};
        int pairs = 0;
        for (int k = 0; k < trib_doctor_rounds(size); k++) {
            for (int r = 0; r < size; r++) {
                int partner = trib_doctor_partner(r, size, k);
                assert_in_range(partner, 0, size - 1);
                assert_int_equal(trib_doctor_partner(partner, size, k), r);
                if (partner == r)
                    continue;
                assert_false(met[r][partner]);
                met[r][partner] = true;
                pairs++;
            }
        }
        assert_int_equal(pairs, size * (size - 1));
    }
}

TEST(test_merge)
{
    static struct lines lines;
    const struct trib_report_place places[] = {{"a", 0}, {"a", 0}, {"b", 2}};
    struct trib_report all[3], merged;
    trib_finding_t f;

    trib_report_init(&merged);
    for (int r = 0; r < 3; r++) {
        trib_report_init(&all[r]);
        trib_report_say(&all[r], TRIB_VERDICT_OK, "same", "", "as %s", "everywhere");
    }
    trib_report_say(&all[1], TRIB_VERDICT_WARN, "second", "mend it",
                    "rank 1 of host a");
    trib_report_say(&all[2], TRIB_VERDICT_FAIL, "other", "", "host b alone");
    all[0].where = "*";
    trib_report_say(&all[0], TRIB_VERDICT_OK, "job", "", "all agree");
    trib_report_merge(all, places, 3, &merged);
    lines.n = 0;
    for (size_t at = 0; trib_report_next(&merged, &at, &f);)
        note(&lines, &f);
    assert_int_equal(lines.n, 4);
    assert_string_equal(lines.line[0], "ok||same|as everywhere|");
    assert_string_equal(lines.line[1], "ok||job|all agree|");
    assert_string_equal(lines.line[2], "warn|a|second|rank 1 of host a|mend it");
    assert_string_equal(lines.line[3], "FAIL|b|other|host b alone|");
    assert_int_equal(trib_report_worst(&merged), TRIB_VERDICT_FAIL);
    trib_report_free(&merged);
    for (int r = 0; r < 3; r++)
        trib_report_free(&all[r]);
}

/* Another rank may send any bytes. */
TEST(test_cut_report)
{
    struct trib_report report, cut;
    trib_finding_t f;

    trib_report_init(&report);
    trib_report_say(&report, TRIB_VERDICT_OK, "topic", "cure", "text");
    for (size_t len = 0; len < report.len; len++) {
        size_t at = 0;
        cut = report;
        cut.len = len;
        assert_false(trib_report_next(&cut, &at, &f));
    }
    report.bytes[0] = 77;
    size_t at = 0;
    assert_false(trib_report_next(&report, &at, &f));
    trib_report_free(&report);
}

/* Four ranks on three hosts, of the same version and with the same settings. */
static void make_job(struct trib_doctor *d, struct trib_card *cards)
{
    static const char *const hosts[] = {"a", "a", "b", "c"};

    *d = (struct trib_doctor){.size = 4, .cards = cards};
    trib_report_init(&d->report);
    d->report.where = "*";
    memset(cards, 0, 4 * sizeof(*cards));
    for (int r = 0; r < 4; r++) {
        struct trib_card *c = &cards[r];
        c->machine = c->boot = (uint64_t)hosts[r][0];
        c->network = 7;
        c->settings = 1;
        CPU_SET(0, &c->cpus.set);
        CPU_SET(1, &c->cpus.set);
        snprintf(c->library, sizeof(c->library), "0.1.0");
        snprintf(c->host, sizeof(c->host), "%s", hosts[r]);
        snprintf(c->settings_text, sizeof(c->settings_text), "chunk=64K window=8");
    }
}

static trib_verdict_t compare(struct trib_doctor *d, struct lines *lines)
{
    trib_finding_t f;

    trib_doctor_compare(d);
    lines->n = 0;
    for (size_t at = 0; trib_report_next(&d->report, &at, &f);)
        note(lines, &f);
    trib_verdict_t worst = trib_report_worst(&d->report);
    trib_report_free(&d->report);
    return worst;
}

TEST(test_agreement)
{
    static struct trib_card cards[4];
    static struct lines lines;
    struct trib_doctor d;

    make_job(&d, cards);
    assert_int_equal(compare(&d, &lines), TRIB_VERDICT_OK);
    assert_int_equal(count(&lines, "ok|*|ranks|4 on 3 hosts: a (ranks 0-1), b", ""), 1);
    assert_int_equal(count(&lines, "ok|*|versions|0.1.0 on all ranks", ""), 1);

    make_job(&d, cards);
    snprintf(cards[3].library, sizeof(cards[3].library), "0.2.0");
    assert_int_equal(compare(&d, &lines), TRIB_VERDICT_FAIL);
    assert_int_equal(count(&lines,
                           "FAIL|*|versions|rank 3 (c) has Tributary 0.2.0, rank 0 (a)",
                           "install the same version"),
                     1);

    make_job(&d, cards);
    cards[2].settings = 2;
    snprintf(cards[2].settings_text, sizeof(cards[2].settings_text),
             "chunk=64K window=9");
    assert_int_equal(compare(&d, &lines), TRIB_VERDICT_FAIL);
    assert_int_equal(
        count(&lines, "FAIL|*|settings|rank 2 (b) has window=9", "window=8"), 1);
}

/* Containers: of one kernel, but not of one memory; of one memory, but not of one
 * network. */
TEST(test_name_spaces)
{
    static struct trib_card cards[4];
    static struct lines lines;
    struct trib_doctor d;

    make_job(&d, cards);
    cards[1].machine = 99;
    assert_int_equal(compare(&d, &lines), TRIB_VERDICT_WARN);
    assert_int_equal(count(&lines, "warn|*|containers|ranks 0 and 1 run on one kernel",
                           "--pid=host"),
                     1);

    make_job(&d, cards);
    cards[1].network = 8;
    assert_int_equal(compare(&d, &lines), TRIB_VERDICT_WARN);
    assert_int_equal(count(&lines, "warn|*|networks|ranks 0 and 1 on a share memory",
                           "--network=host"),
                     1);

    make_job(&d, cards);
    CPU_ZERO(&cards[0].cpus.set);
    CPU_SET(1, &cards[0].cpus.set);
    cards[1].cpus = cards[0].cpus;
    assert_int_equal(compare(&d, &lines), TRIB_VERDICT_WARN);
    assert_int_equal(count(&lines, "warn|*|cpus|2 ranks on a share 1", ""), 1);
}

TEST(test_clocks)
{
    static struct trib_card cards[4];
    static struct lines lines;
    struct trib_doctor d;

    make_job(&d, cards);
    trib_doctor_judge_clocks(&d, (double[]){0, 0.002, -0.25, 0.1});
    assert_int_equal(compare(&d, &lines), TRIB_VERDICT_OK);
    assert_int_equal(count(&lines, "ok|*|clocks|at most 250 ms apart", ""), 1);
    make_job(&d, cards);
    trib_doctor_judge_clocks(&d, (double[]){0, 1.5, -70, 0.1});
    assert_int_equal(compare(&d, &lines), TRIB_VERDICT_WARN);
    assert_int_equal(count(&lines,
                           "warn|*|clocks|the clock of rank 2 (b) is 70.0 s behind "
                           "rank 0's",
                           "chrony"),
                     1);
}

static int rank_main(int rank, int size, void *root)
{
    static _Thread_local struct lines lines;
    trib_doctor_opts_t opts = TRIB_DOCTOR_OPTS_INIT;
    trib_verdict_t worst = TRIB_VERDICT_FAIL;
    trib_opts_t join =
        sized(trib_opts_t, .rank_plus_1 = rank + 1, .ranks = size, .root = root);

    opts.join = &join;
    lines.n = 0;
    trib_status_t status = trib_doctor(&opts, note, &lines, &worst);
    if (status != TRIB_OK || worst == TRIB_VERDICT_FAIL) {
        fprintf(stderr, "rank %d: %s: %s\n", rank, trib_status_str(status),
                trib_last_error(NULL));
        for (int i = 0; i < lines.n; i++)
            fprintf(stderr, "  %s\n", lines.line[i]);
        return 1;
    }
    if (rank > 0)
        return lines.n != 0;
    return !(count(&lines, "ok||ranks|5 on 1 host", "") == 1 &&
             count(&lines, "ok||shm|20 of 20 directions", "") == 1 &&
             count(&lines, "ok||tcp|20 of 20 directions", "") == 1 &&
             count(&lines, "ok||settings|", "") == 1 &&
             count(&lines, "ok||clocks|", "") == 1);
}

static int examine(void)
{
    trib_local_t *local;

    assert_status(trib_local_create(5, &local), TRIB_OK);
    const int failed =
        tribtest_forks(5, 100, rank_main, (void *)(uintptr_t)trib_local_root(local));
    trib_local_destroy(local);
    return failed;
}

/* The doctor gives 64 KiB three seconds, which on a busy machine five ranks of two
 * cores may need: once more, then. */
TEST(test_five_ranks)
{
    if (examine() && examine())
        assert_int_equal(examine(), 0);
}
