import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CreateSandboxRequestSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { SandboxLimitsSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';

/** Flags that bound one execution, or every one of a sandbox. Times in ms. */
export interface LimitOptions {
  readonly cpu?: number;
  readonly wall?: number;
  readonly memory?: number;
  readonly processes?: number;
  readonly fileSize?: number;
  readonly output?: number;
  readonly disk?: number;
}

export interface CreateOptions extends LimitOptions {
  readonly template?: string;
  readonly ttl?: number;
  readonly label?: Readonly<Record<string, string>>;
  readonly requestId?: string;
}

/** "sandboxes/{sandbox}" from either form of writing it. */
export const sandboxResource = (sandbox: string) => (sandbox.startsWith('sandboxes/') ? sandbox : `sandboxes/${sandbox}`);

const time = (name: 'cpuTime' | 'wallTime' | 'ttl', ms: number | undefined) => (ms === undefined ? {} : { [name]: durationFromMs(ms) });

/** What is not given stays the default of the sandbox. */
export const limitsOf = (options: LimitOptions): MessageInitShape<typeof SandboxLimitsSchema> => ({
  ...time('cpuTime', options.cpu),
  ...time('wallTime', options.wall),
  memoryMib: options.memory ?? 0,
  processes: options.processes ?? 0,
  fileSizeMib: options.fileSize ?? 0,
  outputKib: options.output ?? 0,
  diskMib: options.disk ?? 0,
});

/** @param requestId makes a repeat harmless */
export const createRequest = (options: CreateOptions, requestId: string): MessageInitShape<typeof CreateSandboxRequestSchema> => ({
  requestId: options.requestId ?? requestId,
  template: options.template ?? '',
  limits: limitsOf(options),
  ...time('ttl', options.ttl),
  labels: options.label ?? {},
});
