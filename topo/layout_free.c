/* SPDX-License-Identifier: BSD-3-Clause */
/* Free a layout from any source. */
#include <stdlib.h>

#include "topo/layout.h"

void trib_layout_free(struct trib_layout *layout)
{
    free(layout->cores);
    free(layout->numa);
    free(layout->nics);
    *layout = (struct trib_layout){0};
}
