/** How the services reach Redis, read from `ETUDE_REDIS_URL`. */
export interface RedisAddress {
  /** `single`: one server. `sentinel`: sentinels that name the primary. `cluster`: any nodes of a Redis Cluster. */
  readonly kind: 'single' | 'sentinel' | 'cluster';
  readonly tls: boolean;
  readonly hosts: ReadonlyArray<{ readonly host: string; readonly port: number }>;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** `single`: number of the database. `sentinel`: name of the primary. `cluster`: hash tag of the keys. */
  readonly name: string;
  readonly options: Partial<Record<RedisUrlOption, string>>;
}

/**
 * Options of the URL. `ca`, `cert`, `key`: PEM files for TLS. `replicas`: number of replicas that have each record before it is
 * acknowledged. `sentinel-user`, `sentinel-password`: for the sentinels.
 */
const OPTIONS = ['ca', 'cert', 'key', 'replicas', 'sentinel-user', 'sentinel-password'] as const;
type RedisUrlOption = (typeof OPTIONS)[number];

const FORM = /^redis(s?)(?:\+(sentinel|cluster))?:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^@/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/;
const HOST = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/;
const PORTS = { single: 6_379, sentinel: 26_379, cluster: 6_379 };
const NAMES = {
  single: [/^\d*$/, 'the path of a redis:// URL is the number of a database, or empty'],
  sentinel: [/^[\w.-]+$/, 'must end in the name of the primary that the sentinels watch, such as "/mymaster"'],
  cluster: [/^\w*$/, 'the path of a redis+cluster:// URL is the hash tag of ETUDE_QUEUE_PREFIX without its braces, or empty for "etude"'],
} as const;

/** @throws Error with the reason, but without any part of the URL, which may hold a password */
export function parseRedisUrl(url: string): RedisAddress {
  const [, secure, kind = 'single', user, password, hosts = '', path = '', query] = FORM.exec(url) ?? fail(FORMS);
  const known = kind as RedisAddress['kind'];
  const [name, reason] = NAMES[known];
  if (!name.test(path)) fail(reason);
  const tls = secure === 's';
  return {
    kind: known,
    tls,
    hosts: hostsOf(hosts, known),
    username: decoded(user),
    password: decoded(password),
    name: path || (known === 'cluster' ? 'etude' : '0'),
    options: optionsOf(query, tls),
  };
}

const FORMS =
  'must be a redis:// or rediss:// URL, or one of redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY, redis+cluster://HOST:PORT,HOST:PORT';

function hostsOf(text: string, kind: RedisAddress['kind']): RedisAddress['hosts'] {
  const hosts = text.split(',').map((one) => {
    const [, host = '', port = PORTS[kind]] = HOST.exec(one) ?? fail('each of its hosts must be HOST or HOST:PORT');
    if (Number(port) < 1 || Number(port) > 65_535) fail('each of its ports must be 1 to 65535');
    return { host: host.replaceAll(/[[\]]/g, ''), port: Number(port) };
  });
  if (kind === 'single' && hosts.length > 1) fail('a redis:// URL has one host; several need redis+sentinel:// or redis+cluster://');
  return hosts;
}

function optionsOf(query: string | undefined, tls: boolean): RedisAddress['options'] {
  const options = Object.fromEntries(new URLSearchParams(query));
  if (Object.keys(options).some((name) => !OPTIONS.some((known) => known === name))) fail(`its options can be ${OPTIONS.join(', ')}`);
  if (!/^\d?$/.test(options['replicas'] ?? '')) fail('its option "replicas" must be 0 to 9');
  if (!tls && (options['ca'] ?? options['cert'] ?? options['key'])) fail('its options "ca", "cert" and "key" need rediss://');
  if (!options['cert'] !== !options['key']) fail('its options "cert" and "key" belong together');
  return options;
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text ? decodeURIComponent(text) : undefined;
  } catch {
    return fail('its user and password must be percent-encoded');
  }
}

function fail(reason: string): never {
  throw new Error(reason);
}
