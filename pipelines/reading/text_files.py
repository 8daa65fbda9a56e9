"""Text files for the embedded engine: read once into Parquet, each record whole or marked with its own text.

Apache Spark's readers keep a record that does not fit in a column of its own; the embedded engine's fail on it. Here
Arrow (CSV) and the standard library (JSON lines) cut records into texts, and pipelines/reading/text_types.py makes them
what the schema says, so that a record fits, or does not, as it does on Apache Spark.
"""

from __future__ import annotations

import csv
import glob
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq

from contracts.errors import ConfigError, DataError, SchemaError
from contracts.table_files import is_hidden
from pipelines.engine.failures import nothing_to_read
from pipelines.reading.csv_escapes import UNIT, ByteStream, EscapedText, OneCharacter, Uncommented
from pipelines.reading.unclosed_quotes import FEWEST, swallowed_rows, too_long, unclosed

CORRUPT = "_corrupt"  # the text of a record that does not fit the schema, else null
CSV_OPTIONS = frozenset((
    "sep", "delimiter", "quote", "escape", "header", "nullvalue", "comment", "encoding", "charset", "multiline",
    "ignoreleadingwhitespace", "ignoretrailingwhitespace", "mode", "enforceschema", "compression",
))
JSON_OPTIONS = frozenset(("encoding", "charset", "mode", "compression"))
BLOCK = 8 << 20


def known_options(options: Mapping[str, str], known: frozenset[str], what: str, kind: str) -> dict[str, str]:
    """By lower-case name. Raises ConfigError on an option that the embedded engine does not follow."""
    lowered = {name.lower(): value for name, value in options.items()}
    for name in options:
        if name.lower() not in known:
            raise ConfigError(f"{what}.options: the embedded engine knows no option {name!r} of {kind}; leave it out, "
                              'or read with Apache Spark: [spark] master = "local[*]"')
    if lowered.get("mode", "PERMISSIVE").upper() != "PERMISSIVE":
        raise ConfigError(f"{what}.options: mode must be PERMISSIVE, malformed rows are quarantined; leave it out")
    return lowered


def files_at(path: str, what: str) -> list[Path]:
    """The files of a file, a folder (hidden ones left out) or a pattern, sorted. Raises DataError without any."""
    named = [path] if Path(path).exists() else [found for text in alternatives(path) for found in glob.glob(text)]
    places = [Path(name) for name in sorted(named)]
    files = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])
             if not is_hidden(file.relative_to(place) if file != place else Path(file.name)) and file.is_file()]
    if not files:
        raise nothing_to_read(what, path)
    return files


def alternatives(pattern: str) -> list[str]:
    """a.{b,c} -> a.b, a.c."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        return [pattern]
    ends = (pattern[: braces.start()], pattern[braces.end() :])
    return [text for choice in braces[1].split(",") for text in alternatives(choice.join(ends))]


def csv_names(file: Path, options: Mapping[str, str]) -> list[str]:
    """Of the columns: the file's header, or _c0, _c1 ... where it has none."""
    first, _ = _first_record(file, options)
    return first if _yes(options, "header") else [f"_c{number}" for number in range(len(first))]


def _first_record(file: Path, options: Mapping[str, str]) -> tuple[list[str], int]:
    """And the number of the line of the file that it ends with: blank lines and comments may come before it."""
    with pa.input_stream(str(file), compression="detect") as stream:
        text = stream.read(BLOCK).decode(_encoding(options), errors="ignore").removeprefix("\ufeff")
    comment, read = options.get("comment"), 0

    def counted() -> Iterator[str]:
        nonlocal read
        for line in io.StringIO(text, newline=""):
            read += 1
            yield line

    lines = (line for line in counted() if line.strip() and not (comment and line.startswith(comment)))
    if not _yes(options, "multiline"):
        lines = (line.rstrip("\r\n") for line in itertools.islice(lines, 1))
    alike = (line.replace(_written_separator(options), _separator(options)) for line in lines)
    record = next(csv.reader(alike, delimiter=_separator(options), quotechar=_quoting(options)[0]), [])
    return record, read


def stage_csv(files: Sequence[Path], names: Sequence[str], options: Mapping[str, str], folder: Path, what: str) -> None:
    """Writes `folder` with the columns `names` as texts, and CORRUPT for a record of another number of fields.

    Raises SchemaError when a header names other columns, unless the option enforceSchema says that the schema does,
    DataError where a file is not in the encoding of the options, or a quote that is not closed swallows rows.
    """
    folder.mkdir(parents=True)
    for number, file in enumerate(files):
        header, above = _first_record(file, options) if _yes(options, "header") else ([], 0)
        if _yes(options, "header") and not _yes(options, "enforceschema"):
            _check_header(header, names, what, file)
        with pq.ParquetWriter(folder / f"part-{number:05}.parquet", _schema(names), compression="lz4") as writer:
            try:
                for batch in _records(file, names, options, above):
                    writer.write_batch(batch)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                if "straddling object" in str(error):
                    with _lines(file, options) as lines:
                        raise too_long(str(file), f"{BLOCK >> 20} MiB", lines, _separator(options),
                                       _quoting(options)[0]) from None
                if "UTF8" not in str(error) and not isinstance(error, UnicodeDecodeError):
                    raise
                raise not_encoded(what, file, _encoding(options)) from None


