import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { addService, listenGrpc, type ServedCall } from '@etude/contracts/grpc-server';
import { FakeGateway } from './fake-gateway.js';

/** A scripted gateway behind a real gRPC port. */
export interface McpGateway {
  readonly address: string;
  readonly fake: FakeGateway;
  stop(): Promise<void>;
}

const keyOf = ({ metadata }: ServedCall) => ({ authorization: String(metadata.get('authorization')[0] ?? '') });

function handlersOf(calls: object): never {
  const entries = Object.entries(calls as Record<string, (request: object, settings: object) => Promise<object>>);
  return Object.fromEntries(
    entries.map(([name, handle]) => [
      name,
      (request: object, call: ServedCall) => handle(request, { signal: call.signal, metadata: keyOf(call) }),
    ]),
  ) as never;
}

export async function startMcpGateway(): Promise<McpGateway> {
  const fake = new FakeGateway();
  const settings = { open: (call: ServedCall) => call, onMistake: () => undefined };
  const server = await listenGrpc('127.0.0.1', 0, (grpc) => {
    addService(grpc, Tools, handlersOf(fake.tools), settings);
    addService(grpc, Skills, handlersOf(fake.skills), settings);
  });
  return { address: `127.0.0.1:${server.port}`, fake, stop: () => server.close(1_000) };
}
