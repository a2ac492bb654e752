# SPDX-License-Identifier: BSD-3-Clause
"""Solve a Poisson equation on a square with three PETSc solvers. Print the iterations and the solution's norm."""
import sys

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402

SIDE = 100


def matrix():
    a = PETSc.Mat().createAIJ([SIDE * SIDE] * 2, nnz=5)
    first, last = a.getOwnershipRange()
    for row in range(first, last):
        y, x = divmod(row, SIDE)
        a[row, row] = 4.0
        for near, there in ((row - 1, x > 0), (row + 1, x < SIDE - 1), (row - SIDE, y > 0), (row + SIDE, y < SIDE - 1)):
            if there:
                a[row, near] = -1.0
    a.assemble()
    return a


def solve(a, solver, preconditioner):
    ksp = PETSc.KSP().create()
    ksp.setOperators(a)
    ksp.setType(solver)
    ksp.getPC().setType(preconditioner)
    ksp.setTolerances(rtol=1e-10)
    x, b = a.createVecs()
    b.set(1.0)
    ksp.solve(b, x)
    PETSc.Sys.Print(f"{solver} {preconditioner} iterations {ksp.getIterationNumber()} norm {x.norm():.9e} most {x.max()[1]:.9e}")


for_all = matrix()
for kind in (("gmres", "bjacobi"), ("cg", "gamg"), ("pipecg", "jacobi")):
    solve(for_all, *kind)
