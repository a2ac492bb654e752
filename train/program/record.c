/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

trib_status_t record_open(struct record *record, const char *folder, size_t n,
                          struct trib_error *err)
{
    *record = (struct record){.folder = folder, .n = n};
    if (folder == NULL)
        return TRIB_OK;
    if ((mkdir(folder, 0777) != 0 && errno != EEXIST) ||
        access(folder, W_OK | X_OK) != 0)
        return trib_fail(err, TRIB_ERR_SYSTEM, "%s: %m", folder);
    record->gradient = malloc(n * sizeof(float));
    return record->gradient ? TRIB_OK
                            : trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
}

void record_piece(struct record *record, const float *gradient, size_t first,
                  size_t count)
{
    if (record->gradient != NULL)
        memcpy(record->gradient + first, gradient + first, count * sizeof(float));
}

int record_write(const struct record *record, size_t step)
{
    char path[1024];

    if (record->gradient == NULL)
        return 0;
    snprintf(path, sizeof(path), "%s/gradient-%zu.f32", record->folder, step);

    FILE *file = fopen(path, "wb");

    if (file == NULL) {
        fprintf(stderr, "trib-train: %s: %s\n", path, strerror(errno));
        return -1;
    }

    size_t written = fwrite(record->gradient, sizeof(float), record->n, file);

    if (fclose(file) != 0 || written != record->n) {
        fprintf(stderr, "trib-train: %s: could not be written\n", path);
        return -1;
    }
    return 0;
}

void record_close(struct record *record)
{
    free(record->gradient);
    record->gradient = NULL;
}
