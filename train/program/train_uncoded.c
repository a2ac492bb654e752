/* SPDX-License-Identifier: BSD-3-Clause */
/* Stubs of train_coded.h for builds without ISA-L. */
#include <stdio.h>

#include "train/program/train_coded.h"

bool train_coded_built(void)
{
    return false;
}

int train_coded_check(const struct train_job *job)
{
    (void)job;
    fputs("trib-train: --code: this trib-train was built without ISA-L and has no "
          "codes: install libisal-dev and rebuild\n",
          stderr);
    return 2;
}

int train_coded_rank(const struct train_job *job, int rank, const char *root,
                     int (*report)(const struct train_job *job))
{
    (void)rank;
    (void)root;
    (void)report;
    return train_coded_check(job);
}
