# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/abi/symbols.txt scripts/check-abi
check_PROGRAMS += tests/abi/frozen_program
tests_abi_frozen_program_SOURCES = tests/abi/frozen_program.c tests/abi/frozen.h
tests_abi_frozen_program_LDADD = libtributary.la
dist_check_SCRIPTS += tests/abi/test_frozen.sh
TESTS += tests/abi/test_frozen.sh
