"""Reads the rows of parquet files, with pyarrow."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple

from .foreign import Unreadable

_ROWS = 256
"""Rows that are converted at once."""


def check() -> None:
    """Raises ImportError without pyarrow."""
    import pyarrow.parquet  # noqa: F401


def rows(path: str, size: int) -> Iterator[Tuple[Dict[str, Any], int]]:
    """Each row, and the share of the file's `size` up to it. Raises Unreadable."""
    import pyarrow.parquet

    done = 0
    try:
        with pyarrow.parquet.ParquetFile(path, memory_map=False, page_checksum_verification=True) as file:
            count = file.metadata.num_rows
            for group in range(file.num_row_groups):  # one at a time, of which pyarrow keeps no more
                for batch in file.iter_batches(batch_size=_ROWS, row_groups=[group], use_threads=False):
                    for row in batch.to_pylist():
                        done += 1
                        yield row, size * min(done, count) // max(count, 1)
    except MemoryError as error:
        raise Unreadable(f"{path} cannot be read after row {done}: its sizes are implausible, so it is probably damaged") from error
    except Exception as error:  # pyarrow raises OSError, its own and Python's for damaged files
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise Unreadable(f"{path} cannot be read after row {done}: {first}") from error
    if done != count:
        raise Unreadable(f"{path} has {done} rows, and its footer says {count}")
