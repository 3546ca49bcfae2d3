"""Calls over gRPC, with deadlines, retries, and streams that resume automatically."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from grpc import aio

from etude._errors import EtudeError, error_of
from etude._settings import Key, Tls, metadata_of
from etude._values import pause, with_request_id

_MESSAGE_MAX_BYTES = 16 * 1024 * 1024
_OPTIONS = [
    ("grpc.max_receive_message_length", _MESSAGE_MAX_BYTES),
    ("grpc.max_send_message_length", _MESSAGE_MAX_BYTES),
    ("grpc.http2.max_pings_without_data", 0),
]
# If the gateway no longer answers, a stream breaks 40 s after the last data, and is resumed.
_KEEPALIVE_MS = 30_000

Answer = TypeVar("Answer", bound=Message)


Page = TypeVar("Page", bound=Message)
Event = TypeVar("Event", bound=Message)
Item = TypeVar("Item")


class AsyncCalls:
    """Makes calls for one caller.

    timeout: timeout of one call, in seconds. retry_for: seconds for which failed calls are repeated.
    keepalive_ms: time without data after which the gateway is pinged. A ping's timeout is a third of it.
    """

    def __init__(
        self, address: str, key: Key, tls: Tls | None, timeout: float, retry_for: float, keepalive_ms: int = _KEEPALIVE_MS
    ) -> None:
        self._key = key
        self._timeout = timeout
        self._retry_for = retry_for
        keepalive = [("grpc.keepalive_time_ms", keepalive_ms), ("grpc.http2.ping_timeout_ms", keepalive_ms // 3)]
        if tls is None:
            self._channel = aio.insecure_channel(address, options=[*_OPTIONS, *keepalive])
        else:
            self._channel = aio.secure_channel(address, tls.credentials(), options=[*_OPTIONS, *keepalive])

    async def close(self) -> None:
        await self._channel.close()

    async def unary(
        self, method: str, request: Message, answer: type[Answer], *, timeout: float | None = None, repeatable: bool = True
    ) -> Answer:
        """Makes a call such as "Tasks/GetTask", and repeats it for up to `retry_for` seconds while a retry can help.

        A request that can have a request id gets one, so that a repeat changes nothing twice.
        """
        call = self._channel.unary_unary(
            f"/etude.v1.{method}", request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString
        )
        with_request_id(request)
        retry = _Retry(self._retry_for if repeatable else 0.0)
        while True:
            try:
                return await call(request, timeout=timeout or self._timeout, metadata=metadata_of(self._key))
            except grpc.RpcError as error:
                await asyncio.sleep(retry.seconds_or_raise(error_of(error)))

    async def upload(self, method: str, parts: Iterable[Message], answer: type[Answer], *, timeout: float | None = None) -> Answer:
        """Sends parts, and returns the answer to all of them. An upload is not repeated."""
        parts = list(parts)
        call = self._channel.stream_unary(
            f"/etude.v1.{method}", request_serializer=type(parts[0]).SerializeToString, response_deserializer=answer.FromString
        )
        try:
            return await call(iter(parts), timeout=timeout or self._timeout * 10, metadata=metadata_of(self._key))
        except grpc.RpcError as error:
            raise error_of(error) from None

    async def pages(
        self, method: str, request: Message, answer: type[Page], items: Callable[[Page], Iterable[Item]]
    ) -> AsyncIterator[Item]:
        """Yields the items of all pages."""
        while True:
            page = await self.unary(method, request, answer)
            for item in items(page):
                yield item
            token: str = getattr(page, "next_page_token")
            if not token:
                return
            setattr(request, "page_token", token)

    async def stream(self, method: str, request: Message, answer: type[Answer]) -> AsyncIterator[Answer]:
        """Yields the messages of one stream, without a deadline."""
        call = self._channel.unary_stream(
            f"/etude.v1.{method}", request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString
        )
        stream = call(request, metadata=metadata_of(self._key))
        try:
            async for message in stream:
                yield message
        except grpc.RpcError as error:
            raise error_of(error) from None
        finally:
            stream.cancel()

    async def resuming(
        self, method: str, open_from: Callable[[str], Message], event: type[Event], last: str
    ) -> AsyncIterator[Event]:
        """Yields each event once up to the kind `last`. A broken stream is reopened after the last event seen."""
        token = ""
        # The time for retries begins when the stream breaks, because the caller may process an event for long.
        retry: _Retry | None = None
        while True:
            try:
                async for one in self.stream(method, open_from(token), event):
                    token, retry = getattr(one, "resume_token"), None
                    yield one
                    if one.WhichOneof("event") == last:
                        return
                broken = EtudeError("the stream ended before its last event", code="UNAVAILABLE", retry_after=0.0)
            except EtudeError as error:
                broken = error
            retry = retry or _Retry(self._retry_for)
            await asyncio.sleep(retry.seconds_or_raise(broken))


class _Retry:
    """Paces the repeats of one call."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._attempt = 0

    def seconds_or_raise(self, error: EtudeError) -> float:
        """Seconds before the next try. Raises the error if a retry can't help, or the time is over."""
        if error.retry_after is None:
            raise error from None
        seconds = pause(self._attempt, error.retry_after)
        if time.monotonic() + seconds > self._end:
            raise error from None
        self._attempt += 1
        return seconds
