"""Mutants: small faults put into the code, to see whether tests notice them.

`mutants.csv` lists them, `killed.csv` says which test kills which. From the root of the checkout:

    python -m tests.mutants check            # every mutant that was killed before, by the tests of today
    python -m tests.mutants check --id 7 12  # these alone
    python -m tests.mutants draw             # another list, from the code of today; check --all then finds its killers

Each mutant is written into a copy of the checkout. Pytest runs the test that killed it before; if that is gone or
passes, the tests of its function, of its file and of its folder. Tests that need a process do not count.
"""
