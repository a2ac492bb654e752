# SPDX-License-Identifier: BSD-3-Clause
#
# These are not in TESTS: ./dev check and ./dev rxe run them.
EXTRA_DIST += tests/rxe/build_siw.sh tests/rxe/device.sh tests/rxe/guest tests/rxe/host tests/rxe/init.sh \
	tests/rxe/inside.sh tests/rxe/run_rxe.sh tests/rxe/rxelib.sh tests/rxe/session.sh tests/rxe/siw.sh \
	tests/rxe/two_guests.sh tests/rxe/unit.sh
