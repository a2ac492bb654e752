# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/abi/symbols.txt scripts/check-abi scripts/check-abi-binary tests/abi/compat.sh tests/abi/mixed.sh
check_scripts += tests/abi/test_frozen.sh tests/abi/test_other_release.sh
check_PROGRAMS += tests/abi/frozen_program tests/abi/mixed_sum
tests_abi_frozen_program_LDADD = libtributary.la
tests_abi_mixed_sum_LDADD = libtributary.la
