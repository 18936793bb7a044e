"""Exceptions of the library."""


class InputError(ValueError):
    """Invalid input: a data file, a recipe or an argument. The message is one line that says what to do."""


class NotFiniteError(ArithmeticError):
    """A loss or a score is NaN or infinite."""


class StoppedError(Exception):
    """A run stopped on request, after saving its state."""


def first_line(error: Exception) -> str:
    """Return the first line of the message of another library's exception, for a message of one line."""
    return (str(error).splitlines() or ["no message"])[0]
