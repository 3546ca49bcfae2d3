"""Displays of values in a session: one dict by media type for each value, always with `text/plain`."""
import binascii
import io
import itertools

from runner.outcome import MEDIA_MAX
from runner.plain import encode_json, exact_text, is_exact_text

TEXT_CHARS_MAX = 64 * 1024
JSON_VALUES_MAX = 100_000
MIMEBUNDLE = "_repr_mimebundle_"
# Display methods of a class, as in notebooks.
METHODS = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("application/json", "_repr_json_"),
)


def bundle_of(value):
    """The displays of a value. An Exception in its own methods becomes a line of the text; interrupts pass."""
    bundle = {"text/plain": text_of(value)}
    notes = []
    for add in (_add_own_media, _add_figure, _add_table, _add_json):
        try:
            add(value, bundle, notes)
        except Exception as error:
            notes.append("%s was raised while it was displayed" % _name_and_text(error))
    if notes:
        bundle["text/plain"] = "\n".join([bundle["text/plain"], *("(%s)" % note for note in notes)])
    return bundle


def text_of(value):
    """The repr of the value, bounded."""
    try:
        # Cut first, so that no long text is copied.
        long_text = type(value) in (str, bytes, bytearray) and len(value) > TEXT_CHARS_MAX
        text = repr(value[:TEXT_CHARS_MAX]) if long_text else repr(value)
        left_out = len(value) - TEXT_CHARS_MAX if long_text else len(text) - TEXT_CHARS_MAX
    except Exception as error:
        return "<%s whose repr raised %s>" % (type(value).__name__, _name_and_text(error))
    text = exact_text(text)
    return text if left_out <= 0 else "%s... (%d characters more)" % (text[:TEXT_CHARS_MAX], left_out)


def _name_and_text(error):
    try:
        return exact_text(("%s: %s" % (type(error).__name__, error))[:500])
    except Exception:
        return type(error).__name__


def _add_own_media(value, bundle, notes):
    """Adds what the value's display methods return. Looks them up in its class, since some objects have every attribute."""
    if isinstance(value, type):
        return
    found = _called(value, MIMEBUNDLE, notes)
    if isinstance(found, dict):
        for media, data in list(found.items())[:MEDIA_MAX]:
            _put(bundle, exact_text(str(media)[:100]), data, notes)
    for media, name in METHODS:
        if media not in bundle:
            data = _called(value, name, notes)
            if data is not None:
                _put(bundle, media, data, notes)


def _called(value, name, notes):
    """The result of the method, without its metadata; None where the class has no such method or it raises."""
    method = getattr(type(value), name, None)
    if method is None:
        return None
    try:
        found = method(value)
    except Exception as error:
        notes.append("%s raised %s" % (name, _name_and_text(error)))
        return None
    return found[0] if type(found) is tuple and found else found


def _put(bundle, media, data, notes):
    if isinstance(data, (bytes, bytearray, memoryview)):
        bundle[media] = binascii.b2a_base64(data, newline=False).decode("ascii")
    elif isinstance(data, str):
        text = str(data[:TEXT_CHARS_MAX] if media == "text/plain" else data)
        bundle[media] = exact_text(text)
        if not is_exact_text(text):
            notes.append("halves of surrogate pairs in its %s are shown as escapes" % media)
    else:
        found = None if media == "text/plain" else _json_or_none(data)
        if found is None:
            notes.append("its %s is neither text nor bytes nor JSON" % media)
        else:
            bundle[media] = found


def _json_or_none(value):
    try:
        return encode_json(value, JSON_VALUES_MAX)
    except ValueError:
        return None


def _add_figure(value, bundle, _notes):
    """Adds the image of a matplotlib figure, which has a display method of its own only under IPython."""
    if type(value).__module__.partition(".")[0] == "matplotlib" and hasattr(value, "savefig") and "image/png" not in bundle:
        file = io.BytesIO()
        value.savefig(file, format="png", bbox_inches="tight")
        bundle["image/png"] = binascii.b2a_base64(file.getbuffer(), newline=False).decode("ascii")


