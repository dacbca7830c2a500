"""What a mutated place asks. A copy of this file lies in each package of the instrumented tree.

`__mutant__(number)` answers whether that mutant is active. While reach is measured it also notes which test came there.
"""

import builtins
import contextlib
import os


class Switch:
    """One for a process and, through the environment, for the processes that it starts."""

    def __init__(self) -> None:
        self.test = ""
        self._noted: set[int] = set()
        self._trace = os.environ.get("MUTANTS_TRACE")
        self._is_of_tests = False
        os.register_at_fork(after_in_child=self._start_anew)
        self.activate(int(os.environ.get("MUTANTS_ACTIVE", "0")))

    def activate(self, number: int) -> None:
        """Make one mutant active, in this process and in those that it will start; none for 0."""
        os.environ["MUTANTS_ACTIVE"] = str(number)
        setattr(builtins, "__mutant__", self._note if self._trace else number.__eq__)  # noqa: B010

    def trace_into(self, path: str) -> None:
        """Note what is reached in another file."""
        self._trace = os.environ["MUTANTS_TRACE"] = path
        self._is_of_tests = True

    def begin(self, test: str) -> None:
        """Note from here on what this test reaches, also in processes that were started before it."""
        if self._trace:
            self._write(self._noted, self.test)
            with open(f"{self._trace}.now", "w") as file:
                file.write(test)
        self.test = test
        self._noted.clear()

    def _note(self, number: int) -> bool:
        if number not in self._noted:
            self._noted.add(number)
            if not self._is_of_tests:  # which write it later: some watch over every file that is opened
                with contextlib.suppress(OSError, ValueError), open(f"{self._trace}.now") as file:
                    self._write({number}, file.read())
        return False

    def _write(self, numbers: set[int], test: str) -> None:
        with open(f"{self._trace}", "a") as file:
            file.writelines(f"{number}\t{test}\n" for number in sorted(numbers))

    def _start_anew(self) -> None:
        self._noted.clear()
        self._is_of_tests = False


if not hasattr(builtins, "__mutant__"):
    setattr(builtins, "mutants_switch", Switch())  # noqa: B010
