/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking calls for named vectors: names that are refused, a table that grows, and
 * states that belong to a name.
 */
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { COUNT = 2048 };

static trib_status_t named(struct ranks_self *self, const char *name, size_t count,
                           trib_dtype_t dtype, trib_op_t op)
{
    static double x[2 * COUNT];

    return trib_allreduce_named(self->comm, name, NULL, x, count, dtype, op);
}

static int names(struct ranks_self *self)
{
    char longest[66], name[32];
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;

    memset(longest, 'n', sizeof(longest));
    longest[65] = '\0';
    ranks_refused(self, named(self, longest, COUNT, TRIB_F32, TRIB_SUM),
                  TRIB_ERR_INVALID, WORDS("1 to 63"));
    longest[63] = '\0';
    ranks_ok(self, named(self, longest, COUNT, TRIB_F32, TRIB_SUM));
    ranks_refused(self, named(self, NULL, COUNT, TRIB_F32, TRIB_SUM), TRIB_ERR_INVALID,
                  WORDS("NULL"));
    ranks_refused(self, named(self, "", COUNT, TRIB_F32, TRIB_SUM), TRIB_ERR_INVALID,
                  WORDS("none"));
    ranks_refused(self, named(self, "a\nb", COUNT, TRIB_F32, TRIB_SUM),
                  TRIB_ERR_INVALID, WORDS("printable", "0x0a"));
    ranks_assert(self, trib_allreduce_named(NULL, "a", NULL, NULL, 0, TRIB_F32,
                                            TRIB_SUM) == TRIB_ERR_INVALID);
    for (int i = 0; i < 300; i++) { /* enough for the table to grow */
        snprintf(name, sizeof(name), "layer%d.weight", i);
        ranks_ok(self, named(self, name, 1 + (size_t)i, TRIB_F32, TRIB_SUM));
    }
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "layer%d.weight", i);
        ranks_ok(self, named(self, name, 1 + (size_t)i, TRIB_F32, TRIB_SUM));
        ranks_refused(self, named(self, name, 500, TRIB_F32, TRIB_SUM),
                      TRIB_ERR_INVALID, WORDS(name, "500", "another name"));
    }
    ranks_refused(self, named(self, "layer1.weight", 2, TRIB_F64, TRIB_SUM),
                  TRIB_ERR_INVALID, WORDS("f64"));
    ranks_refused(self, named(self, "layer1.weight", 2, TRIB_F32, TRIB_MEAN),
                  TRIB_ERR_INVALID, WORDS("mean"));
    d.count = COUNT;
    d.name = "shown";
    d.seed = 12;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    char text[600];
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    ranks_assert(self, strstr(text, "name       shown\n"));
    ranks_ok(self, trib_plan_free(plan));
    return 0;
}

TEST(test_names)
{
    ranks_pass(.size = 2, .fn = names, .config = "codec=topk:ratio=0.5");
}

static trib_plan_t *make(struct ranks_self *self, const char *name)
{
    return ranks_plan(self, TRIB_ALLREDUCE, .count = COUNT, .codec = "topk",
                      .name = name);
}

static int states_of_names(struct ranks_self *self)
{
    static char state[4 << 20];
    static float x[COUNT];
    trib_plan_t *one = make(self, "one"),
                *two = make(self, "two"),
                *none = make(self, NULL);
    size_t bytes;

    ranks_ok(self, trib_plan_start_with(one, NULL, x));
    ranks_ok(self, trib_plan_wait(one));
    ranks_ok(self, trib_plan_state_save(one, state, sizeof(state), &bytes));
    ranks_refused(self, trib_plan_state_load(two, state, bytes), TRIB_ERR_INVALID,
                  WORDS("name one", "two"));
    ranks_ok(self, trib_plan_state_load(one, state, bytes));
    ranks_ok(self, trib_plan_state_load(none, state, bytes));
    ranks_ok(self, trib_plan_free(one));
    ranks_ok(self, trib_plan_free(two));
    ranks_ok(self, trib_plan_free(none));
    return 0;
}

TEST(test_state_of_another_name)
{
    ranks_pass(.size = 2, .fn = states_of_names);
}
