"""Files on the Hugging Face hub, by references of the form hf:<owner>/<repo>/<file>; needs the extra `hub`."""

from __future__ import annotations

from pathlib import Path

from envs.errors import InputError

PREFIX = "hf:"


def is_reference(reference: object) -> bool:
    """Returns whether it names a file on the hub."""
    return isinstance(reference, str) and reference.startswith(PREFIX)


def download(reference: str) -> Path:
    """Returns the local copy of a file on the hub, from the cache where it is there.

    Whatever huggingface_hub reads from its environment holds: HF_HOME, HF_HUB_OFFLINE, HF_TOKEN, ...

    Args:
      reference: hf:<owner>/<repo>/<file>; the file may be in folders.
    Raises:
      InputError: no such form, no such file, no connection, or huggingface_hub is not installed.
    """
    parts = reference.removeprefix(PREFIX).split("/")
    if len(parts) < 3 or not all(part.strip(".") for part in parts):
        raise InputError(f"{reference} is not valid; it must be {PREFIX}<owner>/<repo>/<file>")
    try:
        import huggingface_hub
    except ImportError as error:
        raise InputError(
            f"{reference} needs huggingface_hub; install it with: pip install 'dream-rummy[hub]'"
        ) from error
    try:
        return Path(huggingface_hub.hf_hub_download("/".join(parts[:2]), "/".join(parts[2:])))
    except Exception as error:  # the library, its transport and the file system each have their own
        raise InputError(f"{reference} cannot be loaded from the hub ({_summary(error)})") from error


def _summary(error: Exception) -> str:
    """Returns the first sentence of an error on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
