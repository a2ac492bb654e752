/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_root_*: where ranks of several hosts meet, for programs that have a way of their
 * own to tell all ranks a text. They meet in boot/tcp/tcp_boot.c.
 */
#include <stdlib.h>
#include <unistd.h>

#include <tributary/comm.h>

#include "boot/launcher.h"

struct trib_root {
    int hold; /* keeps the port until rank 0 listens there */
    char text[TRIB_ROOT_TEXT_MAX];
};

trib_status_t trib_root_create(trib_root_t **root_out)
{
    int port;

    if (!root_out)
        return TRIB_ERR_INVALID;
    *root_out = NULL;
    struct trib_root *root = calloc(1, sizeof(*root));
    if (!root)
        return TRIB_ERR_NO_MEMORY;
    root->hold = trib_launch_hold(&port);
    if (root->hold < 0) {
        free(root);
        return TRIB_ERR_SYSTEM;
    }
    trib_launch_root_text(port, root->text, sizeof(root->text));
    *root_out = root;
    return TRIB_OK;
}

const char *trib_root_text(const trib_root_t *root)
{
    return root ? root->text : "";
}

void trib_root_destroy(trib_root_t *root)
{
    if (!root)
        return;
    close(root->hold);
    free(root);
}
