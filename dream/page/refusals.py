"""What the server refuses, as codes with parameters; `static/strings.js` turns them into sentences.

A refusal is sent as {"code": ..., "params": {...}}, in a message of type `error` or as the `why` of a hint. An
InputError that is none comes from the library, for instance about a file: its line is sent as it is, as `library`.
"""

from __future__ import annotations

from typing import Any

from envs import InputError

LIBRARY = "library"
"""The code of a line that is shown as it is."""
CODES: dict[str, tuple[str, ...]] = {
    LIBRARY: ("text",),
    "hello_first": (),
    "not_text": (),
    "no_json": (),
    "no_object": (),
    "message_too_large": ("size", "most"),
    "part_too_large": ("size", "most"),
    "unknown_type": ("given",),
    "unknown_field": ("message", "field"),
    "wrong_field": ("message", "field", "given"),
    "no_match": (),
    "no_round": (),
    "no_position": (),
    "unknown_game": ("game",),
    "unknown_variant": ("game", "variant"),
    "unknown_player": ("game", "player"),
    "wrong_seats": ("game", "given", "needed"),
    "two_people": (),
    "moved_on": (),
    "not_your_turn": (),
    "not_legal": ("action",),
    "round_over": (),
    "round_not_over": (),
    "match_over": (),
    "cannot_deal": ("game",),
    "no_beliefs": ("game",),
    "no_numbers": ("player",),
    "nothing_hidden": (),
    "no_record": (),
    "file_too_large": ("most",),
    "busy": (),
    "not_kept": ("file", "reason"),
}
"""Code -> the names of its parameters."""


class RefusedError(InputError):
    """Something that the page asked for and cannot have.

    Attributes:
      code: one of CODES.
      params: by name, as CODES has them.
    """

    def __init__(self, code: str, **params: Any) -> None:
        """Takes a code and its parameters."""
        assert params.keys() == set(CODES[code]), (code, params)
        super().__init__(" ".join([code, *(f"{name}={value}" for name, value in params.items())]))
        self.code, self.params = code, params


def as_json(error: InputError) -> dict[str, Any]:
    """Returns `code` and `params` of an error, as they are sent."""
    if isinstance(error, RefusedError):
        return {"code": error.code, "params": error.params}
    return {"code": LIBRARY, "params": {"text": str(error)}}


def message(error: InputError) -> dict[str, Any]:
    """Returns the message that says what is wrong."""
    return {"type": "error", **as_json(error)}
