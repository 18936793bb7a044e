"""The exceptions of the library. Wrong input from outside is an `InputError`: one line that says what to do."""


class InputError(ValueError):
    """Wrong input (a data file, a recipe, an argument); its message is the one line that the user sees."""


class NotFiniteError(ArithmeticError):
    """A loss or a score is NaN or infinite."""


class StoppedError(Exception):
    """A run was asked to stop; its state is saved."""


def first_line(error: Exception) -> str:
    """The first line of what a library says, for a message of one line."""
    return (str(error).splitlines() or ["no message"])[0]