def not_encoded(what: str, file: Path, encoding: str) -> DataError:
    """Of a file with bytes that are no text in this encoding."""
    return DataError(f"{what}: {file} holds bytes that are no {encoding}; say how it is written, as in options = {{ "
                     'encoding = "ISO-8859-1" }, or convert it (iconv -f LATIN1 -t UTF-8)')


def _check_header(header: Sequence[str], names: Sequence[str], what: str, file: Path) -> None:
    if [name.lower() for name in header] != [name.lower() for name in names]:
        raise SchemaError(f"{what} ({file}): the CSV header does not conform to the schema: it says "
                          f"{', '.join(header)}; list the columns of schema_ddl in the file's order")


def _schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in (*names, CORRUPT)])


def _records(file: Path, names: Sequence[str], options: Mapping[str, str], above: int) -> Iterator[pa.RecordBatch]:
    """Those below the first `above` lines."""
    misfits: list[str] = []

    def misfit(row: pa.csv.InvalidRow) -> str:
        if row.text.strip():
            misfits.append(row.text)
        return "skip"

    with pa.input_stream(str(file), compression="detect") as stream:
        try:
            reader = pa.csv.open_csv(_as_spark(stream, options, file), *_arrow_options(names, options, above, misfit))
        except pa.ArrowInvalid as error:
            if not any(said in str(error) for said in ("Empty CSV file", "file is too short")):
                raise
            return
        for batch in reader:
            _check_closed(_long_texts(batch, _quoting(options)[0]), file, len(names), options)
            yield _marked(batch)
    _check_closed(misfits, file, len(names), options)
    if misfits:
        empty = [pa.nulls(len(misfits), pa.string()) for _ in names]
        yield pa.record_batch([*empty, pa.array(misfits, pa.string())], schema=_schema(names))


def _long_texts(batch: pa.RecordBatch, quote: str) -> Iterator[str]:
    """Values of so many lines that they might be rows, from their quote on."""
    for column in batch.columns:
        lines = pa.compute.count_substring(column, "\n")
        if (pa.compute.max(lines).as_py() or 0) >= FEWEST:
            yield from (quote + text for text in column.filter(pa.compute.greater_equal(lines, FEWEST)).to_pylist())


def _check_closed(texts: Iterable[str], file: Path, fields: int, options: Mapping[str, str]) -> None:
    """Raises DataError where one of the texts is many rows that a quote has made one."""
    quote, _ = _quoting(options)
    for text in texts:
        rows = swallowed_rows(text, fields, _separator(options), quote)
        if rows:
            with _lines(file, options) as lines:
                raise unclosed(str(file), text.splitlines()[0], rows, lines)


def _lines(file: Path, options: Mapping[str, str]) -> io.TextIOWrapper:
    stream = pa.input_stream(str(file), compression="detect")
    return io.TextIOWrapper(stream, _encoding(options), errors="replace", newline="\n")


def _marked(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column(CORRUPT, pa.nulls(batch.num_rows, pa.string()))


def _arrow_options(
    names: Sequence[str], options: Mapping[str, str], above: int, misfit: object
) -> tuple[pa.csv.ReadOptions, pa.csv.ParseOptions, pa.csv.ConvertOptions]:
    read = pa.csv.ReadOptions(column_names=list(names), skip_rows=above, block_size=BLOCK,
                              encoding="utf-8" if _is_wide(options) else _encoding(options), use_threads=False)
    quote, escape = _quoting(options)
    parse = pa.csv.ParseOptions(
        delimiter=_separator(options), quote_char=quote, double_quote=True,
        escape_char=False if escape == quote else escape, newlines_in_values=_yes(options, "multiline"),
        invalid_row_handler=misfit,
    )
    convert = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[""],
                                    strings_can_be_null=True, quoted_strings_can_be_null=False)
    return read, parse, convert


def _as_spark(stream: pa.NativeFile, options: Mapping[str, str], file: Path) -> ByteStream:
    """The file's text, in which Arrow finds the escapes that Apache Spark finds, and no comments."""
    quote, escape = _quoting(options)
    separator, multiline = _separator(options), _yes(options, "multiline")
    text: ByteStream = stream
    if _is_wide(options):
        text = pa.transcoding_input_stream(stream, _encoding(options), "utf-8")
    if len(_written_separator(options)) > 1:
        text = OneCharacter(text, _written_separator(options))
    if options.get("comment"):
        text = Uncommented(text, options["comment"], separator, quote, escape, multiline)
    return text if escape == quote else EscapedText(text, separator, quote, escape, multiline, str(file))


def _is_wide(options: Mapping[str, str]) -> bool:
    """Whether the encoding does not extend ASCII."""
    return _encoding(options).startswith(("utf-16", "utf-32", "utf16", "utf32"))


def _quoting(options: Mapping[str, str]) -> tuple[str, str]:
    return options.get("quote") or '"', options.get("escape") or "\\"


def _separator(options: Mapping[str, str]) -> str:
    """As Arrow reads it: of one character."""
    written = _written_separator(options)
    return written if len(written) == 1 else UNIT


def _written_separator(options: Mapping[str, str]) -> str:
    return options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")


def _encoding(options: Mapping[str, str]) -> str:
    return options.get("encoding", options.get("charset", "utf-8")).lower()


def _yes(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"
