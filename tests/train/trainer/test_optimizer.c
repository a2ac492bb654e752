/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The momentum of elements that no longer have a gradient decays to 0 and is never
 * subnormal, because subnormal arithmetic is slow.
 */
#include "train/trainer/optimizer.h"

#include <math.h>

#include "base/error.h"
#include "tests/harness/tribtest.h"

enum { COUNT = 37, STEPS = 3000 };

static void make(const char *text, struct trib_train_optimizer *out)
{
    struct trib_error err = {0};

    if (trib_train_optimizer_create(text, NULL, NULL, COUNT, &err, out) != TRIB_OK)
        fail_msg("%s: %s", text, trib_error_text(&err));
}

/* The element gets one gradient, then none. */
static void check_end(const char *text)
{
    struct trib_train_optimizer o;
    float x[COUNT], gradient[COUNT], before[COUNT];

    make(text, &o);
    for (int i = 0; i < COUNT; i++) {
        x[i] = 1;
        gradient[i] = (float)(i + 1) / 8;
    }
    for (int step = 0; step < STEPS; step++) {
        trib_train_optimizer_update(&o, x, gradient, 0, COUNT, 1e-3);
        trib_train_optimizer_step(&o);
        for (int i = 0; i < COUNT; i++)
            assert_int_not_equal(fpclassify(o.vector[0][i]), FP_SUBNORMAL);
        if (step == 0)
            memset(gradient, 0, sizeof(gradient));
        if (step == STEPS / 4)
            memcpy(before, x, sizeof(x));
    }
    for (int i = 0; i < COUNT; i++) {
        assert_true(o.vector[0][i] == 0);
        assert_true(x[i] < 1);
    }
    assert_memory_equal(x, before, sizeof(x)); /* by then it moved nothing */
    trib_train_optimizer_destroy(&o);
}

TEST(momentum_ends)
{
    check_end("sgd:momentum=0.9");
    check_end("sgd:momentum=0.9,nesterov=1");
    check_end("adam");
}

/* With a gradient nothing is flushed to 0, and NaN and Inf remain visible. */
TEST(numbers_stay)
{
    static const char *const texts[] = {"sgd:momentum=0.9",
                                        "sgd:momentum=0.9,nesterov=1", "adam"};

    for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
        struct trib_train_optimizer o;
        float x[COUNT] = {0}, gradient[COUNT];

        make(texts[k], &o);
        for (int i = 0; i < COUNT; i++)
            gradient[i] = i % 3 ? 1e-20f : NAN;
        for (int step = 0; step < 10; step++) {
            trib_train_optimizer_update(&o, x, gradient, 0, COUNT, 1e-3);
            trib_train_optimizer_step(&o);
        }
        for (int i = 0; i < COUNT; i++)
            assert_true(i % 3 ? o.vector[0][i] > 1e-21f : isnan(o.vector[0][i]));
        trib_train_optimizer_destroy(&o);
    }
}
