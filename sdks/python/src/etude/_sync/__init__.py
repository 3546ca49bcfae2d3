# Generated from ../_async/__init__.py by tools/generate.py; don't edit.
"""The synchronous client."""
