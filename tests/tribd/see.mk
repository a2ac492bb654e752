# SPDX-License-Identifier: BSD-3-Clause
dist_check_SCRIPTS += tests/tribd/test_see.sh
TESTS += tests/tribd/test_see.sh
dist_check_SCRIPTS += tests/tribd/test_contrib.sh
TESTS += tests/tribd/test_contrib.sh
