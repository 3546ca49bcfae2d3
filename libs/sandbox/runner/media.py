"""What the rich outputs of one cell may amount to; kept by the interpreter that sends them, enforced by process 1."""

DISPLAY_BYTES_MAX = 8 * 1024 * 1024
DISPLAYS_MAX = 1000
# Values cost a reader some hundred times the one character that they take in JSON.
VALUES_MAX = 400_000
# Of what a call returned.
RETURNED_VALUES_MAX = 2_000_000
WHAT_TO_DO = "return less, or print a part of it"
MEDIA_MAX = 20
DEPTH_MAX = 200
DIGITS_MAX = 300


def value_excess(body, run):
    """In what the report of a call is too much, as its run asks; None where it is not."""
    parts_max = run.get("valueParts", RETURNED_VALUES_MAX)
    if has_too_many_values(body, parts_max):
        return "the value has more than %d commas and brackets; %s" % (parts_max, WHAT_TO_DO)
    if "valueKiB" in run and len(body) > run["valueKiB"] * 1024:
        return "the value takes more than %d KiB as JSON; %s" % (run["valueKiB"], WHAT_TO_DO)
    return None


def has_too_many_values(body, most=VALUES_MAX):
    """Of an encoded frame. Commas and brackets within text count as well."""
    return body.count(b",") + body.count(b"[") + body.count(b"{") > most
