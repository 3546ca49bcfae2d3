import { randomUUID } from 'node:crypto';
import { toJson } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type Sandbox, SandboxSchema, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { ridingOut } from './ride-out.js';
import { sandboxTable, sandboxText } from './sandbox-lines.js';
import { type CreateOptions, createRequest, sandboxResource } from './sandbox-request.js';

export const LIST_STATES = ['open', 'closed', 'expired', 'lost'] as const;
const STATES = { open: SandboxState.OPEN, closed: SandboxState.CLOSED, expired: SandboxState.EXPIRED, lost: SandboxState.LOST } as const;
const PAGE_MAX = 200;

export const callSettings = (cli: Cli) => ({ timeoutMs: cli.callTimeoutMs, signal: cli.signal });

/** A repeat after a broken connection gives the same sandbox. */
export function openSandbox(cli: Cli, gateway: Gateway, options: CreateOptions): Promise<Sandbox> {
  const request = createRequest(options, randomUUID());
  return ridingOut(cli.signal, () => gateway.sandboxes.createSandbox(request, callSettings(cli)));
}

export function createSandbox(cli: Cli, options: CreateOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const sandbox = await openSandbox(cli, gateway, options);
    cli.out.data(toJson(SandboxSchema, sandbox), sandbox.name);
    return EXIT.ok;
  });
}

/** One sandbox as the call answers it. */
function show(cli: Cli, call: (gateway: Gateway) => Promise<Sandbox>): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const sandbox = await ridingOut(cli.signal, () => call(gateway));
    cli.out.data(toJson(SandboxSchema, sandbox), sandboxText(sandbox));
    return EXIT.ok;
  });
}

export const getSandbox = (cli: Cli, sandbox: string) =>
  show(cli, (gateway) => gateway.sandboxes.getSandbox({ name: sandboxResource(sandbox) }, callSettings(cli)));

export const closeSandbox = (cli: Cli, sandbox: string) =>
  show(cli, (gateway) => gateway.sandboxes.closeSandbox({ name: sandboxResource(sandbox) }, callSettings(cli)));

export function renewSandbox(cli: Cli, sandbox: string, { ttl }: { readonly ttl?: number }): Promise<number> {
  const request = { name: sandboxResource(sandbox), ...(ttl === undefined ? {} : { ttl: durationFromMs(ttl) }) };
  return show(cli, (gateway) => gateway.sandboxes.renewSandbox(request, callSettings(cli)));
}

export interface ListOptions {
  readonly state?: (typeof LIST_STATES)[number];
  readonly limit: number;
}

export function listSandboxes(cli: Cli, { state, limit }: ListOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const sandboxes: Sandbox[] = [];
    let pageToken = '';
    do {
      const request = { pageSize: Math.min(limit - sandboxes.length, PAGE_MAX), pageToken, ...(state ? { state: STATES[state] } : {}) };
      const page = await gateway.sandboxes.listSandboxes(request, callSettings(cli));
      sandboxes.push(...page.sandboxes);
      pageToken = page.nextPageToken;
    } while (pageToken && sandboxes.length < limit);
    const json = { sandboxes: sandboxes.map((sandbox) => toJson(SandboxSchema, sandbox)) };
    cli.out.data(json, sandboxes.length > 0 ? sandboxTable(sandboxes, Date.now()) : '');
    if (sandboxes.length === 0) cli.out.note(`no sandboxes; ${commandLine(cli, 'sandbox create')} makes one`);
    if (pageToken) cli.out.note(`there are more; --limit shows them (now ${limit})`);
    return EXIT.ok;
  });
}
