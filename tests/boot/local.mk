# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/boot/boottest.h
check_PROGRAMS += tests/boot/test_boot tests/boot/test_local tests/boot/test_tcp
TESTS += tests/boot/test_boot tests/boot/test_local tests/boot/test_tcp
