import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../gateway.config.js';

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** "host" without its port; IPv6 stays in brackets. Null for what is no host. */
function hostnameOf(host: string): string | null {
  const url = /[\s/?#@\\]/.test(host) ? null : URL.parse(`http://${host}`);
  return url === null || url.hostname === '' ? null : url.hostname;
}

export interface McpDoorSettings {
  /** What the server listens on. */
  readonly host: string;
  /** Names that clients may call it by, without ports, besides those of loopback where it listens there. */
  readonly hosts: readonly string[];
  /** Origins of websites whose requests are answered: "https://console.example.org". */
  readonly origins: readonly string[];
}

/**
 * Which requests come in at all. A page in somebody's browser reaches servers of that machine, also under a name of its own that it lets
 * point there; it can't hide its Origin, nor the name that it used.
 */
export class McpDoor {
  readonly #hosts: ReadonlySet<string> | null;
  readonly #origins: ReadonlySet<string>;

  constructor({ host, hosts, origins }: McpDoorSettings) {
    const local = isLoopback(host) ? LOOPBACK_NAMES : [];
    // On other addresses names are whatever the network gives it; a key is needed all the same.
    this.#hosts = local.length + hosts.length === 0 ? null : new Set([...local, ...hosts.map((name) => name.toLowerCase())]);
    this.#origins = new Set(origins);
  }

  /** Why a request is refused; null: it is not. */
  refusal({ host = '', origin }: IncomingHttpHeaders): string | null {
    if (origin !== undefined && !this.#origins.has(origin)) {
      return 'This server answers no websites. ETUDE_MCP_ALLOWED_ORIGINS names those that it should.';
    }
    const name = hostnameOf(host);
    if (name === null || (this.#hosts !== null && !this.#hosts.has(name))) {
      return 'This server is not called by that name. ETUDE_MCP_ALLOWED_HOSTS names those that it should answer to.';
    }
    return null;
  }
}
