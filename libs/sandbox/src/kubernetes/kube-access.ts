import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent, type AgentOptions, type RequestOptions } from 'node:https';
import { readFile } from 'node:fs/promises';

/** Where the API server is and how a request proves who asks. */
export interface KubeAccess {
  readonly server: URL;
  /** @param renew the server said 401: read everything again */
  credentials(renew?: boolean): Promise<KubeCredentials>;
  /** Ends all connections. */
  close(): void;
}

export interface KubeCredentials {
  readonly agent: HttpAgent;
  readonly headers: Readonly<Record<string, string>>;
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** In every API server's certificate, whatever its address. */
const IN_CLUSTER_SERVER = 'https://kubernetes.default.svc';
/** Projected tokens are replaced at four fifths of their life, an hour by default; certificates of exec plugins live minutes. */
const CREDENTIALS_AGE_MAX_MS = 10_000;
const AGENT_OPTIONS: AgentOptions = { keepAlive: true, keepAliveMsecs: 30_000, maxSockets: 64, maxFreeSockets: 16, scheduling: 'lifo' };

/** Keeps connections while the means of making them stay the same. */
class AgentKeeper {
  #agent: HttpAgent | null = null;
  #madeOf = '';

  agentFor(secure: boolean, options: AgentOptions): HttpAgent {
    const madeOf = JSON.stringify([secure, options]);
    if (this.#agent && madeOf === this.#madeOf) return this.#agent;
    this.#retire();
    this.#madeOf = madeOf;
    this.#agent = secure ? new HttpsAgent({ ...AGENT_OPTIONS, ...options }) : new HttpAgent(AGENT_OPTIONS);
    return this.#agent;
  }

  /** Connections in use end with their requests: a new certificate is no reason to cut a watch. */
  #retire(): void {
    if (!this.#agent) return;
    Object.assign(this.#agent, { keepAlive: false });
    for (const sockets of Object.values(this.#agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  close(): void {
    this.#agent?.destroy();
    this.#agent = null;
  }
}

/** Asks `read` again once what it said is old, and at once where the server did not believe it. */
function cached(read: () => Promise<KubeCredentials>): (renew?: boolean) => Promise<KubeCredentials> {
  let known: { at: number; value: Promise<KubeCredentials> } | null = null;
  return async (renew = false) => {
    const now = performance.now();
    if (!known || renew || now - known.at > CREDENTIALS_AGE_MAX_MS) {
      known = { at: now, value: read() };
      // What failed is not kept.
      known.value.catch(() => (known = null));
    }
    return known.value;
  };
}

/** A plain address without authentication, such as `kubectl proxy`. */
export function plainAccess(server: string): KubeAccess {
  const keeper = new AgentKeeper();
  const url = new URL(server);
  return {
    server: url,
    credentials: async () => ({ agent: keeper.agentFor(url.protocol === 'https:', {}), headers: {} }),
    close: () => keeper.close(),
  };
}

/** As the pod's own service account. Token and certificate are read from their files again and again, since both are replaced. */
export async function inClusterAccess(server = IN_CLUSTER_SERVER, directory = SERVICE_ACCOUNT): Promise<KubeAccess> {
  const keeper = new AgentKeeper();
  const url = new URL(server);
  const credentials = cached(async () => {
    const [token, ca] = await Promise.all([readFile(`${directory}/token`, 'utf8'), readFile(`${directory}/ca.crt`, 'utf8')]);
    return { agent: keeper.agentFor(url.protocol === 'https:', { ca }), headers: { authorization: `Bearer ${token.trim()}` } };
  });
  await credentials();
  return { server: url, credentials, close: () => keeper.close() };
}

/**
 * As a context of a kubeconfig file says: certificates, tokens, exec plugins, OpenID Connect, proxies.
 *
 * Why imported here: the vendor's package costs 0.8 s and 79 MiB, and a controller inside the cluster needs nothing of it.
 */
export async function kubeconfigAccess(path: string, context?: string): Promise<KubeAccess> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const keeper = new AgentKeeper();
  const load = () => {
    const config = new KubeConfig();
    config.loadFromFile(path);
    if (context) config.setCurrentContext(context);
    const cluster = config.getCurrentCluster();
    if (!cluster) throw new Error(`the kubeconfig ${path} has no cluster for the context ${JSON.stringify(config.getCurrentContext())}`);
    return { config, cluster };
  };
  const readOf = ({ config, cluster }: ReturnType<typeof load>) =>
    cached(async () => {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options);
      const headers = Object.fromEntries(Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]));
      if (options.auth) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
      const { ca, cert, key, servername, rejectUnauthorized } = options;
      const tls = Object.fromEntries(
        Object.entries({ ca, cert, key, servername, rejectUnauthorized }).filter(([, value]) => value != null),
      );
      const proxied = cluster.proxyUrl ? (options.agent as HttpAgent) : null;
      return { agent: proxied ?? keeper.agentFor(cluster.server.startsWith('https:'), tls), headers };
    });
  const first = load();
  let read = readOf(first);
  return {
    server: new URL(first.cluster.server),
    // The vendor keeps what a plugin said until it expires; only reading the file anew makes it ask again.
    credentials: async (renew = false) => (renew ? (read = readOf(load()))() : read()),
    close: () => keeper.close(),
  };
}
