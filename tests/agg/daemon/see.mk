# SPDX-License-Identifier: BSD-3-Clause
check_scripts += tests/agg/daemon/test_contrib.sh tests/agg/daemon/test_see.sh
