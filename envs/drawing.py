"""Drawings of positions, as plain text or SVG (host side).

A game describes a position as a `Scene`; the two functions here draw any scene. Suits have four colours and are drawn
as paths, so that no font and no other file is needed. All text is escaped.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr


@dataclasses.dataclass(frozen=True)
class Card:
    """A playing card.

    Attributes:
      rank: "A", "2" to "9", "T", "J", "Q" or "K"; empty for a card that is face down.
      suit: "S", "H", "D" or "C"; empty for a card without suit.
      marked: whether it is highlighted, for instance a card just taken.
    """

    rank: str = ""
    suit: str = ""
    marked: bool = False

    def __str__(self) -> str:
        return (f"{self.rank}{self.suit}" or "??") + ("*" if self.marked else "")


@dataclasses.dataclass(frozen=True)
class Die:
    """A die; face 1 to 6, 0 where it is hidden."""

    face: int = 0

    def __str__(self) -> str:
        return f"[{self.face or '?'}]"


@dataclasses.dataclass(frozen=True)
class Group:
    """Pieces that belong together: a meld, what is left of a hand, a stack.

    Attributes:
      pieces: cards or dice, in order.
      note: a few words about them.
    """

    pieces: tuple[Card | Die, ...]
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Row:
    """One place of the table.

    Attributes:
      title: whose or what it is.
      groups: what is there.
      note: what else to know of it, for instance the deadwood.
      active: whether it is that player's turn.
    """

    title: str
    groups: tuple[Group, ...] = ()
    note: str = ""
    active: bool = False


@dataclasses.dataclass(frozen=True)
class Scene:
    """Everything that is drawn.

    Attributes:
      title: the game, and how it stands.
      rows: from top to bottom.
      lines: of text below them.
    """

    title: str
    rows: tuple[Row, ...]
    lines: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture as an object that notebooks draw, and that prints as text."""

    text: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.text


def card(name: str, *, marked: bool = False) -> Card:
    """Returns a card by its name, e.g. "7H", or "K" where there are no suits."""
    return Card(name[:1].upper(), name[1:2].upper(), marked)


def spread(names: Iterable[str], note: str = "", marked: Iterable[str] = ()) -> Group:
    """Returns a group of cards by their names, those in `marked` set off."""
    chosen = set(marked)
    return Group(tuple(card(name, marked=name in chosen) for name in names), note)


def face_down(count: int) -> Group:
    """Returns so many cards face down."""
    return Group((Card(),) * count)


def to_text(scene: Scene) -> str:
    """Writes a scene as lines of text; ">" stands before the player to act, "*" after a card set off."""
    lines = [scene.title]
    width = max((len(row.title) for row in scene.rows), default=0)
    for row in scene.rows:
        groups = " | ".join(_group_text(group) for group in row.groups if group.pieces or group.note)
        note = f"({row.note})" if row.note and row.groups else row.note
        parts = [part for part in (groups, note) if part]
        lines.append(f"{'>' if row.active else ' '} {row.title:<{width}}  {'  '.join(parts)}".rstrip())
    return "\n".join([*lines, *scene.lines])


def _group_text(group: Group) -> str:
    words = []
    for hidden, pieces in itertools.groupby(group.pieces, key=lambda piece: piece == Card()):
        some = list(pieces)
        words += [f"{len(some)} face down"] if hidden else [str(piece) for piece in some]
    return " ".join([*words, group.note] if group.note else words)


_CARD_WIDTH, _CARD_HEIGHT = 46, 66
_STEP, _HIDDEN_STEP, _GAP = 26, 11, 16
"""From one card of a group to the next, face up and face down; between groups."""
_MARGIN, _TITLE_HEIGHT, _ROW_GAP = 12, 20, 14
_MOST_WIDTH = 720
_BACK, _INK, _FELT, _NOTE = "#31527c", "#1a1a1a", "#f4f1e8", "#4a4a4a"
COLOURS = {"S": "#1a1a1a", "H": "#b80f24", "D": "#1657b0", "C": "#11682f"}
_SUIT_NAMES = {"S": "spades", "H": "hearts", "D": "diamonds", "C": "clubs"}
_PATHS = {
    "S": "M0-9C3-5 9-1 9 4C9 8 4 9 1.5 6C2 9 3 10 4.5 11H-4.5C-3 10-2 9-1.5 6C-4 9-9 8-9 4C-9-1-3-5 0-9Z",
    "H": "M0 10C-3 5-9 1-9-4C-9-9-2-10 0-5C2-10 9-9 9-4C9 1 3 5 0 10Z",
    "D": "M0-10L8 0L0 10L-8 0Z",
    "C": "M0-9A4.5 4.5 0 0 1 3.6-1.8A4.5 4.5 0 1 1 1.2 5C1.8 8 3 10 4.5 11H-4.5C-3 10-1.8 8-1.2 5"
    "A4.5 4.5 0 1 1-3.6-1.8A4.5 4.5 0 0 1 0-9Z",
}
"""Suits around the origin, ten units up and down."""
_PIPS = {1: "c", 2: "nw se", 3: "nw c se", 4: "nw ne sw se", 5: "nw ne c sw se", 6: "nw ne w e sw se"}
_PLACES = {"nw": (-1, -1), "ne": (1, -1), "w": (-1, 0), "e": (1, 0), "c": (0, 0), "sw": (-1, 1), "se": (1, 1)}


