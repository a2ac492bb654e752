# SPDX-License-Identifier: BSD-3-Clause
dist_check_SCRIPTS += tests/tribd/test_tribd.sh tests/tribd/test_tribd_lost.sh
TESTS += tests/tribd/test_tribd.sh tests/tribd/test_tribd_lost.sh
EXTRA_DIST += tests/tribd/daemons.sh tests/tribd/soak.sh
