"""The one exception that means: the input from outside is wrong, and here is what to do about it."""


class InputError(ValueError):
    """Wrong input (a data file, a recipe, an argument); its message is the one line that the user sees."""


def first_line(error: Exception) -> str:
    """The first line of what a library says, for a message of one line."""
    return (str(error).splitlines() or ["no message"])[0]
