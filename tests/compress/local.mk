# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/compress/check_kernels
TESTS += tests/compress/check_kernels
