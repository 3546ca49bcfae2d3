"""Test cases of unittest: those that failed fail the check, also where the tests ask for no exit and look at no result."""


def note_failures():
    """A list that gets the exception of every case that fails from now on."""
    from unittest.result import TestResult

    failed = []

    def noting(original):
        def note(self, test, *rest):
            # addSubTest is told of successes as well, addUnexpectedSuccess of no exception.
            problem = rest[-1] if rest else (None, AssertionError("unexpected success"))
            if problem is not None:
                failed.append(problem[1])
            return original(self, test, *rest)

        return note

    for name in ("addError", "addFailure", "addSubTest", "addUnexpectedSuccess"):
        setattr(TestResult, name, noting(getattr(TestResult, name)))
    return failed
