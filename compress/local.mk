# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += compress/codec.h compress/kernels.h
