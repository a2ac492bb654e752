# SPDX-License-Identifier: BSD-3-Clause
"""Tributary for Spack: copy to packages/tributary/package.py of your repository. Set url to an archive made by
make dist, and add its checksum to the version (spack checksum)."""
from spack.package import *


class Tributary(AutotoolsPackage):
    """All-reduce and other collectives with gradient compression, over RDMA, TCP and shared memory."""

    homepage = "https://tributary.invalid"
    url = "file:///srv/archives/tributary-0.1.0.tar.xz"

    license("BSD-3-Clause")

    version("0.1.0")

    variant("verbs", default=True, description="InfiniBand and RoCE")
    variant("ucx", default=True, description="networks supported by UCX")
    variant("pmix", default=True, description="launchers with PMIx")
    variant("service", default=True, description="keys and metrics of tribd")
    variant("munge", default=False, description="authentication at tribd by MUNGE")
    variant("blas", default=True, description="training with OpenBLAS")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("hwloc@2:")
    depends_on("htscodecs")
    depends_on("inih")
    depends_on("jansson")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("rdma-core", when="+verbs")
    depends_on("ucx@1.10:", when="+ucx")
    depends_on("pmix", when="+pmix")
    depends_on("libsodium", when="+service")
    depends_on("libmicrohttpd", when="+service")
    depends_on("munge", when="+munge")
    depends_on("openblas", when="+blas")

    def configure_args(self):
        args = ["--with-mpi=no", "--without-torch", "--without-simgrid"]
        args += self.with_or_without("verbs")
        args += self.with_or_without("ucx")
        args += self.with_or_without("pmix")
        args += self.with_or_without("munge")
        args += self.with_or_without("sodium", variant="service")
        args += self.with_or_without("microhttpd", variant="service")
        return args

    def test_sum(self):
        """all-reduce on four ranks of this host"""
        perf = which(self.prefix.bin.join("trib-perf"))
        perf("allreduce", "-n", "4", "--check", "--sizes", "8,64K")
