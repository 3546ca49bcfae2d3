"""Errors of the database."""


class Missing(Exception):
    pass


class Taken(Exception):
    pass


class Refused(Exception):
    pass


def dump(value):
    if isinstance(value, list):
        return [dump(each) for each in value]
    if isinstance(value, dict):
        return {name: dump(each) for name, each in value.items()}
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value
