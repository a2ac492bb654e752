/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts of tests/topo/data; a test without hwloc is skipped. */
#ifndef TESTS_TOPO_DATA_LAYOUT_H
#define TESTS_TOPO_DATA_LAYOUT_H

#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "tests/topo/data.h"
#include "topo/layout.h"

static inline void data_layout(const char *name, struct trib_layout *out)
{
    struct trib_error err = {0};
    trib_status_t status = trib_layout_read(data_path(name).text, &err, out);

    if (status == TRIB_ERR_UNSUPPORTED)
        tribtest_skip("built without hwloc");
    if (status != TRIB_OK)
        fail_msg("%s", err.text);
}

#endif
