import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SERVICES } from '@etude/contracts/grpc';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { credentials } from '@grpc/grpc-js';
import type { Command } from 'commander';
import { z } from 'zod';
import { CliError, EXIT, explain } from './errors.js';
import { Output } from './output.js';
import { readText } from './files.js';
import { keyPath } from './home/home.js';
import { findStack } from './home/stack-state.js';

const port = z.coerce.number().int().min(1).max(65_535);

/** Environment variables of the command line. Flags override them. */
export const Environment = z.object({
  /** "host:port" of a gateway. Default: the stack of this checkout. */
  ETUDE_ADDRESS: z.string().optional(),
  /** Key of the caller. Unset: the key of the local stack. */
  ETUDE_API_KEY: z.string().optional(),
  /** Folder with the local stack's state; default `.etude` in the checkout. */
  ETUDE_HOME: z.string().optional(),
  /** gRPC port of the gateway that `etude up` starts. If the port is taken, any free port is used. */
  ETUDE_GRPC_PORT: port.default(50_051),
  ETUDE_REST_PORT: port.default(50_080),
  ETUDE_MCP_PORT: port.default(50_090),
  /** First port that the local stack tries for its Redis. */
  ETUDE_REDIS_PORT: port.default(6_379),
  /** PEM file of the certificate authorities to trust. If it is set, the gateway is called over TLS. */
  ETUDE_TLS_CA_PATH: z.string().optional(),
  /** PEM file of a client certificate, for a gateway that requires one. */
  ETUDE_TLS_CERT_PATH: z.string().optional(),
  /** PEM file with the private key of the client certificate. */
  ETUDE_TLS_KEY_PATH: z.string().optional(),
  OPENAI_BASE_URL: z.string().optional(),
  OPENAI_API_KEY: z.string().optional(),
  OPENAI_MODEL: z.string().optional(),
});

export interface Settings extends z.infer<typeof Environment> {
  /** The whole environment, for the processes that `up` starts. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** @throws CliError with one line per variable that is wrong */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = Environment.safeParse(given);
  if (parsed.success) return { ...parsed.data, environment };
  const lines = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new CliError(EXIT.usage, 'environment variables are wrong', lines);
}

type Clients = { readonly [name in keyof typeof SERVICES]: ServiceClient<(typeof SERVICES)[name]> };

export interface Gateway extends Clients {
  readonly address: string;
  close(): void;
}

type TlsSettings = Pick<Settings, 'ETUDE_TLS_CA_PATH' | 'ETUDE_TLS_CERT_PATH' | 'ETUDE_TLS_KEY_PATH'>;

/** @throws CliError for a file that can't be read */
function credentialsOf({ ETUDE_TLS_CA_PATH: ca, ETUDE_TLS_CERT_PATH: cert, ETUDE_TLS_KEY_PATH: key }: TlsSettings) {
  if (ca === undefined) return {};
  const [root, own, chain] = [ca, key, cert].map((path) => (path === undefined ? null : Buffer.from(readText(path))));
  return { credentials: credentials.createSsl(root, own, chain) };
}

function openGateway(address: string, apiKey: string | undefined, tls: TlsSettings): Gateway {
  const settings = { ...(apiKey ? { apiKey } : {}), ...credentialsOf(tls) };
  const clients = Object.entries(SERVICES).map(([name, service]) => [name, createServiceClient(service, address, settings)] as const);
  const services = Object.fromEntries(clients) as unknown as Clients;
  return { address, ...services, close: () => clients.forEach(([, client]) => client.close()) };
}

/** @throws CliError if no gateway is given and no local stack runs */
async function findGateway(cli: Cli): Promise<Gateway> {
  const { globals, settings, home } = cli;
  const address = globals.address ?? settings.ETUDE_ADDRESS;
  const apiKey = globals.apiKey ?? settings.ETUDE_API_KEY;
  if (address) return openGateway(address, apiKey, settings);
  const stack = await findStack(home);
  if (!stack) {
    throw new CliError(EXIT.unavailable, `no gateway: no stack runs in ${home}, and no address was given`, [
      `start one here: ${commandLine(cli, 'up')}`,
      'or use another: --address HOST:PORT (ETUDE_ADDRESS) with --api-key KEY (ETUDE_API_KEY)',
    ]);
  }
  // Only the local stack gets the local stack's key. A given address never gets it.
  return openGateway(stack.address, apiKey ?? readFileSync(keyPath(home), 'utf8').trim(), settings);
}

/** Root of the checkout; the launcher runs `apps/cli/dist/main.js` in it. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url)).replace(/\/$/, '');

export interface GlobalOptions {
  readonly json?: boolean;
  readonly address?: string;
  readonly apiKey?: string;
  readonly home?: string;
  /** Timeout of one call, in ms. */
  readonly timeout: number;
}

export interface Cli {
  readonly out: Output;
  readonly settings: Settings;
  readonly globals: GlobalOptions;
  /** Folder of the local stack, absolute. */
  readonly home: string;
  readonly root: string;
  /** Aborts on Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
}

/** A command line to copy, with --home and --address if they differ from the defaults. */
export function commandLine({ home, globals, settings }: Pick<Cli, 'home' | 'globals' | 'settings'>, words: string): string {
  const usual = home === resolve(settings.ETUDE_HOME ?? `${ROOT}/.etude`);
  const address = globals.address === undefined ? '' : ` --address ${globals.address}`;
  return `./etude ${words}${usual ? '' : ` --home ${home}`}${address}`;
}

export type Handler = (cli: Cli) => Promise<number>;
/** Runs the handler with the flags that `command` was given, and ends the process with its exit code. */
export type Start = (command: Command, handler: Handler) => Promise<void>;

export function createCli(
  settings: Settings,
  globals: GlobalOptions,
  signal: AbortSignal,
  out = new Output(process.stdout, process.stderr, globals.json === true),
): Cli {
  return {
    out,
    settings,
    globals,
    home: resolve(globals.home ?? settings.ETUDE_HOME ?? `${ROOT}/.etude`),
    root: ROOT,
    signal,
  };
}

/** Opens the gateway for one command and always closes it. @throws CliError for a failed call */
export async function withGateway<T>(cli: Cli, work: (gateway: Gateway) => Promise<T>): Promise<T> {
  const gateway = await findGateway(cli);
  try {
    return await work(gateway);
  } catch (error) {
    throw explain(error, gateway.address);
  } finally {
    gateway.close();
  }
}
