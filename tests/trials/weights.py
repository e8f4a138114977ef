"""Weight files whose card or header asks for more than a policy's shape, or holds other arrays than it says."""

from __future__ import annotations

import json
import pathlib
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dream
import envs
from dream.storage.policy_file import named, to_bytes
from trials import networks

Made = Callable[[], bytes]


def _file(header: Any, data: bytes = b"", size: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def _parts() -> tuple[dict[str, Any], bytes]:
    whole = networks.export()
    size = struct.unpack("<Q", whole[:8])[0]
    return json.loads(whole[8 : 8 + size]), whole[8 + size :]


def _header(change: Callable[[dict[str, Any]], Any]) -> Made:
    """Returns what makes an export with its header changed."""

    def made() -> bytes:
        header, data = _parts()
        change(header)
        return _file(header, data)

    return made


def _text(change: Callable[[str], str]) -> Made:
    """Returns what makes an export with its card's text changed."""

    def made() -> bytes:
        header, data = _parts()
        header["__metadata__"]["dream_card"] = change(header["__metadata__"]["dream_card"])
        return _file(header, data)

    return made


def _card(**changes: Any) -> Made:
    return lambda: networks.export(**changes)


def _learner(
    name: str, network: Any = networks.NETWORK, env: Any = None, policy: str = "current", **settings: Any
) -> Made:
    """Returns what makes an export whose card names a learner."""

    def made() -> bytes:
        game = env or {"name": networks.GAME, "rules": {}}
        changes = {"env": game, "network": network, "algo": {"name": name, **settings}, "acts": None, "policy": policy}
        try:
            changes["game"] = envs.make(game["name"], **game["rules"]).identity
        except ValueError:
            changes["game"] = {"name": game["name"], "version": "1"}
        return networks.export(**changes)

    return made


def _network(**node: Any) -> Made:
    return _card(network={"name": "dueling", **node})


def _arrays(change: Callable[[dict[str, np.ndarray]], Any]) -> Made:
    def made() -> bytes:
        arrays = named(networks.parameters())
        change(arrays)
        return to_bytes(networks.card(), arrays)

    return made


def _kind(name: str) -> Made:
    """Returns what makes an export whose first array is of another kind of the same size or a smaller one."""
    sizes = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I32": 4, "U32": 4, "X9": 4}

    def change(header: dict[str, Any]) -> None:
        entry = header["advantages.b"]
        start, end = entry["data_offsets"]
        entry["dtype"], entry["shape"] = name, [(end - start) // sizes[name]]

    return _header(change)


_MINI = {"name": "mini_gin_rummy", "rules": {"num_ranks": 13, "num_suits": 4, "hand_size": 10, "max_turns": 8}}
CASES: dict[str, Made] = {
    "nothing": lambda: b"",
    "seven bytes": lambda: b"\x00" * 7,
    "a header of 2^62 bytes": lambda: _file({}, size=2**62),
    "a header of 90 MB": lambda: _file(b" " * 90_000_000),
    "a header longer than the file": lambda: _file({}, size=1000),
    "no header": lambda: _file(b"text"),
    "a deep header": lambda: _file(b'{"x": ' + b"[" * 10**6 + b"]" * 10**6 + b"}"),
    "a header of a list": lambda: _file([]),
    "no card": _header(lambda h: h.pop("__metadata__")),
    "a card under another name": _header(lambda h: h.update(__metadata__={"card": "{}"})),
    "an array of 2^50 numbers": _header(lambda h: h["advantages.b"].update(shape=[2**50])),
    "an array of a negative size": _header(lambda h: h["advantages.b"].update(shape=[-1])),
    "places beyond the file": _header(lambda h: h["advantages.b"].update(data_offsets=[0, 2**40])),
    "places that overlap": _header(lambda h: h["value.b"].update(data_offsets=h["advantages.b"]["data_offsets"])),
    "places the wrong way round": _header(lambda h: h["value.b"].update(data_offsets=[9, 3])),
    "bfloat16": _kind("BF16"), "float8": _kind("F8_E4M3"), "another float8": _kind("F8_E5M2"),
    "whole numbers": _kind("I32"), "an unknown kind": _kind("X9"),
    "a name of a megabyte": _header(lambda h: h.update({"x" * 10**6: h.pop("value.b")})),
    "a name of escapes": _header(lambda h: h.update({"\x1b[2J\nvalue": h.pop("value.b")})),
    "a hundred thousand empty arrays": _header(
        lambda h: h.update({f"x{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(100_000)})
    ),
    "an array less": _arrays(lambda a: a.pop("value.b")),
    "an array more": _arrays(lambda a: a.update(more=np.ones(2))),
    "an array of another shape": _arrays(lambda a: a.update({"value.b": np.ones(2, np.float32)})),
    "an array of doubles": _arrays(lambda a: a.update({"value.b": np.ones(1)})),
    "a card that is no JSON": _text(lambda t: "text"),
    "a card that is a list": _text(lambda t: "[]"),
    "a deep card": _text(lambda t: '{"format": 1, "env": ' + "[" * 10**5 + "]" * 10**5 + "}"),
    "a card of 5,000 digits": _text(lambda t: t[:-1] + ', "seed": ' + "9" * 5000 + "}"),
    "a card of 30 digits": _text(lambda t: t.replace('"parameters": 1', '"parameters": ' + "9" * 30)),
    "a card of a huge float": _text(lambda t: t.replace('"temperature": 1.0', '"temperature": 1e999')),
    "a card of NaN": _text(lambda t: t.replace('"temperature": 1.0', '"temperature": NaN')),
    "a card of a megabyte": _card(source="x" * 2**21),
    "a card of escapes": _card(policy="\x1b[2J\n"),
    "a card of thousands of values": _card(acts={str(n): n for n in range(5000)}),
    "format 2": _card(format=2),
    "format as a list": _card(format=[1]),
    "an unknown key": _text(lambda t: t[:-1] + ', "path": "/etc/passwd"}'),
    "an iteration below 0": _card(iteration=-5),
    "a game that is a text": _text(lambda t: t.replace('"game": {', '"game": "x", "games": {')),
    "a game without a version": _card(game={"name": networks.GAME}),
    "rules that are a list": _card(game={**envs.make(networks.GAME).identity, "rules": [1]}),
    "another game's name": _card(game=envs.make("kuhn_poker").identity),
    "an unknown game": _card(env={"name": "../../etc/passwd", "rules": {}}),
    "an env without a name": _card(env={"rules": {}}),
    "an unknown rule": _card(env={"name": networks.GAME, "rules": {"name": 1}}),
    "a player on the host": _card(env={"name": networks.GAME, "rules": {}}, network={"name": "openspiel:random"}),
    "layers of 2^30": _network(hidden=[2**30, 2**30]),
    "layers of 2^40": _network(hidden=[2**40]),
    "a million layers": _network(hidden=[1] * 1900),
    "sixty-four wide layers": _network(hidden=[2**31 - 1] * 64),
    "no layers": _network(hidden=[]),
    "layers as a text": _network(hidden="abc"),
    "a network without a name": _card(network={"hidden": [8]}),
    "a network that is a list": _card(network=[1]),
    "a network whose name is a list": _card(network={"name": ["dueling"]}),
    "no network": _card(network=None),
    "a million blocks": _card(network={"name": "simba", "width": 8, "blocks": 10**6}),
    "blocks as many as fit": _card(network={"name": "simba", "width": 2**20, "blocks": 64}),
    "a convolution of 2^30": _card(network={"name": "card_planes", "channels": 2**30, "hidden": [8], "head": 2**30}),
    "acts by another rule": _card(acts={"by": "eval", "temperature": 1.0}),
    "acts as a list": _card(acts=[1]),
    "no acts": _card(acts=None),
    "opponents that are a file": _learner("ppo", opponents=["/etc/passwd"]),
    "opponents on the hub": _learner("ppo", opponents=["hf:owner/repo/file.pkl"]),
    "opponents on the host": _learner("ppo", opponents=["openspiel:simple_gin_rummy"]),
    "opponents by name": _learner("ppo", opponents=["random"], shares=[1.0]),
    "an assistant that is a file": _learner("ppo", assistant="hf:owner/repo/file.pkl"),
    "games beyond memory": _learner("ppo", episodes_per_iteration=2**30, batch_size=2**30),
    "a memory of 2^31": _learner("sd_cfr", memory={"capacity": 2**31}),
    "a memory of 2^30": _learner("sd_cfr", memory={"capacity": 2**30}),
    "an average of 2^30": _learner("os_sd_cfr", policy="average", average={"capacity": 2**30, "source": "network"}),
    "a whole tree": _learner("cfr", policy="average"),
    "the whole tree of a huge game": _learner("cfr", env=_MINI, policy="average"),
    "sampling in a huge game": _learner("external_mccfr", env=_MINI),
    "an average over a huge tree": _learner("deep_cfr", env=_MINI, policy="average"),
    "another policy of a table": _learner("cfr", policy="best"),
    "another policy": _learner("ppo", policy="best"),
    "an unknown learner": _learner("../dream"),
    "a learner whose name is a list": _card(algo={"name": ["ppo"]}),
    "a learner that is a list": _card(algo=[1]),
    "a setting unknown": _learner("ppo", path="/etc/passwd"),
    "a learning rate of another type": _learner("ppo", learning_rate="fast"),
    "a schedule of another form": _learner("dueling_dream", temperature={"start": [1]}),
}  # fmt: skip


def cases(count: int, seed: int, folder: pathlib.Path) -> Iterator[tuple[str, str, Made]]:
    """Yields name, file name and what makes the file."""
    for name, made in CASES.items():
        yield name, "policy.safetensors", made


def warm_up(folder: pathlib.Path) -> None:
    """Reads a sound export; what the trials import and compile is there."""
    (folder / "sound.safetensors").write_bytes(networks.export())
    dream.load_policy(folder / "sound.safetensors")


def read(path: pathlib.Path) -> None:
    """Reads a file as any trained player."""
    dream.load_policy(path)


def must_be_refused(name: str) -> bool:
    """All are wrong."""
    return True
