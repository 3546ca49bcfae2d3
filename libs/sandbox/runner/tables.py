"""Tables among the values of a session's code, as data resources: fields with types, and rows as objects."""
import itertools

from runner.exact import exact_text

MEDIA_TYPE = "application/vnd.dataresource+json"
ROWS_MAX = 1000
COLUMNS_MAX = 200
TEXT_CHARS_MAX = 4096
SAFE_INTEGER = 2**53
FLAT = (str, int, float, bool, type(None))


def table_of(value):
    """{"schema": {"fields": [{"name", "type"}]}, "data": [rows]}, or None where the value is no table.

    Of long ones the first rows, and `rowsTotal` says how many there are.
    """
    if isinstance(value, type):
        return None
    found = _frame_rows(value) if _is_frame(value) else _listed_rows(value) if type(value) is list and value else None
    if found is None:
        return None
    names, rows, total = found
    if not 0 < len(names) <= COLUMNS_MAX:
        return None
    names = _distinct(names)
    cells = [[_cell(item) for item in row] for row in rows]
    fields = [{"name": name, "type": _type_of(row[at] for row in cells)} for at, name in enumerate(names)]
    table = {"schema": {"fields": fields}, "data": [dict(zip(names, row)) for row in cells]}
    if total > len(cells):
        table["rowsTotal"] = total
    return table


def _is_frame(value):
    """By its shape: no library is imported for it."""
    kind = type(value)
    return hasattr(kind, "columns") and hasattr(kind, "to_dict") and (hasattr(kind, "itertuples") or hasattr(kind, "iter_rows"))


def _frame_rows(frame):
    names = [_name(column) for column in frame.columns]
    if not hasattr(type(frame), "itertuples"):
        return names, list(itertools.islice(frame.iter_rows(), ROWS_MAX)), len(frame)
    index = getattr(frame, "index", None)
    # The numbers of the rows are no column; what rows were named or grouped by is.
    with_index = index is not None and (getattr(index, "name", None) is not None or type(index).__name__ not in ("RangeIndex", "Index"))
    if with_index:
        names.insert(0, _name(getattr(index, "name", None) or "index"))
    return names, list(itertools.islice(frame.itertuples(index=with_index, name=None), ROWS_MAX)), len(frame)


def _listed_rows(values):
    """Flat dicts with the same keys, named tuples or dataclasses of one class."""
    head = values[:ROWS_MAX]
    first = head[0]
    if type(first) is dict:
        names = list(first)
        if not all(type(row) is dict and row.keys() == first.keys() for row in head):
            return None
        rows = [[row[name] for name in names] for row in head]
        if not names or not all(type(name) is str for name in names) or not all(isinstance(item, FLAT) for row in rows for item in row):
            return None
        return names, rows, len(values)
    if not all(type(row) is type(first) for row in head) or isinstance(first, type):
        return None
    if isinstance(first, tuple) and hasattr(type(first), "_fields"):
        return list(type(first)._fields), head, len(values)
    fields = getattr(type(first), "__dataclass_fields__", None)
    if fields:
        names = [name for name in fields if hasattr(first, name)]
        return names, [[getattr(row, name, None) for name in names] for row in head], len(values)
    return None


def _name(column):
    return exact_text(str(column)[:TEXT_CHARS_MAX])


def _distinct(names):
    """Rows are objects, in which a name can't come twice."""
    seen = {}
    for name in names:
        candidate, number = name, 2
        while candidate in seen:
            candidate, number = "%s.%d" % (name, number), number + 1
        seen[candidate] = True
    return list(seen)


def _cell(value):
    """As JSON that every reader takes for the same; text where there is none."""
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if value is None or type(value) is bool:
        return value
    if type(value) is int:
        return value if abs(value) < SAFE_INTEGER else str(value)[:TEXT_CHARS_MAX]
    if type(value) is float:
        return value if value - value == 0 else None
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(type(value), "isoformat"):
        return str(value.isoformat())
    return exact_text(str(value)[:TEXT_CHARS_MAX])


def _type_of(column):
    kinds = {_kind(value) for value in column if value is not None}
    if kinds == {"integer", "number"}:
        return "number"
    return kinds.pop() if len(kinds) == 1 else "any"


def _kind(value):
    if type(value) is bool:
        return "boolean"
    return {int: "integer", float: "number"}.get(type(value), "string")
