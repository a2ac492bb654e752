/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/cpu.h"

/* The kernel's own list is the witness. */
static bool kernel_says(const char *flag)
{
    char line[8192];
    char word[40];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "re");

    snprintf(word, sizeof(word), " %s ", flag);
    while (file && !found && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = ' ';
        found = (!strncmp(line, "flags", 5) || !strncmp(line, "Features", 8)) &&
                strstr(line, word);
    }
    if (file)
        fclose(file);
    return found;
}

TEST(test_best_agrees_with_the_kernel)
{
#if defined(__aarch64__)
    assert_int_equal(trib_cpu_best(), TRIB_CPU_NEON);
#else
    bool avx2 = kernel_says("avx2") && kernel_says("fma") && kernel_says("f16c");
    bool avx512 = avx2 && kernel_says("avx512bw") && kernel_says("avx512vl") &&
                  kernel_says("avx512dq") && kernel_says("avx512cd");
    assert_int_equal(trib_cpu_best(),
                     avx512 ? TRIB_CPU_AVX512 : (avx2 ? TRIB_CPU_AVX2 : TRIB_CPU_C));
#endif
}

TEST(test_features_agree_with_the_kernel)
{
    char text[256];
    char *rest = text;
    char *word;

    assert_true(trib_cpu_features(text, sizeof(text)) < sizeof(text));
    while ((word = strsep(&rest, " "))) {
        const char *kernel = !strcmp(word, "bmi") ? "bmi1" : word;
        if (!strcmp(word, "neon"))
            kernel = "asimd";
        if (*word && !kernel_says(kernel))
            fail_msg("the kernel does not list %s", word);
    }
}

TEST(test_features_are_cut)
{
    char text[4] = "zzz";
    size_t need = trib_cpu_features(NULL, 0);

    assert_int_equal(trib_cpu_features(text, sizeof(text)), need);
    assert_int_equal(strlen(text), need < 3 ? need : 3);
}

TEST(test_levels_by_name)
{
#if defined(__aarch64__)
    static const char *const names[TRIB_CPU_LEVELS] = {"c", "neon"};
#else
    static const char *const names[TRIB_CPU_LEVELS] = {"c", "avx2", "avx512"};
#endif
    enum trib_cpu_level level;

    assert_true(trib_cpu_level_parse("c", &level));
    assert_int_equal(level, TRIB_CPU_C);
    assert_true(trib_cpu_level_parse("auto", &level));
    assert_int_equal(level, trib_cpu_best());
    assert_true(trib_cpu_level_parse(NULL, &level));
    assert_int_equal(level, trib_cpu_best());
    assert_false(trib_cpu_level_parse("sse9", &level));
    for (int i = 0; i < TRIB_CPU_LEVELS; i++) {
        bool known = trib_cpu_level_parse(names[i], &level);
        assert_int_equal(known, i <= (int)trib_cpu_best());
    }
}
