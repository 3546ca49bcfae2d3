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
const NAMES = ['', ...Object.values(SERVICES).map(({ typeName }) => typeName)];

const works = (check: HealthCheck) =>
  check().then(
    () => true,
    () => false,
  );

/** `grpc.health.v1`: a service is SERVING while its stores work; the whole ("") while all services are. */
export class HealthReporter {
  readonly #health = new HealthImplementation(Object.fromEntries(NAMES.map((name) => [name, 'NOT_SERVING'])));
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    private readonly redis: HealthCheck,
    private readonly memory: HealthCheck,
  ) {}

  addToServer(server: Server): void {
    this.#health.addToServer(server);
  }

  /** Checks now, then every second. */
  async start(): Promise<void> {
    const [redis, memory] = await Promise.all([works(this.redis), works(this.memory)]);
    if (this.#closed) return;
    this.#tell((name) => (name === '' ? redis && memory : NEED_REDIS.has(name) ? redis : memory));
    this.#timer = setTimeout(() => void this.start(), EVERY_MS).unref();
  }

  #tell(isServing: (name: string) => boolean): void {
    for (const name of NAMES) this.#health.setStatus(name, isServing(name) ? 'SERVING' : 'NOT_SERVING');
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#tell(() => false);
  }
}
