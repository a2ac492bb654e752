/* SPDX-License-Identifier: BSD-3-Clause */
/* Codes without ranks: layouts, decoding, and arithmetic of bytes, each compared with
 * its own oracle. */
#include "tests/harness/tribtest.h"

#include <math.h>

#include "train/coded/code_table.h"
#include "train/coded/coded_decode.h"
#include "train/coded/gf_bytes.h"
#include "train/coded/pivoted_qr.h"

enum { SEEDS = 4 };

/* Partition p is on rank p, and ranks hold nothing else. */
static struct trib_code_layout first_layout(int parts, int ranks)
{
    struct trib_code_layout l;

    assert_true(trib_code_layout_create(&l, parts, ranks, parts, false));
    for (int p = 0; p < parts; p++)
        trib_code_layout_add_part(&l, p, p);
    return l;
}

static struct trib_code_layout draw_from(const char *text, uint64_t seed,
                                         const struct trib_code_layout *had)
{
    struct trib_code_choice choice;
    struct trib_code_layout l;
    struct trib_error err = {0};

    assert_status(trib_code_parse(text, &err, &choice), TRIB_OK);
    choice.seed = seed;
    if (choice.row->ops->draw(&choice, had, &l, &err) != TRIB_OK)
        fail_msg("%s: %s", text, err.text);
    return l;
}

static struct trib_code_layout draw(const char *text, uint64_t seed, int parts,
                                    int ranks)
{
    struct trib_code_layout had = first_layout(parts, ranks);
    struct trib_code_layout l = draw_from(text, seed, &had);

    trib_code_layout_destroy(&had);
    return l;
}

static int members_of(const struct trib_code_layout *l, int block)
{
    int n = 0;

    for (int p = 0; p < l->parts; p++) {
        const bool has = l->bytes[block * l->parts + p] != 0;
        assert_int_equal(l->real[block * l->parts + p] != 0, has);
        n += has;
    }
    return n;
}

/* The promise of docs/coded.md where each row has exactly half of the partitions. */
TEST(half_rows_bear_losses)
{
    static const int shapes[][2] = {{12, 16}, {16, 20}};

    for (int i = 0; i < 2; i++) {
        double beyond = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct trib_code_layout l =
                draw("rlnc:row=half,tries=30", seed, shapes[i][0], shapes[i][1]);
            struct trib_code_quality q;
            for (int b = 0; b < l.n_blocks; b++)
                if (!trib_code_layout_is_part(&l, b))
                    assert_int_equal(members_of(&l, b), l.parts / 2);
            assert_true(trib_code_layout_judge(&l, &q));
            assert_true(q.any_one == 1);
            assert_true(q.any_two >= 0.97);
            beyond += q.beyond / SEEDS;
            trib_code_layout_destroy(&l);
        }
        print_message("K=%d, r=4: %.2f beyond K\n", shapes[i][0], beyond);
        assert_true(beyond > 0 && beyond < 0.6);
    }
}

TEST(other_codes_bear_losses)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct trib_code_layout density =
            draw("rlnc:density=0.5,tries=1000", seed, 12, 16);
        struct trib_code_layout mds = draw("mds", seed, 12, 16);
        struct trib_code_layout none = draw("none", seed, 12, 12);
        struct trib_code_quality q;
        assert_true(trib_code_layout_judge(&density, &q));
        assert_true(q.any_one == 1 && q.beyond > 0);
        assert_true(trib_code_layout_judge(&mds, &q));
        assert_true(q.any_one == 1 && q.any_two == 1 && q.beyond == 0);
        assert_true(trib_code_layout_judge(&none, &q));
        assert_true(q.any_one == 0 && q.beyond == 0);
        trib_code_layout_destroy(&density);
        trib_code_layout_destroy(&mds);
        trib_code_layout_destroy(&none);
    }
}

/* Subsets -------------------------------------------------------------------------- */

/* The rank of rows by elimination without a tolerance of its own. */
static int oracle_rank(long double *a, int rows, int columns)
{
    int rank = 0;

    for (int c = 0; c < columns && rank < rows; c++) {
        int at = rank;
        for (int r = rank; r < rows; r++)
            if (fabsl(a[r * columns + c]) > fabsl(a[at * columns + c]))
                at = r;
        if (fabsl(a[at * columns + c]) < 1e-9L)
            continue;
        for (int k = 0; k < columns; k++) {
            const long double swapped = a[at * columns + k];
            a[at * columns + k] = a[rank * columns + k];
            a[rank * columns + k] = swapped;
        }
        for (int r = rank + 1; r < rows; r++) {
            const long double f = a[r * columns + c] / a[rank * columns + c];
            for (int k = c; k < columns; k++)
                a[r * columns + k] -= f * a[rank * columns + k];
        }
        rank++;
    }
    return rank;
}

