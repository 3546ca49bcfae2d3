"""How values of a session's code look: one dict by media type for each, `text/plain` always in it."""
import binascii
import io
import json

from runner import tables
from runner.exact import exact_json, exact_text, is_exact_text
from runner.media import DEPTH_MAX, DIGITS_MAX, MEDIA_MAX

TEXT_CHARS_MAX = 64 * 1024
JSON_VALUES_MAX = 100_000
MIMEBUNDLE = "_repr_mimebundle_"
# Methods that a class may have, as notebooks know them.
METHODS = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("application/json", "_repr_json_"),
)


def bundle_of(value):
    """What raises an Exception in the value's own methods becomes a line of the text. Interrupts pass."""
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
    """Its repr, bounded."""
    try:
        # No second copy of what is cut off anyway.
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
    """A class itself is no value to be shown that way. Looked up in the class, since some objects have every attribute."""
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
    """What the method gives, without the metadata that may come with it; None where there is no such method."""
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
    elif media != "text/plain" and is_json(data):
        bundle[media] = exact_json(data)
    else:
        notes.append("its %s is neither text nor bytes nor JSON" % media)


def _add_figure(value, bundle, _notes):
    """Figures of matplotlib know themselves as images only where IPython is."""
    if type(value).__module__.partition(".")[0] == "matplotlib" and hasattr(value, "savefig") and "image/png" not in bundle:
        file = io.BytesIO()
        value.savefig(file, format="png", bbox_inches="tight")
        bundle["image/png"] = binascii.b2a_base64(file.getbuffer(), newline=False).decode("ascii")


def _add_table(value, bundle, notes):
    table = tables.table_of(value)
    if table is not None and tables.MEDIA_TYPE not in bundle:
        bundle[tables.MEDIA_TYPE] = table
        if "rowsTotal" in table:
            notes.append("the first %d of %d rows" % (len(table["data"]), table["rowsTotal"]))


def _add_json(value, bundle, _notes):
    if type(value) in (dict, list) and "application/json" not in bundle and is_json(value):
        bundle["application/json"] = exact_json(value)


def is_json(value):
    """Whether it consists of JSON's own types, is not too large, and reads the same everywhere."""
    level, count = [value], 0
    for _depth in range(DEPTH_MAX):
        inner = []
        for item in level:
            count += 1
            if count + len(inner) > JSON_VALUES_MAX or not _is_json_type(item):
                return False
            if type(item) in (dict, list):
                inner += item.values() if type(item) is dict else item
        if not inner:
            return True
        level = inner
    return False


def _is_json_type(item):
    kind = type(item)
    if kind is float:
        # No infinities, and what equals itself.
        return item - item == 0
    if kind is int:
        return item.bit_length() < DIGITS_MAX * 3
    if kind is dict:
        return len(item) <= JSON_VALUES_MAX and all(type(key) is str and is_exact_text(key) for key in item)
    return kind in (str, bool, type(None)) or (kind is list and len(item) <= JSON_VALUES_MAX)


def encoded(document):
    """As bytes. Raises ValueError for what is no JSON after all."""
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
