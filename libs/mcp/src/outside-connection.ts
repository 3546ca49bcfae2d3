import { tmpdir } from 'node:os';
import { unlessAborted } from '@etude/contracts/errors';
import type { Json } from '@etude/contracts/json';
import type { OutsideListing, OutsideOutcome, OutsideServer } from '@etude/contracts/outside-tools';
import { Client, ProtocolError, SdkError, SdkErrorCode, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { DEFAULT_INHERITED_ENV_VARS, StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { z } from 'zod';
import { outsideFetch } from './outside-fetch.js';
import { type OutsideSettings, type OutsideTarget, targetOf } from './outside-settings.js';
import { type CheckedTool, checkedTool, failure, outcomeOf } from './outside-tool.js';

const LIST_KEPT_MS = 600_000;
const TOOLS_MAX = 100;
const PAGES_MAX = 100;
/** A stdio server of an older protocol may never answer the request for its version, so this wait is short. */
const PROBE_MS = 2_000;

const Page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

interface Listed {
  readonly tools: ReadonlyMap<string, CheckedTool>;
  readonly problems: readonly string[];
}

/** One server of one agent. Connects at the first use, and again after a lost connection. */
export class OutsideConnection {
  #client: Promise<Client> | undefined;
  #listed: { readonly at: number; readonly work: Promise<Listed> } | undefined;
  /** Hides the secrets, once they are read. Texts are masked before they are cut, since a part of a secret isn't recognised. */
  #masked: OutsideTarget['masked'] = (value) => value;
  readonly #stop = new AbortController();

  constructor(
    private readonly server: OutsideServer,
    private readonly tenant: string,
    private readonly settings: OutsideSettings,
  ) {}

  /** A failure is returned in `problems`. @throws the signal's reason */
  async list(signal: AbortSignal): Promise<OutsideListing> {
    try {
      const { tools, problems } = await unlessAborted(this.#tools(), signal);
      const shown = [...tools.values()].map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
      return { tools: shown, problems };
    } catch (error) {
      signal.throwIfAborted();
      return { tools: [], problems: [this.#told(error)] };
    }
  }

  /** A failure is returned as the outcome. @throws the signal's reason */
  async call(tool: string, args: Readonly<Record<string, Json>>, signal: AbortSignal): Promise<OutsideOutcome> {
    try {
      const { tools } = await unlessAborted(this.#tools(), signal);
      const known = tools.get(tool);
      if (known === undefined)
        return failure(`server "${this.server.name}" has no tool "${tool}"; it has: ${[...tools.keys()].join(', ')}`);
      const problem = known.problemOf(args);
      if (problem !== null) return failure(`the arguments of ${known.name} are wrong: ${problem}`);
      const limits = { ...this.#limits(), toolDefinition: known.definition };
      const result = await this.#ask((client) => client.callTool({ name: tool, arguments: args }, { ...limits, signal }), signal);
      return outcomeOf(this.#masked(result));
    } catch (error) {
      signal.throwIfAborted();
      return failure(this.#told(error));
    }
  }

  /** Closes the connection. A process that it started ends within about four seconds. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the connection was closed'));
    await this.#drop(this.#client);
  }

  async #drop(lost: Promise<Client> | undefined): Promise<void> {
    if (this.#client === lost) this.#client = undefined;
    // A connection that was never made has nothing to end.
    await lost?.then((client) => client.close()).catch(() => undefined);
  }

  /** Sends a request. A failure drops the connection, except an error that the server sent, an abort, or a time-out over HTTP. */
  async #ask<T>(request: (client: Client) => Promise<T>, signal: AbortSignal): Promise<T> {
    const connecting = this.#connected();
    const client = await unlessAborted(connecting, signal);
    try {
      return await request(client);
    } catch (error) {
      const isGood = error instanceof ProtocolError || signal.aborted || (isTimeout(error) && this.server.url !== undefined);
      if (!isGood) await this.#drop(connecting);
      throw error;
    }
  }

  #limits() {
    const { timeoutMs } = this.server;
    return { timeout: timeoutMs, maxTotalTimeout: timeoutMs };
  }

  #told(error: unknown): string {
    const { name, timeoutMs } = this.server;
    const why = isTimeout(error) ? `did not answer within ${timeoutMs} ms` : `failed: ${messagesOf(error)}`;
    return this.#masked(`server "${name}" ${why}`);
  }

  #tools(): Promise<Listed> {
    if (this.#listed !== undefined && Date.now() - this.#listed.at < LIST_KEPT_MS) return this.#listed.work;
    const listed = { at: Date.now(), work: this.#askForTools() };
    this.#listed = listed;
    listed.work.catch(() => {
      if (this.#listed === listed) this.#listed = undefined;
    });
    return listed.work;
  }

  async #askForTools(): Promise<Listed> {
    const signal = AbortSignal.timeout(this.server.timeoutMs);
    const limits = { ...this.#limits(), signal };
    const told: unknown[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < PAGES_MAX; page++) {
      const request = { method: 'tools/list', params: cursor === undefined ? {} : { cursor } };
      const answer = await this.#ask((client) => client.request(request, Page, limits), this.#stop.signal);
      told.push(...this.#masked(answer.tools));
      cursor = answer.nextCursor;
      if (cursor === undefined || told.length > TOOLS_MAX) break;
    }
    return this.#checked(told);
  }

  #checked(told: readonly unknown[]): Listed {
    const { name: server, tools: allowed } = this.server;
    const tools = new Map<string, CheckedTool>();
    const problems: string[] =
      told.length > TOOLS_MAX ? [`server "${server}" has more than ${TOOLS_MAX} tools; the others are left out`] : [];
    for (const one of told.slice(0, TOOLS_MAX)) {
      const name = String((one as { readonly name?: unknown } | null)?.name).slice(0, 128);
      if (allowed.length > 0 && !allowed.includes(name)) continue;
      try {
        if (tools.has(name)) throw new Error('is listed twice');
        tools.set(name, checkedTool(server, one));
      } catch (error) {
        problems.push(`tool "${name}" of server "${server}" is left out: ${messagesOf(error).slice(0, 300)}`);
      }
    }
    const missing = allowed.filter((name) => !tools.has(name));
    if (missing.length > 0) problems.push(`server "${server}" offers no usable tool ${missing.map((name) => `"${name}"`).join(', ')}`);
    return { tools, problems };
  }

  /** The connection, which concurrent calls share. So no caller's signal ends it. */
  #connected(): Promise<Client> {
    if (this.#client !== undefined) return this.#client;
    const opening = this.#open();
    this.#client = opening;
    const forget = () => {
      if (this.#client === opening) this.#client = undefined;
    };
    opening.then((client) => Object.assign(client, { onclose: forget }), forget);
    return opening;
  }

  async #open(): Promise<Client> {
    this.#stop.signal.throwIfAborted();
    const { url, timeoutMs } = this.server;
    const target = targetOf(this.server, this.tenant, this.settings);
    this.#masked = target.masked;
    const probe = { timeoutMs: url === undefined ? Math.min(PROBE_MS, timeoutMs) : timeoutMs };
    const client = new Client({ name: 'etude', version: '1' }, { versionNegotiation: { mode: 'auto', probe } });
    try {
      await client.connect(this.#transport(target), { ...this.#limits(), signal: this.#stop.signal });
      return client;
    } catch (error) {
      await client.close().catch(() => undefined);
      throw error;
    }
  }

  #transport({ url, argv, headers, env, masked }: OutsideTarget): Transport {
    if (url !== null) {
      const fetch = outsideFetch(this.settings.privateAddresses);
      return new StreamableHTTPClientTransport(url, { fetch, requestInit: { headers: { ...headers }, redirect: 'error' } });
    }
    const [command = '', ...args] = argv;
    // Without this, the client would pass these variables of this process on.
    const unset = Object.fromEntries(DEFAULT_INHERITED_ENV_VARS.filter((name) => name !== 'PATH').map((name) => [name, undefined]));
    const transport = new StdioClientTransport({
      command,
      args,
      env: { ...(unset as object), ...env },
      cwd: tmpdir(),
      stderr: 'pipe',
    });
    transport.stderr?.on('data', (chunk: Buffer) =>
      this.settings.debug({ server: this.server.name, text: masked(chunk.toString()) }, 'An MCP server has written to stderr'),
    );
    return transport;
  }
}

const isTimeout = (error: unknown) =>
  (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) || (error as Error | null)?.name === 'TimeoutError';

function messagesOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // An error for several addresses has a code but no message.
  const message = error.message || ((error as NodeJS.ErrnoException).code ?? error.name);
  return error.cause === undefined ? message : `${message}: ${messagesOf(error.cause)}`;
}
