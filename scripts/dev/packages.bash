# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
# Debian packages by use; need() installs those that are missing.

# Packages that configure requires or searches for.
required_packages=(build-essential autoconf automake libtool pkg-config libinih-dev
    libxxhash-dev libjansson-dev libhwloc-dev libhtscodecs-dev)
build_packages=("${required_packages[@]}" libpmix-dev libibverbs-dev librdmacm-dev
    libucx-dev libmicrohttpd-dev libsodium-dev libmunge-dev libisal-dev python3)
# Packages that configure searches for because of tests, and packages that tests run.
found_packages=(libcmocka-dev libopenblas-dev zlib1g-dev gfortran libmpich-dev libopenmpi-dev
    mpich openmpi-bin python3-torch libtorch-dev pybind11-dev libsimgrid-dev)
run_packages=(cmake lld dataset-fashion-mnist bible-kjv bible-kjv-text curl jq locales munge iproute2 nftables
    procps mypy python3-numpy python3-pip python3-setuptools python3-wheel python3-yaml rpm zsh fish
    lammps python3-mpi4py scalapack-mpi-test
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user valgrind prometheus chromium graphviz libxml2-utils)
test_packages=("${found_packages[@]}" "${run_packages[@]}")
docs_packages=(python3-sphinx python3-myst-parser furo groff-base python3)
lint_packages=(abigail-tools codespell shellcheck python3 python3-pycparser g++ groff-base git)
demo_packages=(libopenblas-dev zlib1g-dev dataset-fashion-mnist gnuplot-nox iproute2)
bench_train_packages=(bible-kjv bible-kjv-text)
bench_packages=(openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev mbw)
bench_hosts_packages=(iproute2 iperf3)
bench_sim_packages=(libsimgrid-dev)
bench_put_packages=(ucx-utils perftest)
bench_codec_packages=(python3-torch python3-numpy)
fuzz_packages=(clang libclang-rt-dev libcmocka-dev lld)
afl_packages=(afl++)
package_packages=(debootstrap git)
format_packages=(clang-format git)
tidy_packages=(clang-tidy)
mpi_packages=(cp2k cp2k-data hpcc lammps nwchem-mpich nwchem-openmpi python3-mpi4py
    python3-petsc4py-real quantum-espresso quantum-espresso-data scalapack-mpi-test)
rxe_packages=(libcmocka-dev qemu-system-x86 linux-image-amd64
    busybox-static iproute2 kmod rdmacm-utils ibverbs-utils ibverbs-providers perftest systemd)
siw_packages=(linux-headers-amd64 linux-source xz-utils)
