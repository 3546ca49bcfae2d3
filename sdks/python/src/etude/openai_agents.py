"""A tool for the OpenAI Agents SDK; needs `etude[openai-agents]`."""

from __future__ import annotations

import asyncio

from agents import FunctionTool, function_tool

from etude._interpreter import DESCRIPTION, Interpreter
from etude._sync.client import Etude


def python_tool(client: Etude | None = None, *, template: str = "", ttl: float = 600.0) -> FunctionTool:
    """The tool `run_python`: runs code in a sandbox that keeps names and files between calls."""
    interpreter = Interpreter(client, template=template, ttl=ttl)

    @function_tool(name_override="run_python", description_override=DESCRIPTION)
    async def run_python(code: str) -> str:
        return await asyncio.to_thread(interpreter.run, code)

    return run_python