def to_svg(scene: Scene) -> str:
    """Draws a scene: an SVG element with a title and the text of the scene as its description."""
    parts: list[str] = []
    y, width = _MARGIN + _TITLE_HEIGHT, _text_width(scene.title)
    parts.append(_text(_MARGIN, y - 6, scene.title, weight="bold"))
    for row in scene.rows:
        drawn, bottom, right = _row(row, y + 4)
        parts += drawn
        y, width = bottom + _ROW_GAP, max(width, right)
    for line in scene.lines:
        parts.append(_text(_MARGIN, y + 4, line, size=12))
        y, width = y + 17, max(width, _text_width(line))
    size = f"{width + _MARGIN} {y}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{size.split()[0]}" height="{y}" '
        f'role="img" font-family="DejaVu Sans, Arial, sans-serif">'
    )
    about = f"<title>{clean(scene.title)}</title><desc>{clean(to_text(scene))}</desc>"
    return f'{head}{about}<rect width="100%" height="100%" rx="8" fill="{_FELT}"/>{"".join(parts)}</svg>'


def clean(text: str) -> str:
    """Returns text for XML: escaped, what XML cannot hold replaced."""
    return escape("".join(char if _allowed(char) else "\ufffd" for char in text))


def _allowed(char: str) -> bool:
    return char in "\t\n\r" or " " <= char < "\ud800" or "\ue000" <= char < "\ufffe" or char >= "\U00010000"


def _row(row: Row, y: int) -> tuple[list[str], int, int]:
    """Returns the elements of a row from y down, where it ends below and where on the right."""
    marker = "\u25b6 " if row.active else ""
    title, note = marker + row.title, row.note
    left = _MARGIN + _text_width(title) + 10
    parts = [_text(_MARGIN, y + 14, title, weight="bold")]
    if note:
        parts.append(_text(left, y + 14, note, fill=_NOTE))
    x, top, right = _MARGIN, y + _TITLE_HEIGHT, left + _text_width(note)
    bottom = top
    for group in row.groups:
        width = _group_width(group)
        if not width:
            continue
        if x > _MARGIN and x + width > _MOST_WIDTH:
            x, top = _MARGIN, bottom + 6
        parts += _group(group, x, top)
        x, right = x + width + _GAP, max(right, x + width)
        bottom = max(bottom, top + _CARD_HEIGHT + (16 if group.note else 0))
    return parts, bottom, right


def _steps(pieces: Sequence[Card | Die]) -> list[int]:
    """Returns where each piece of a group begins, and the group's end."""
    places = [0]
    for piece in pieces:
        dice = isinstance(piece, Die)
        places.append(places[-1] + (_CARD_WIDTH + 6 if dice else _HIDDEN_STEP if piece == Card() else _STEP))
    return places


def _group_width(group: Group) -> int:
    cards = _steps(group.pieces)[-2] + _CARD_WIDTH if group.pieces else 0
    return max(cards, _text_width(group.note))


def _group(group: Group, x: int, y: int) -> list[str]:
    places = _steps(group.pieces)
    parts = [
        _die(piece, x + at, y) if isinstance(piece, Die) else _card(piece, x + at, y)
        for piece, at in zip(group.pieces, places, strict=False)
    ]
    if group.note:
        parts.append(_text(x, y + (_CARD_HEIGHT if group.pieces else 0) + 13, group.note, fill=_NOTE, size=11))
    return parts


def _card(piece: Card, x: int, y: int) -> str:
    """Returns a card's elements; rank and suit stand in its left corner, where a fan of cards shows them."""
    shape = f'<rect width="{_CARD_WIDTH}" height="{_CARD_HEIGHT}" rx="5" '
    if not piece.rank:
        inner = f'<rect x="4" y="4" width="{_CARD_WIDTH - 8}" height="{_CARD_HEIGHT - 8}" rx="3" fill="none" '
        back = f'{shape}fill="{_BACK}" stroke="#fff"/>{inner}stroke="#9fb6d4" stroke-dasharray="2 2"/>'
        return f'<g transform="translate({x} {y})" aria-label="face down">{back}</g>'
    colour = COLOURS.get(piece.suit, _INK)
    edge = 'stroke="#c77700" stroke-width="3"' if piece.marked else 'stroke="#555"'
    rank = "10" if piece.rank == "T" else piece.rank
    label = f"{rank} of {_SUIT_NAMES[piece.suit]}" if piece.suit in _SUIT_NAMES else rank
    marks = _text(4, 17, rank, fill=colour, weight="bold", size=15)
    if piece.suit in _PATHS:
        path = f'd="{_PATHS[piece.suit]}" fill="{colour}"'
        marks += f'<path transform="translate(11 29) scale(.72)" {path}/>'
        marks += f'<path transform="translate(30 48) scale(1.1)" {path}/>'
    return (
        f'<g transform="translate({x} {y})" aria-label={quoteattr(clean(label))}>{shape}fill="#fff" {edge}/>{marks}</g>'
    )


def _die(piece: Die, x: int, y: int) -> str:
    size = _CARD_WIDTH
    shape = f'<rect width="{size}" height="{size}" rx="8" fill="{"#fff" if piece.face else _BACK}" stroke="#555"/>'
    middle, far = size // 2, size // 4
    dots = [_PLACES[place] for place in _PIPS.get(piece.face, "").split()]
    pips = "".join(
        f'<circle cx="{middle + far * right}" cy="{middle + far * down}" r="4" fill="{_INK}"/>' for right, down in dots
    )
    label = str(piece.face) if piece.face else "hidden"
    return f'<g transform="translate({x} {y})" aria-label="die {label}">{shape}{pips}</g>'


def _text(x: int, y: int, text: str, *, fill: str = _INK, weight: str = "normal", size: int = 13) -> str:
    style = f'font-size="{size}" font-weight="{weight}" fill="{fill}"'
    return f'<text x="{x}" y="{y}" {style}>{clean(text)}</text>'


def _text_width(text: str) -> int:
    """Returns about how wide a text is drawn."""
    return 8 * len(text)
