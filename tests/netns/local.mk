# SPDX-License-Identifier: BSD-3-Clause
netns_tests = \
	tests/netns/test_addresses.sh \
	tests/netns/test_doctor.sh \
	tests/netns/test_hosts.sh \
	tests/netns/test_names.sh \
	tests/netns/test_rate.sh \
	tests/netns/test_silence.sh \
	tests/netns/test_trouble.sh
dist_check_SCRIPTS += $(netns_tests)
TESTS += $(netns_tests)
EXTRA_DIST += tests/netns/hosts tests/netns/net.sh
