/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a layout, by whatever it was read. */
#include <stdlib.h>

#include "topo/layout.h"

void trib_layout_free(struct trib_layout *layout)
{
    free(layout->cores);
    free(layout->numa);
    free(layout->nics);
    *layout = (struct trib_layout){0};
}
