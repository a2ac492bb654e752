# SPDX-License-Identifier: BSD-3-Clause
if TRIB_ISAL
check_PROGRAMS += tests/train/coded/test_codes
TESTS += tests/train/coded/test_codes
tests_train_coded_test_codes_LDADD = libcoded.la $(LDADD)
check_PROGRAMS += tests/train/coded/test_coded
TESTS += tests/train/coded/test_coded
tests_train_coded_test_coded_LDADD = libcoded.la $(LDADD)
check_PROGRAMS += tests/train/coded/test_fit
TESTS += tests/train/coded/test_fit
tests_train_coded_test_fit_LDADD = libcoded.la $(LDADD)
endif
