# SPDX-License-Identifier: BSD-3-Clause
dist_check_SCRIPTS += tests/train/program/test_trib_train.sh
if TRIB_EXAMPLES
TESTS += tests/train/program/test_trib_train.sh
endif
