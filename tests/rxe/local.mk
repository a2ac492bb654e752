# SPDX-License-Identifier: BSD-3-Clause
#
# Not part of check: ./dev rxe runs them.
EXTRA_DIST += tests/rxe/device.sh tests/rxe/guest tests/rxe/host tests/rxe/init.sh \
	tests/rxe/inside.sh tests/rxe/run.sh tests/rxe/session.sh
