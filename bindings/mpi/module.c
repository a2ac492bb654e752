/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/module.h"

struct tmpi_module tmpi_module = {.settings = {.off = true}};
_Thread_local int tmpi_inside;
