# SPDX-License-Identifier: BSD-3-Clause
check_scripts += tests/netns/test_addresses.sh tests/netns/test_doctor.sh tests/netns/test_hosts.sh \
	tests/netns/test_names.sh tests/netns/test_rate.sh tests/netns/test_service.sh \
	tests/netns/test_silence.sh tests/netns/test_trouble.sh
EXTRA_DIST += tests/netns/hosts tests/netns/net.sh
