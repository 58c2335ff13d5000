"""Rows: one value for each sample, method and metric, as Parquet parts that are written whole or not at all."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from saliometer.files import put

COLUMNS = (
    "task", "setting", "model", "method", "metric", "definition", "region", "target", "condition", "sample", "bucket",
    "value", "note",
)  # fmt: skip
_TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema([(name, pa.float64() if name == "value" else _TEXT) for name in COLUMNS])


def block(
    constant: Mapping[str, str], samples: Sequence[str], buckets: Sequence[str], values: npt.NDArray[np.float64],
    notes: Sequence[str],
) -> pa.Table:  # fmt: skip
    """Rows that share all but sample, bucket, value and note."""
    count = len(samples)
    varying = {"sample": samples, "bucket": buckets, "note": notes}

    def column(name: str) -> pa.Array:
        if name == "value":
            return pa.array(values, pa.float64())
        if name in varying:
            return pa.array(list(varying[name]), pa.string()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([constant[name]], pa.string()))

    return pa.table([column(name) for name in COLUMNS], schema=SCHEMA)


def with_texts(rows: pa.Table, name: str, texts: Sequence[str]) -> pa.Table:
    """The same rows, each with its own text in a column that they shared."""
    column = pa.array(list(texts), pa.string()).dictionary_encode()
    return rows.set_column(COLUMNS.index(name), SCHEMA.field(name), column)


def write(path: Path, blocks: Iterable[pa.Table]) -> None:
    """All blocks as one Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables(blocks).combine_chunks(), sink, compression="zstd")
    put(path, sink.getvalue().to_pybytes())


def read(paths: Iterable[Path]) -> pa.Table:
    """The rows of many parts."""
    tables = [pq.read_table(path, schema=SCHEMA) for path in paths]
    return pa.concat_tables(tables).unify_dictionaries() if tables else SCHEMA.empty_table()
