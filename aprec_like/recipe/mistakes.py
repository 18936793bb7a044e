"""Messages for mistakes in a recipe: which setting was meant, and which value has the wrong type."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
from types import FrameType
from typing import Any

from aprec_like.errors import InputError

REFUSAL = " Received: "
"""Part of the messages with which our classes refuse a setting, whatever the class of the error."""
UNKNOWN_SETTING = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")
PLAIN_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "int": (int, "a whole number"),
    "float": ((int, float), "a number"),
    "str": (str, "a text"),
    "bool": (bool, "True or False"),
}
"""Types of settings by annotation, and their names, for settings whose class does not check them itself."""


def explain(error: Exception) -> str:
    """Return what is wrong on one line: the message of a refused setting, the class and the message of other errors."""
    message = " ".join(str(error).split()) or "no message"
    if type(error) in (ValueError, InputError) or REFUSAL in message:
        return message
    explained = (_unknown_setting(error, message) or _wrong_type(error)) if type(error) is TypeError else None
    return explained or f"{type(error).__name__}: {message}"


def _frames(error: Exception) -> list[FrameType]:
    """Return the frames of an error, the innermost last."""
    return (
        [frame.frame for frame in inspect.getinnerframes(error.__traceback__, context=0)] if error.__traceback__ else []
    )


def _unknown_setting(error: Exception, message: str) -> str | None:
    """Return the settings that a call could have had; a preset such as gSASRec passes unknown ones on to its model."""
    if not (found := UNKNOWN_SETTING.search(message)) or not (frames := _frames(error)):
        return None
    called, unknown = found.groups()
    names = _parameters(_find(frames[-1], called))
    for frame in frames:
        if unknown in next((frame.f_locals[name] for name in _catch_all(frame)), {}):
            names = [*_parameters(_find(frame, frame.f_code.co_name)), *names]
            called = frame.f_code.co_name
    if not names:
        return None
    close = difflib.get_close_matches(unknown, names, n=1) or [name for name in names if name.startswith(unknown)]
    hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(dict.fromkeys(names))}"
    return f"{called} has no setting {unknown!r}; {hint}"


def _find(frame: FrameType, name: str) -> Any:
    return frame.f_locals.get(name) or frame.f_globals.get(name)


def _catch_all(frame: FrameType) -> list[str]:
    """Return the name of a function's `**` parameter, if it has one."""
    code = frame.f_code
    if not code.co_flags & inspect.CO_VARKEYWORDS:
        return []
    place = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    return [code.co_varnames[place]]


def _parameters(called: Any) -> list[str]:
    """Return the names that a class or function can be called with."""
    if not callable(called):
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, parameter in inspect.signature(called).parameters.items() if parameter.kind in kinds]


def _wrong_type(error: Exception) -> str | None:
    """Return which plain setting of the class that was being made has a value of another type."""
    for frame in reversed(_frames(error)):
        made = frame.f_locals.get("self")
        if frame.f_code.co_name == "__post_init__" and dataclasses.is_dataclass(made):
            for field in dataclasses.fields(made):
                kind, expected = PLAIN_TYPES.get(str(field.type), (object, ""))
                value = getattr(made, field.name)
                if not isinstance(value, kind):
                    return f"{type(made).__name__} needs {field.name} to be {expected}. Received: {value!r}"
    return None