static int rank_of_answers(const struct trib_code_layout *l, const bool *here)
{
    long double a[64 * 16];
    int rows = 0;

    for (int b = 0; b < l->n_blocks; b++) {
        for (int p = 0; p < l->parts && here[l->holder[b]]; p++)
            a[rows * l->parts + p] = (long double)l->real[b * l->parts + p];
        rows += here[l->holder[b]];
    }
    return oracle_rank(a, rows, l->parts);
}

static double product(int part, size_t row)
{
    return sin(part * 7 + (double)row * 3) * (part + 1);
}

static void check_decoding(const struct trib_code_layout *l, const bool *here)
{
    enum { ROWS = 3 };
    double y[64 * ROWS] = {0};
    float z[16 * ROWS];
    bool solved;

    for (int b = 0; b < l->n_blocks; b++)
        for (size_t i = 0; i < ROWS; i++)
            for (int p = 0; p < l->parts; p++)
                y[(size_t)b * ROWS + i] +=
                    here[l->holder[b]] ? l->real[b * l->parts + p] * product(p, i)
                                       : (double)NAN;
    assert_true(trib_coded_decode(l, here, y, ROWS, z, &solved));
    for (int p = 0; p < l->parts; p++)
        for (size_t i = 0; i < ROWS; i++)
            assert_true(fabs((double)z[(size_t)p * ROWS + i] - product(p, i)) < 2e-6);
}

static void check_weights(const struct trib_code_layout *l, const bool *here,
                          const double *weights)
{
    for (int p = 0; p < l->parts; p++) {
        double sum = 0;
        for (int r = 0; r < l->ranks; r++)
            sum += here[r] ? weights[r] * l->mix[r * l->parts + p] : 0;
        assert_true(fabs(sum - 1) < 1e-8);
    }
}

/* Whether the row of ones is a sum of the rows that are here. */
static bool oracle_mixes(const struct trib_code_layout *l, const bool *here)
{
    long double a[17 * 16], b[17 * 16];
    int rows = 0;

    for (int r = 0; r < l->ranks; r++) {
        for (int p = 0; p < l->parts && here[r]; p++)
            a[rows * l->parts + p] = (long double)l->mix[r * l->parts + p];
        rows += here[r];
    }
    memcpy(b, a, sizeof(a));
    for (int p = 0; p < l->parts; p++)
        b[rows * l->parts + p] = 1;
    return oracle_rank(a, rows, l->parts) == oracle_rank(b, rows + 1, l->parts);
}

static int check_subset(const struct trib_code_layout *l, unsigned subset)
{
    bool here[16];
    double weights[16];

    for (int r = 0; r < l->ranks; r++)
        here[r] = subset >> r & 1;
    const int lacks = l->parts - rank_of_answers(l, here);
    assert_int_equal(trib_code_layout_lacks(l, here), lacks);
    if (lacks == 0)
        check_decoding(l, here);
    if (!l->mix)
        return lacks == 0;
    const bool mixes = trib_code_layout_weights(l, here, weights);
    assert_int_equal(mixes, oracle_mixes(l, here));
    if (mixes)
        check_weights(l, here, weights);
    return mixes;
}

TEST(every_subset_decodes)
{
    static const struct {
        const char *code;
        int parts, ranks, spare;
    } cases[] = {
        {"rlnc", 4, 7, 1},
        {"rlnc", 6, 9, 1},
        {"rlnc:density=0.5", 5, 9, 1},
        {"mds", 5, 9, 4},
        {"none", 4, 6, 0},
        {"gradient:spare=1", 6, 6, 1},
        {"gradient:spare=2", 7, 7, 2},
        {"gradient:spare=3,form=cyclic", 8, 8, 3},
        {"gradient:spare=1", 7, 5, 1},
        {"gradient:spare=2", 5, 8, 2},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int n = cases[i].ranks, first = n < cases[i].parts ? n : cases[i].parts;
        struct trib_code_layout had = first_layout(cases[i].parts, n);
        for (int b = first; b < had.n_blocks; b++)
            had.holder[b] = 0; /* partitions beyond the ranks are on any rank */
        struct trib_code_layout l = draw_from(cases[i].code, 3, &had);
        int decode = 0;
        for (unsigned subset = 0; subset < 1u << n; subset++) {
            const int well = check_subset(&l, subset);
            decode += well;
            if (n - __builtin_popcount(subset) <= cases[i].spare &&
                (cases[i].spare || !l.mix))
                assert_true(well);
        }
        assert_true(decode > 0 && decode < 1 << n);
        trib_code_layout_destroy(&l);
        trib_code_layout_destroy(&had);
    }
}

