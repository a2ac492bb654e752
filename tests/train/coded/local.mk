# SPDX-License-Identifier: BSD-3-Clause
if TRIB_ISAL
check_tests += tests/train/coded/test_coded tests/train/coded/test_codes tests/train/coded/test_fit
tests_train_coded_test_codes_LDADD = libcoded.la $(LDADD)
tests_train_coded_test_coded_LDADD = libcoded.la $(LDADD)
tests_train_coded_test_fit_LDADD = libcoded.la $(LDADD)
endif
