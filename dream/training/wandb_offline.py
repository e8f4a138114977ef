"""Reading W&B's offline files: the history a run logged, without a server.

A .wandb file is a 7-byte header and a LevelDB log: blocks of 32 KiB, in them records with a 7-byte header (CRC-32C,
length, type), a record cut by a block's end being continued in the next block; each whole record is a protobuf message.
Source: LevelDB's doc/log_format.md.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envs.errors import InputError

_FILE_HEADER, _BLOCK, _RECORD_HEADER = 7, 32768, 7
_FULL, _FIRST, _LAST = 1, 2, 4


def read_offline(run_dir: str | Path) -> list[dict[str, Any]]:
    """Returns what a run logged to W&B offline, one record a call, sessions in order.

    Args:
      run_dir: a run directory, which holds wandb/offline-run-*.
    Raises:
      InputError: no offline run there.
    """
    files = sorted(Path(run_dir).glob("wandb/offline-run-*/*.wandb"))
    if not files:
        raise InputError(
            f"{run_dir} holds no offline W&B run; it must be the directory of a run with tracking.mode=offline"
        )
    return [record for file in files for record in _history(file)]


def _history(file: Path) -> Iterator[dict[str, Any]]:
    from wandb.proto import wandb_internal_pb2

    for message in _messages(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(message)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            yield {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def _messages(data: bytes) -> Iterator[bytes]:
    """Yields the log's records; a last one that was cut off is left out."""
    place, parts = _FILE_HEADER, []
    while place + _RECORD_HEADER <= len(data):
        left = _BLOCK - place % _BLOCK
        if left < _RECORD_HEADER:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        start = place + _RECORD_HEADER
        if kind == 0 or start + length > len(data):
            return
        parts = (
            [*parts, data[start : start + length]] if kind not in (_FULL, _FIRST) else [data[start : start + length]]
        )
        if kind in (_FULL, _LAST):
            yield b"".join(parts)
            parts = []
        place = start + length