/* Moves ---------------------------------------------------------------------------- */

static int block_of(const struct trib_code_layout *l, int rank)
{
    assert_int_equal(trib_code_layout_held(l, rank), 1);
    return trib_code_layout_first(l, rank);
}

static bool same_row(const struct trib_code_layout *a, int i,
                     const struct trib_code_layout *b, int k)
{
    const size_t n = (size_t)a->parts;

    return memcmp(a->real + (size_t)i * n, b->real + (size_t)k * n, n * 8) == 0 &&
           memcmp(a->bytes + (size_t)i * n, b->bytes + (size_t)k * n, n) == 0;
}

/* Rank 1 dies and a newcomer takes its number: the others keep their blocks. */
TEST(a_newcomer_takes_the_lost_part)
{
    struct trib_code_layout l = draw("rlnc", 1, 6, 10);

    l.holder[block_of(&l, 1)] = -1;
    struct trib_code_layout next = draw_from("rlnc", 2, &l);
    for (int r = 0; r < 10; r++) {
        if (r == 1)
            assert_int_equal(next.id[block_of(&next, r)], 1);
        else
            assert_true(same_row(&next, block_of(&next, r), &l, block_of(&l, r)));
    }
    trib_code_layout_destroy(&l);
    trib_code_layout_destroy(&next);
}

/* A rank with a sum dies: a newcomer draws a new row, and no other row changes. */
TEST(a_newcomer_draws_a_row)
{
    static const char *const codes[] = {"rlnc", "mds"};

    for (int i = 0; i < 2; i++) {
        struct trib_code_layout l = draw(codes[i], 1, 6, 10);
        struct trib_code_quality q;
        l.holder[block_of(&l, 8)] = -1;
        struct trib_code_layout next = draw_from(codes[i], 2, &l);
        for (int r = 0; r < 10; r++)
            assert_int_equal(same_row(&next, block_of(&next, r), &l, r), r != 8);
        assert_true(trib_code_layout_judge(&next, &q));
        assert_true(q.any_one == 1);
        trib_code_layout_destroy(&l);
        trib_code_layout_destroy(&next);
    }
}

/* The two remaining sums have weak rows, so all rows are drawn again. */
TEST(poor_rows_are_drawn_anew)
{
    struct trib_code_layout l = draw("rlnc", 1, 6, 10), poor;
    struct trib_code_quality q;
    int kept[2] = {0}, n = 0;

    assert_true(trib_code_layout_create(&poor, 6, 8, 8, false));
    for (int p = 0; p < 6; p++)
        trib_code_layout_add_part(&poor, p, p);
    for (int a = 6; a < 9 && !n; a++) /* two rows that leave a partition out */
        for (int b = a + 1; b < 10 && !n; b++)
            for (int p = 0; p < 6 && !n; p++)
                if (!l.bytes[a * 6 + p] && !l.bytes[b * 6 + p]) {
                    kept[n++] = a;
                    kept[n++] = b;
                }
    assert_int_equal(n, 2);
    for (int k = 0; k < 2; k++)
        trib_code_layout_copy_row(&poor, trib_code_layout_add(&poor, 6 + k, 6 + k), &l,
                                  kept[k]);
    struct trib_code_layout next = draw_from("rlnc", 2, &poor);
    assert_true(trib_code_layout_judge(&next, &q));
    assert_true(q.any_one == 1);
    trib_code_layout_destroy(&l);
    trib_code_layout_destroy(&poor);
    trib_code_layout_destroy(&next);
}

/* Bytes ---------------------------------------------------------------------------- */

/* A product in GF(2^8) by shifts, without a table; the polynomial is 0x11d. */
static uint8_t oracle_times(uint8_t a, uint8_t b)
{
    unsigned sum = 0, shifted = a;

    for (int bit = 0; bit < 8; bit++) {
        sum ^= b >> bit & 1 ? shifted : 0;
        shifted = shifted << 1 ^ (shifted & 0x80 ? 0x11d : 0);
    }
    return (uint8_t)sum;
}

