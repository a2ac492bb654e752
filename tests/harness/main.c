// SPDX-License-Identifier: BSD-3-Clause
/* main of the tests: PROGRAM [--list | PATTERN of the names of cases to run]. */
#include "tests/harness/tribtest.h"

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        tribtest_list();
        return 0;
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return tribtest_run();
}
