import type { Json } from '@etude/contracts/json';
import type { OutsideCaller, OutsideListing, OutsideOutcome, OutsideServer } from '@etude/contracts/outside-tools';
import { OutsideConnection } from './outside-connection.js';
import type { OutsideSettings } from './outside-settings.js';
import { failure } from './outside-tool.js';

const IDLE_MS = 600_000;

interface Used {
  readonly connection: OutsideConnection;
  busy: number;
  /** ms since 1970 */
  usedAt: number;
}

/**
 * The tools of the MCP servers that agents' settings name. Each agent has its own connections and processes, which end when idle for ten
 * minutes. A failure of a server is returned, not thrown.
 *
 * @throws from `list` and `call` only the signal's reason
 */
export class OutsideServers {
  #isClosed = false;
  readonly #used = new Map<string, Used>();
  readonly #timer = setInterval(() => void this.endIdle(), IDLE_MS / 10).unref();

  constructor(private readonly settings: OutsideSettings) {}

  async list({ tenant, agent, servers }: OutsideCaller, signal: AbortSignal): Promise<OutsideListing> {
    const listings = await Promise.all(
      servers.map((server) => this.#with({ tenant, agent, server }, (connection) => connection.list(signal))),
    );
    return { tools: listings.flatMap(({ tools }) => tools), problems: listings.flatMap(({ problems }) => problems) };
  }

  /** @param tool "server/tool" */
  async call(
    { tenant, agent, servers }: OutsideCaller,
    tool: string,
    args: Readonly<Record<string, Json>>,
    signal: AbortSignal,
  ): Promise<OutsideOutcome> {
    const at = tool.indexOf('/');
    const server = servers.find(({ name }) => name === tool.slice(0, at));
    if (!server)
      return failure(`no server has the tool "${tool}"; the servers are: ${servers.map(({ name }) => name).join(', ') || 'none'}`);
    return this.#with({ tenant, agent, server }, (connection) => connection.call(tool.slice(at + 1), args, signal));
  }

  async endIdle(idleMs = IDLE_MS): Promise<void> {
    const idle = [...this.#used].filter(([, { busy, usedAt }]) => busy === 0 && Date.now() - usedAt >= idleMs);
    for (const [key] of idle) this.#used.delete(key);
    await Promise.all(idle.map(([, { connection }]) => connection.close()));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await Promise.all([...this.#used.values()].map(({ connection }) => connection.close()));
  }

  async #with<T>(
    of: { readonly tenant: string; readonly agent: string; readonly server: OutsideServer },
    work: (connection: OutsideConnection) => Promise<T>,
  ): Promise<T> {
    const key = JSON.stringify(of);
    const used = this.#used.get(key) ?? { connection: new OutsideConnection(of.server, of.tenant, this.settings), busy: 0, usedAt: 0 };
    this.#used.set(key, used);
    if (this.#isClosed) await used.connection.close();
    used.busy += 1;
    try {
      return await work(used.connection);
    } finally {
      used.busy -= 1;
      used.usedAt = Date.now();
    }
  }
}
