"""Mutants: small faults put into the code, to see which tests notice them.

`mutants.csv` lists them, `killed.csv` says which test kills which. From the root of the checkout:

    python -m tests.mutants check               # every mutant killed before, by the tests of today
    python -m tests.mutants check -m 'not long' # the same, by the tests of a marker expression
    python -m tests.mutants measure             # all mutants, and write killed.csv again

`killed.csv` is of the suite before tests were cut. A mutant that survived did so within a few seconds of tests without
processes of their own; one that was not measured may be killed all the same.

Code of `streamkernel/compute` is mutated where NUMBA_DISABLE_JIT leaves it uncompiled.
"""
