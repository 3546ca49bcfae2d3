"""Speaks to one MCP server with the protocol's official Python client and prints what came back as JSON."""

import argparse
import asyncio
import json
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Request
from pydantic import TypeAdapter

ANY = TypeAdapter(dict[str, Any])


def plain(result):
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


async def ask(client, calls):
    """What each call answers, in order; an error is an answer."""
    answers = []
    for call in calls:
        try:
            answers.append(await one(client, call))
        except Exception as error:
            answers.append({"error": str(error)})
    return answers


async def one(client, call):
    method, params = call["method"], call.get("params", {})
    if method == "tools/list":
        return plain(await client.list_tools())
    if method == "tools/call":
        return plain(await client.call_tool(params["name"], params.get("arguments", {})))
    if method == "resources/read":
        return plain(await client.read_resource(params["uri"]))
    return await client.session.send_request(Request[dict[str, Any], str](method=method, params=params), ANY)


async def main(options):
    async with httpx2.AsyncClient(headers=options.headers, timeout=30) as http:
        server = streamable_http_client(options.url, http_client=http) if options.url else StdioServerParameters(**options.stdio)
        async with Client(server, mode=options.mode) as client:
            answers = await ask(client, options.calls)
            return {"protocolVersion": client.protocol_version, "serverInfo": plain(client.server_info), "answers": answers}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--url")
    parser.add_argument("--headers", type=json.loads, default={})
    parser.add_argument("--stdio", type=json.loads)
    parser.add_argument("--calls", type=json.loads, required=True)
    print(json.dumps(asyncio.run(main(parser.parse_args()))))
