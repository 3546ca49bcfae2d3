import type { OutsideServer } from '@etude/contracts/outside-tools';
import { z } from 'zod';

/** A shorter secret could be part of common words, which masking would then hide. */
const SecretValue = z.string().min(8);

/** Values of secrets by name. A bare text may go to any server; an object limits it to hosts or commands, and to tenants. */
export const OutsideSecrets = z.record(
  z.string(),
  z.union([
    SecretValue,
    z.strictObject({ value: SecretValue, servers: z.array(z.string()).optional(), tenants: z.array(z.string()).optional() }),
  ]),
);
export type OutsideSecrets = z.infer<typeof OutsideSecrets>;

/** What the operator of the installation allows agents to connect to. */
export interface OutsideSettings {
  /** Program and arguments of each command that may be started. */
  readonly commands: Readonly<Record<string, readonly string[]>>;
  readonly secrets: OutsideSecrets;
  /** Whether servers may have loopback or private addresses. */
  readonly privateAddresses: boolean;
  /** Receives the stderr of commands, without secrets. */
  readonly debug: (details: object, message: string) => void;
}

/** The address or command of one server of an agent, with the values of its secrets. */
export interface OutsideTarget {
  readonly url: URL | null;
  readonly argv: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** A copy of a JSON value with "***" in place of each secret. */
  readonly masked: <T>(value: T) => T;
}

/** @throws Error that the model reads, if the operator doesn't allow the command or a secret */
export function targetOf(server: OutsideServer, tenant: string, settings: OutsideSettings): OutsideTarget {
  const { url, command } = server;
  const argv = command !== undefined && Object.hasOwn(settings.commands, command) ? settings.commands[command] : [];
  if (!url && !argv?.[0]) throw new Error(`the operator allows no command "${command}" (ETUDE_MCP_COMMANDS)`);
  const target = url ? new URL(url) : null;
  const used: string[] = [];
  const filled = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(texts).map(([key, text]) => {
        const [before = '', name = ''] = text.split('secret:');
        const value = secretOf(name, { tenant, receiver: target?.host ?? command ?? '' }, settings.secrets);
        used.push(value);
        return [key, before + value];
      }),
    );
  return { url: target, argv: argv ?? [], headers: filled(server.headers), env: filled(server.env), masked: maskOf(used) };
}

function secretOf(name: string, to: { readonly tenant: string; readonly receiver: string }, secrets: OutsideSecrets): string {
  const known = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
  if (typeof known === 'string') return known;
  if (known && (known.servers?.includes(to.receiver) ?? true) && (known.tenants?.includes(to.tenant) ?? true)) return known.value;
  throw new Error(`the operator gives this tenant no secret "${name}" for ${to.receiver} (ETUDE_MCP_SECRETS_PATH)`);
}

function maskOf(secrets: readonly string[]): OutsideTarget['masked'] {
  // The secrets as JSON writes them, longest first because a secret may contain another.
  const texts = secrets.map((secret) => JSON.stringify(secret).slice(1, -1)).toSorted((a, b) => b.length - a.length);
  return <T>(value: T) => JSON.parse(texts.reduce((json, secret) => json.replaceAll(secret, '***'), JSON.stringify(value))) as T;
}