def _add_table(value, bundle, notes):
    table = table_of(value)
    if table is not None and TABLE_MEDIA_TYPE not in bundle:
        bundle[TABLE_MEDIA_TYPE] = table
        if "rowsTotal" in table:
            notes.append("the first %d of %d rows" % (len(table["data"]), table["rowsTotal"]))


def _add_json(value, bundle, _notes):
    found = _json_or_none(value) if type(value) in (dict, list) else None
    if found is not None:
        bundle.setdefault("application/json", found)


# Tables are shown as data resources: fields with types, and rows as objects.
TABLE_MEDIA_TYPE = "application/vnd.dataresource+json"
ROWS_MAX = 1000
COLUMNS_MAX = 200
CELL_CHARS_MAX = 4096
SAFE_INTEGER = 2**53
FLAT = (str, int, float, bool, type(None))
KINDS = {bool: "boolean", int: "integer", float: "number"}


def table_of(value):
    """{"schema": {"fields": [{"name", "type"}]}, "data": [rows]}, or None where the value is no table.

    A long table has its first rows only; `rowsTotal` is the number of all.
    """
    found = _frame_rows(value) if _is_frame(value) else _listed_rows(value) if type(value) is list and value else None
    if found is None:
        return None
    names, rows, total = found
    # Rows are objects, so names must be unique.
    if not 0 < len(set(names)) == len(names) <= COLUMNS_MAX:
        return None
    cells = [[_cell(item) for item in row] for row in rows]
    fields = [{"name": name, "type": _type_of(row[at] for row in cells)} for at, name in enumerate(names)]
    table = {"schema": {"fields": fields}, "data": [dict(zip(names, row)) for row in cells]}
    if total > len(cells):
        table["rowsTotal"] = total
    return table


def _is_frame(value):
    """Recognises data frames by their attributes, without importing a library."""
    kind = type(value)
    return hasattr(kind, "columns") and hasattr(kind, "to_dict") and (hasattr(kind, "itertuples") or hasattr(kind, "iter_rows"))


def _frame_rows(frame):
    names = [_name(column) for column in frame.columns]
    if not hasattr(type(frame), "itertuples"):
        return names, list(itertools.islice(frame.iter_rows(), ROWS_MAX)), len(frame)
    index = getattr(frame, "index", None)
    # A default index only numbers the rows and is no column; an index with names or groups is one.
    with_index = index is not None and (getattr(index, "name", None) is not None or type(index).__name__ not in ("RangeIndex", "Index"))
    if with_index:
        names.insert(0, _name(getattr(index, "name", None) or "index"))
    return names, list(itertools.islice(frame.itertuples(index=with_index, name=None), ROWS_MAX)), len(frame)


def _listed_rows(values):
    """Names, rows and count of a list of flat dicts with the same keys; None for any other list."""
    head = values[:ROWS_MAX]
    names = list(head[0]) if type(head[0]) is dict else []
    if not names or not all(type(name) is str for name in names):
        return None
    if not all(type(row) is dict and row.keys() == head[0].keys() and all(isinstance(item, FLAT) for item in row.values()) for row in head):
        return None
    return names, [[row[name] for name in names] for row in head], len(values)


def _name(column):
    return exact_text(str(column)[:CELL_CHARS_MAX])


def _cell(value):
    """The value as JSON that all readers understand alike; otherwise as text."""
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if value is None or type(value) is bool:
        return value
    if type(value) is int:
        return value if abs(value) < SAFE_INTEGER else str(value)[:CELL_CHARS_MAX]
    if type(value) is float:
        return value if value - value == 0 else None
    return exact_text(str(value)[:CELL_CHARS_MAX])


def _type_of(column):
    kinds = {KINDS.get(type(value), "string") for value in column if value is not None}
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "any"