TEST(bytes_are_a_field)
{
    uint8_t from[300], to[300], want[300];

    for (int factor = 0; factor < 256; factor++) {
        const size_t n = factor < 250 ? (size_t)factor + 1 : 300;
        for (size_t i = 0; i < n; i++) {
            from[i] = (uint8_t)(i * 37 + (size_t)factor);
            to[i] = (uint8_t)(i * 11 + 5);
            want[i] = to[i] ^ oracle_times((uint8_t)factor, from[i]);
        }
        trib_gf_bytes_add(to, (uint8_t)factor, from, n);
        assert_memory_equal(to, want, n);
        if (factor)
            assert_int_equal(
                oracle_times((uint8_t)factor, trib_gf_bytes_inverse((uint8_t)factor)),
                1);
    }
}

/* Lost partitions are recovered bit for bit from the remaining blocks, or reported as
 * lost. */
static void check_combination(const struct trib_code_layout *l, int part,
                              const int *blocks, int n, bool expected)
{
    uint8_t rows[16 * 16], factors[16], sum[16] = {0};

    for (int i = 0; i < n; i++)
        memcpy(rows + i * l->parts, l->bytes + blocks[i] * l->parts, (size_t)l->parts);
    const bool well = trib_gf_bytes_combine(rows, n, l->parts, part, factors);
    assert_int_equal(well, expected);
    for (int i = 0; i < n && well; i++)
        for (int p = 0; p < l->parts; p++)
            sum[p] ^= oracle_times(factors[i], rows[i * l->parts + p]);
    for (int p = 0; p < l->parts && well; p++)
        assert_int_equal(sum[p], p == part);
}

TEST(lost_bytes_come_back)
{
    struct trib_code_layout l = draw("mds", 1, 6, 9);

    for (unsigned lost = 0; lost < 1u << 9; lost++) {
        int blocks[9], n = 0;
        for (int b = 0; b < 9; b++)
            if (!(lost >> b & 1))
                blocks[n++] = b;
        for (int p = 0; p < 6; p++)
            check_combination(&l, p, blocks, n, n >= 6 || !(lost >> p & 1));
    }
    trib_code_layout_destroy(&l);
}

/* Rest ----------------------------------------------------------------------------- */

TEST(dependent_columns_are_seen)
{
    double a[] = {1, 2, 3, 2, 4, 1, 1, 2, 7, 3, 6, 4}, scale[3];
    double b[] = {8, 6, 16, 14}, x[3];
    int pivot[3];
    struct trib_pivoted_qr qr = {4, 3, a, scale, pivot, 0};

    assert_int_equal(trib_pivoted_qr_factor(&qr), 2);
    trib_pivoted_qr_solve(&qr, b, 1, x);
    assert_true(fabs(x[0] + 2 * x[1] + 3 * x[2] - 8) < 1e-12);
    assert_true(fabs(b[2]) < 1e-12 && fabs(b[3]) < 1e-12);
}

static void refuse(const char *text, int parts, int ranks, trib_status_t expected,
                   const char *word)
{
    struct trib_code_layout had = first_layout(parts, ranks), l = {0};
    struct trib_code_choice choice;
    struct trib_error err = {0};

    trib_status_t st = trib_code_parse(text, &err, &choice);
    if (st == TRIB_OK)
        st = choice.row->ops->draw(&choice, &had, &l, &err);
    assert_status(st, expected);
    if (!strstr(err.text, word))
        fail_msg("\"%s\" has not \"%s\"", err.text, word);
    trib_code_layout_destroy(&had);
    trib_code_layout_destroy(&l);
}

TEST(wrong_codes_are_refused)
{
    refuse("rlnk", 4, 6, TRIB_ERR_INVALID, "rlnc");
    refuse("rlnc:row=full", 4, 6, TRIB_ERR_INVALID, "half");
    refuse("rlnc:row=half,density=0.5", 4, 6, TRIB_ERR_INVALID, "not both");
    refuse("rlnc:density=0", 4, 6, TRIB_ERR_INVALID, "0.01");
    refuse("gradient:form=groups", 5, 5, TRIB_ERR_UNSUPPORTED, "groups of 2");
    refuse("mds:tries=3", 4, 6, TRIB_ERR_INVALID, "no parameters");
}
