/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/release.h"

#include "build-config.h"

const char trib_release[TRIB_RELEASE_BYTES] = PACKAGE_VERSION;
