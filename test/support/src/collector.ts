import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CollectedSpan {
  /** `service.name` of the process. */
  readonly service: string;
  readonly traceId: string;
  readonly id: string;
  /** Empty for the first span of a trace. */
  readonly parentId: string;
  readonly name: string;
  readonly failed: boolean;
  readonly values: Readonly<Record<string, unknown>>;
}

/** A trace collector that receives OTLP over HTTP as protobuf, and keeps all spans. */
export async function startCollector() {
  const spans: CollectedSpan[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await request.toArray());
    if (request.url === '/v1/traces') spans.push(...spansIn(body));
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  };
  const server = createServer((request, response) => void take(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    spans,
    env: {
      ETUDE_TRACES: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Field numbers of opentelemetry/proto/trace/v1/trace.proto. */
const SPAN = { traceId: 1, id: 2, parentId: 4, name: 5, values: 9, status: 15 };

function spansIn(request: Buffer): CollectedSpan[] {
  return all(request, 1).flatMap((resourceSpans) => {
    const service = String(valuesIn(all(all(resourceSpans, 1)[0]!, 1))['service.name']);
    const spans = all(resourceSpans, 2).flatMap((scopeSpans) => all(scopeSpans, 2));
    return spans.map((span) => {
      const hex = (field: number) => all(span, field)[0]?.toString('hex') ?? '';
      const failed = all(span, SPAN.status).some((status) => fieldsOf(status).some(([field, code]) => field === 3 && code === 2n));
      const [traceId, id, parentId] = [hex(SPAN.traceId), hex(SPAN.id), hex(SPAN.parentId)];
      return { service, traceId, id, parentId, name: String(all(span, SPAN.name)[0]), failed, values: valuesIn(all(span, SPAN.values)) };
    });
  });
}

const valuesIn = (pairs: readonly Buffer[]) =>
  Object.fromEntries(pairs.map((pair) => [String(all(pair, 1)[0]), valueOf(all(pair, 2)[0] ?? Buffer.alloc(0))]));

/** An `AnyValue`: text, boolean, integer, double or array. */
function valueOf(any: Buffer): unknown {
  const [field, value] = fieldsOf(any)[0] ?? [];
  if (field === 5) return all(value as Buffer, 1).map(valueOf);
  if (field === 4) return (value as Buffer).readDoubleLE();
  return field === 1 ? String(value) : field === 2 ? value === 1n : Number(value);
}

const all = (message: Buffer, field: number) => fieldsOf(message).flatMap(([number, value]) => (number === field ? [value as Buffer] : []));

/** The fields of a protobuf message, in order: a bigint for a varint, else the bytes. */
function fieldsOf(message: Buffer): Array<[number, Buffer | bigint]> {
  const fields: Array<[number, Buffer | bigint]> = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]!;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const bytes = (length: number) => message.subarray(at, (at += length));
  while (at < message.length) {
    const tag = Number(varint());
    const type = tag & 7;
    fields.push([tag >> 3, type === 0 ? varint() : bytes(type === 1 ? 8 : type === 5 ? 4 : Number(varint()))]);
  }
  return fields;
}
