/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any text as TRIB_SERVICE, and any bytes as a tree of aggregators: they result in an
 * error message, or in a tree for which the schedules of all ranks and aggregators can
 * be built. A first byte of 0 means text.
 */
#include "agg/client/agg_tree.h"
#include "base/error.h"
#include "base/log.h"
#include "collectives/collectives.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* inputs that are a tree or aggregators */

static void check_tree(const struct trib_agg_tree *tree, int ranks, int aggregators)
{
    static uint8_t bytes[16384];
    struct trib_agg_tree *again;
    size_t n;

    need(tree->groups >= 1 && tree->groups <= aggregators + 1);
    for (int node = 0; node < ranks + aggregators; node++) {
        const struct trib_shape shape = {.coll = TRIB_ALLREDUCE,
                                         .rank = node,
                                         .size = ranks,
                                         .aggregators = aggregators,
                                         .tree = tree};
        struct trib_schedule s;
        char why[200];
        need(trib_algo_find("service")->build(&shape, &s) == TRIB_OK);
        need(trib_schedule_check(&s, &shape, why, sizeof(why)) == TRIB_OK);
        trib_schedule_free(&s);
    }
    need(trib_agg_tree_pack(tree, ranks, bytes, sizeof(bytes), &n) == TRIB_OK);
    need(trib_agg_tree_unpack(bytes, n, ranks, aggregators, NULL, &again) == TRIB_OK);
    free(again);
}

static void run_text(const uint8_t *data, size_t size)
{
    static const char *const hosts[] = {"x", "y", "n1", "n2.cluster", "n3"};
    static struct trib_config cfg;
    static struct trib_tree_layout layout;
    struct trib_error err = {0};
    struct trib_log log;

    snprintf(cfg.service, sizeof(cfg.service), "%.*s", (int)size, (const char *)data);
    trib_log_init(&log, TRIB_LOG_ERROR, fuzz_drop_line, NULL);
    if (trib_tree_layout_make(&cfg, hosts, 5, &log, &err, &layout) != TRIB_OK)
        need(err.text[0] != '\0');
    else if (layout.tree)
        check_tree(layout.tree, 5, layout.n);
    fuzz_reached += !err.text[0];
    trib_tree_layout_free(&layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trib_agg_tree *tree;

    if (size == 0)
        return 0;
    if (data[0] == 0) {
        run_text(data + 1, size - 1);
        return 0;
    }
    const int ranks = 1 + data[0] % 16, aggregators = 1 + data[0] / 16;
    uint8_t *exact = malloc(size); /* exact size, so that ASan detects reads past the
                                    * end */
    if (!exact)
        return 0;
    memcpy(exact, data + 1, size - 1);
    if (trib_agg_tree_unpack(exact, size - 1, ranks, aggregators, NULL, &tree) ==
            TRIB_OK &&
        tree) {
        check_tree(tree, ranks, aggregators);
        fuzz_reached++;
    }
    free(tree);
    free(exact);
    return 0;
}
