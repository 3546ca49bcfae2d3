"""What a cell reports: JSON that is the same to everybody who reads it after us, whatever the code in the cell sent."""
import json
import math

from runner.media import DIGITS_MAX


def document(body, depth_max):
    """The object in `body`. Raises ValueError, RecursionError."""
    found = json.loads(body, parse_constant=_refuse, parse_float=_finite, parse_int=_bounded)
    if type(found) is not dict or not _is_shallow(found, depth_max):
        raise ValueError("a malformed report")
    return found


def bounded_error(report):
    """What a cell says about an exception, bounded and in shape; None where it is no object."""
    if type(report) is not dict:
        return None
    line = report.get("line")
    return {
        "type": str(report.get("type"))[:200],
        "message": str(report.get("message"))[:4000],
        "line": line if type(line) is int and 0 <= line < 2**31 else None,
    }


def _is_shallow(found, depth_max):
    level = [found]
    for _depth in range(depth_max):
        level = [inner for outer in level for inner in (outer.values() if type(outer) is dict else outer) if type(inner) in (dict, list)]
        if not level:
            return True
    return False


def _finite(text):
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _bounded(text):
    return int(text) if len(text) <= DIGITS_MAX else _refuse(text)


def _refuse(text):
    raise ValueError("no number for everybody: %s" % text[:20])
