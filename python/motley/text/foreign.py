"""Files that are not read, recognized by their first bytes, with the remedy."""

from __future__ import annotations

from typing import Optional

COMPRESSED = {b"\x1f\x8b": "gunzip --keep", b"\x28\xb5\x2f\xfd": "unzstd", b"\xfd7zXZ": "unxz --keep", b"BZh": "bunzip2 --keep",
              b"PK\x03\x04": "unzip"}
"""The command that unpacks a file, by its first bytes."""

COMPRESSED_ENDINGS = (".gz", ".zst", ".xz", ".bz2", ".zip")


class Unreadable(Exception):
    """A file that cannot be read to its end; the text is for the user."""


def foreign(name: str, start: bytes) -> Optional[str]:
    """Why a file with these first bytes (4 at least, if it has them) is not text."""
    for magic, command in COMPRESSED.items():
        if start.startswith(magic):
            return f"{name} is compressed. Unpack it with `{command} {name}`"
    if start.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return f"{name} is UTF-32. Convert it with `iconv -f UTF-32 -t UTF-8`"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"{name} is UTF-16. Convert it with `iconv -f UTF-16 -t UTF-8`"
    zeros = [byte == 0 for byte in start[:4]]
    if zeros in ([False, True] * 2, [True, False] * 2):
        return f"{name} is UTF-16 without a byte order mark. Convert it with `iconv -f UTF-16{'BE' if zeros[0] else 'LE'} -t UTF-8`"
    if start.startswith(b"PAR1"):
        return f"{name} is a parquet file. Rename it to .parquet"
    return None


def check(name: str, start: bytes) -> None:
    """Raises Unreadable."""
    why = foreign(name, start)
    if why is not None:
        raise Unreadable(why)
