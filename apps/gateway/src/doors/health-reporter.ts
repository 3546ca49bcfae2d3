import { create, toBinary } from '@bufbuild/protobuf';
import { FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Consolidation } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { SERVICES } from '@etude/contracts/grpc';
import type { HealthCheck } from '@etude/platform/health';
import type { Server } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';

const EVERY_MS = 1_000;
const NEED_REDIS: ReadonlySet<string> = new Set([Tasks.typeName, Queues.typeName, Consolidation.typeName, Sandboxes.typeName]);

const works = (check: HealthCheck) =>
  check().then(
    () => true,
    () => false,
  );

/** `grpc.health.v1`: each service as what it needs works; the whole ("") once every service does. */
export class HealthReporter {
  readonly #health = new HealthImplementation(
    Object.fromEntries(['', ...SERVICES.map((s) => s.typeName)].map((name) => [name, 'NOT_SERVING'])),
  );
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    private readonly redis: HealthCheck,
    private readonly memory: HealthCheck,
  ) {}

  addToServer(server: Server): void {
    this.#health.addToServer(server);
  }

  /** Looks now and then once a second. */
  async start(): Promise<void> {
    await this.#look();
    if (!this.#closed) this.#timer = setTimeout(() => void this.start(), EVERY_MS).unref();
  }

  async #look(): Promise<void> {
    const [redis, memory] = await Promise.all([works(this.redis), works(this.memory)]);
    if (this.#closed) return;
    for (const { typeName } of SERVICES) this.#set(typeName, NEED_REDIS.has(typeName) ? redis : memory);
    this.#set('', redis && memory);
  }

  #set(service: string, serving: boolean): void {
    this.#health.setStatus(service, serving ? 'SERVING' : 'NOT_SERVING');
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const name of ['', ...SERVICES.map((s) => s.typeName)]) this.#set(name, false);
  }
}

const method = (name: string, input: string, output: string, serverStreaming = false) => ({
  name,
  inputType: `.grpc.health.v1.${input}`,
  outputType: `.grpc.health.v1.${output}`,
  serverStreaming,
});
const statuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const response = '.grpc.health.v1.HealthCheckResponse';

const file = create(FileDescriptorProtoSchema, {
  name: 'grpc/health/v1/health.proto',
  package: 'grpc.health.v1',
  syntax: 'proto3',
  messageType: [
    { name: 'HealthCheckRequest', field: [{ name: 'service', number: 1, type: Type.STRING, label: Label.OPTIONAL }] },
    {
      name: 'HealthCheckResponse',
      field: [{ name: 'status', number: 1, type: Type.ENUM, label: Label.OPTIONAL, typeName: `${response}.ServingStatus` }],
      enumType: [{ name: 'ServingStatus', value: statuses.map((name, number) => ({ name, number })) }],
    },
    { name: 'HealthListRequest' },
    {
      name: 'HealthListResponse',
      field: [
        {
          name: 'statuses',
          number: 1,
          type: Type.MESSAGE,
          label: Label.REPEATED,
          typeName: '.grpc.health.v1.HealthListResponse.StatusesEntry',
        },
      ],
      nestedType: [
        {
          name: 'StatusesEntry',
          field: [
            { name: 'key', number: 1, type: Type.STRING, label: Label.OPTIONAL },
            { name: 'value', number: 2, type: Type.MESSAGE, label: Label.OPTIONAL, typeName: response },
          ],
          options: { mapEntry: true },
        },
      ],
    },
  ],
  service: [
    {
      name: 'Health',
      method: [
        method('Check', 'HealthCheckRequest', 'HealthCheckResponse'),
        method('List', 'HealthListRequest', 'HealthListResponse'),
        method('Watch', 'HealthCheckRequest', 'HealthCheckResponse', true),
      ],
    },
  ],
});

/** `grpc.health.v1` for reflection. The health package's own descriptor does not survive its loader: map entries lose their types. */
export const healthReflection = {
  'grpc.health.v1.Health': { fileDescriptorProtos: [Buffer.from(toBinary(FileDescriptorProtoSchema, file))] },
};
