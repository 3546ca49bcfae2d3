import { readFileSync } from 'node:fs';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Consolidation } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { CliError } from './cli-error.js';
import { EXIT } from './exit-codes.js';
import { readStackState } from './stack/stack-state.js';
import { keyPath } from './stack/home.js';

/** Every service of one gateway. */
export interface Gateway {
  /** "host:port". */
  readonly address: string;
  readonly tasks: ServiceClient<typeof Tasks>;
  readonly skills: ServiceClient<typeof Skills>;
  readonly memory: ServiceClient<typeof Memory>;
  readonly consolidation: ServiceClient<typeof Consolidation>;
  readonly queues: ServiceClient<typeof Queues>;
  readonly sandboxes: ServiceClient<typeof Sandboxes>;
  readonly agents: ServiceClient<typeof Agents>;
  readonly tools: ServiceClient<typeof Tools>;
  close(): void;
}

/** Where the gateway is and who we are, from flags, environment and the local stack, in this order. */
export interface GatewaySource {
  readonly address?: string | undefined;
  readonly apiKey?: string | undefined;
  /** Folder of the local stack. */
  readonly home: string;
  /** The line that starts a stack in that folder. */
  readonly startLine: string;
}

export function openGateway(address: string, apiKey: string | undefined): Gateway {
  const settings = apiKey ? { apiKey } : {};
  const services = {
    tasks: createServiceClient(Tasks, address, settings),
    skills: createServiceClient(Skills, address, settings),
    memory: createServiceClient(Memory, address, settings),
    consolidation: createServiceClient(Consolidation, address, settings),
    queues: createServiceClient(Queues, address, settings),
    sandboxes: createServiceClient(Sandboxes, address, settings),
    agents: createServiceClient(Agents, address, settings),
    tools: createServiceClient(Tools, address, settings),
  };
  return { address, ...services, close: () => Object.values(services).forEach((service) => service.close()) };
}

function readKey(home: string): string | undefined {
  try {
    return readFileSync(keyPath(home), 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * The local stack's key goes to the local stack only, never to an address that was given.
 *
 * @throws CliError where there is neither an address nor a stack that was started here
 */
export function findGateway({ address, apiKey, home, startLine }: GatewaySource): Gateway {
  if (address) return openGateway(address, apiKey);
  const stack = readStackState(home);
  if (!stack) {
    throw new CliError(EXIT.unavailable, `no gateway: there is no stack in ${home}, and no address was given`, [
      `start one here: ${startLine}`,
      'or use another: --address HOST:PORT (ETUDE_ADDRESS) with --api-key KEY (ETUDE_API_KEY)',
    ]);
  }
  return openGateway(stack.address, apiKey ?? readKey(home));
}
