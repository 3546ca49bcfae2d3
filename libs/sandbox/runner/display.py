"""Displays of values in a session: a dict by media type for each value, always with `text/plain`."""
import binascii
import io
import json
import math

from runner.plain import EXACT_INT, described, exact_text

TEXT_CHARS_MAX = 64 * 1024
TABLE_MEDIA_TYPE = "application/vnd.dataresource+json"
ROWS_MAX = 1000
# Display methods of a class, as in notebooks. `_repr_mimebundle_` returns data by media type.
METHODS = (
    ("_repr_mimebundle_", None),
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_json_", "application/json"),
)


def bundle_of(value):
    """All forms of a value, by media type. If a method of the value raises an Exception, the text/plain form says so."""
    bundle = {"text/plain": _text(value)}
    for name, form_of in FORMS:
        try:
            for media, data in (form_of(value) or {}).items():
                if data is not None and media not in bundle:
                    bundle[exact_text(str(media))] = _told(data)
        except Exception as error:
            bundle["text/plain"] += "\n(%s raised %s)" % (name, _name_and_text(error))
    return bundle


def _text(value):
    try:
        text = exact_text(repr(value))
    except Exception as error:
        return "<%s whose repr raised %s>" % (type(value).__name__, _name_and_text(error))
    left_out = len(text) - TEXT_CHARS_MAX
    return text if left_out <= 0 else "%s... (%d characters more)" % (text[:TEXT_CHARS_MAX], left_out)


def _name_and_text(error):
    return "%(type)s: %(message).500s" % described(error, None)


def _told(data):
    if isinstance(data, (bytes, bytearray, memoryview)):
        return binascii.b2a_base64(data, newline=False).decode("ascii")
    if isinstance(data, str):
        return exact_text(str(data))
    return _as_json(data)


def _as_json(value):
    """The value as JSON, with {"$int": digits} for integers that readers would round. Raises TypeError, ValueError, RecursionError."""
    body = json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    return json.loads(body, parse_int=lambda digits: int(digits) if abs(int(digits)) <= EXACT_INT else {"$int": digits})


def _method(name, media):
    """A function that calls this method of a value, if its class has the method, and drops the metadata of the result."""

    def form_of(value):
        method = None if isinstance(value, type) else getattr(type(value), name, None)
        found = method and method(value)
        data = found[0] if type(found) is tuple and found else found
        return {media: data} if media else data

    return form_of


def _figure(value):
    """The image of a matplotlib figure. Figures have a display method of their own only under IPython."""
    if type(value).__module__.partition(".")[0] != "matplotlib" or not hasattr(value, "savefig"):
        return None
    file = io.BytesIO()
    value.savefig(file, format="png", bbox_inches="tight")
    return {"image/png": file.getvalue()}


def _table(value):
    """The first rows of a data frame as a data resource; `rowsTotal` counts all rows if there are more. Imports no library."""
    kind = type(value)
    if not hasattr(kind, "columns") or not hasattr(kind, "to_dict"):
        return None
    frame = value.head(ROWS_MAX)
    index = getattr(frame, "index", None)
    # An index that has names or groups becomes a column, but not a default index, which only numbers the rows.
    if index is not None and (index.name is not None or type(index).__name__ not in ("RangeIndex", "Index")):
        frame = frame.reset_index()
    names = [str(column) for column in frame.columns]
    if len(set(names)) < len(names):
        return None
    rows = frame.iter_rows() if hasattr(kind, "iter_rows") else frame.itertuples(index=False, name=None)
    data = [dict(zip(names, map(_cell, row))) for row in rows]
    table = {"schema": {"fields": [{"name": name} for name in names]}, "data": data}
    return {TABLE_MEDIA_TYPE: {**table, "rowsTotal": len(value)} if len(value) > len(data) else table}


def _cell(value):
    """The value if all readers of JSON read it as the same value, otherwise its text."""
    if value is None or type(value) in (bool, str) or (type(value) is int and abs(value) < EXACT_INT):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return str(value)


def _listed(value):
    try:
        return {"application/json": _as_json(value)} if type(value) in (dict, list) else None
    except (TypeError, ValueError, RecursionError):
        return None


FORMS = (*((name, _method(name, media)) for name, media in METHODS), ("savefig", _figure), ("its table", _table), ("its JSON", _listed))
