# SPDX-License-Identifier: BSD-3-Clause
dist_check_SCRIPTS += tests/agg/daemon/test_see.sh
TESTS += tests/agg/daemon/test_see.sh
dist_check_SCRIPTS += tests/agg/daemon/test_contrib.sh
TESTS += tests/agg/daemon/test_contrib.sh
