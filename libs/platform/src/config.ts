import { readFileSync, statSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import { z } from 'zod';
import { TemplateName } from '@etude/contracts/sandbox';
import { SkillPackage } from '@etude/contracts/skill-proof';
import { parseRedisUrl } from '@etude/contracts/redis-url';

/** Parses `true`, `1`, `yes`, `on` and their opposites; refuses anything else. */
export const flag = () =>
  z.stringbool({ truthy: ['true', '1', 'yes', 'on'], falsy: ['false', '0', 'no', 'off'], error: 'must be true or false' });

function refuseWrongRedisUrl(url: string, context: z.core.$RefinementCtx<string>): void {
  try {
    parseRedisUrl(url);
  } catch (error) {
    context.addIssue((error as Error).message);
  }
}

/** Settings that every service has. Extend them: `baseConfig.extend({ ETUDE_GRPC_PORT: ... })`. */
export const baseConfig = z.object({
  /** Lowest severity that is logged. */
  ETUDE_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  /** The Redis of all services: one server, sentinels or a cluster, with or without TLS. [Operations](../operations.md) has the forms. */
  ETUDE_REDIS_URL: z.string().superRefine(refuseWrongRedisUrl).default('redis://127.0.0.1:6379'),
  /** Prefix of every key in Redis. Installations that share a Redis need different prefixes. */
  ETUDE_QUEUE_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9{}_-]{1,64}$/, 'must be 1 to 64 letters, digits, "-", "_" (and "{}" for a Redis Cluster)')
    .default('etude'),
  /** Address for `/healthz`, `/readyz` and `/metrics`. */
  ETUDE_HTTP_HOST: z.string().min(1).default('127.0.0.1'),
  /** Port of health and metrics over HTTP; 0 disables them. */
  ETUDE_HTTP_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  /** Whether traces are sent over OTLP (HTTP, protobuf) to `OTEL_EXPORTER_OTLP_ENDPOINT`, by default http://localhost:4318. */
  ETUDE_TRACES: flag().prefault('false'),
  /** Whether traces contain prompts, code, answers, and the arguments and results of tools. */
  ETUDE_TRACE_CONTENT: flag().prefault('false'),
  /** Share of traces that are recorded, unless the caller's `traceparent` decides. */
  ETUDE_TRACE_RATIO: z.coerce.number().min(0).max(1).default(1),
  /** Time, in ms, that a stopping service gives its running jobs to finish their current step. */
  ETUDE_DRAIN_MS: z.coerce.number().int().min(0).max(3_600_000).default(0),
});
export type BaseConfig = z.infer<typeof baseConfig>;

/** "a, b" as a list; empty text is an empty list. */
export const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

/**
 * Parses settings from the environment. An empty variable counts as unset. Unknown variables are ignored, since other programs may use them.
 *
 * @throws EtudeError FAILED_PRECONDITION with one line for each wrong variable, never with its value
 */
export function loadConfig<S extends z.ZodType>(schema: S, env: NodeJS.ProcessEnv = process.env): z.output<S> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const violations = parsed.error.issues.map(({ path, message }) => {
    const field = String(path[0] ?? '');
    // A value may be a secret, so the message only says whether a value is set.
    return { field, description: `${given[field] === undefined ? 'is not set' : 'has a wrong value'}: ${message}` };
  });
  const lines = violations.map(({ field, description }) => (field ? `  ${field} ${description}` : `  ${description}`));
  const message = `Settings are wrong. Correct these environment variables and start again:\n${lines.join('\n')}`;
  throw new EtudeError('FAILED_PRECONDITION', message, { violations });
}

/** Reads a JSON file, called `what` in messages. @throws EtudeError FAILED_PRECONDITION naming the file and what is wrong in it */
export function readJsonFile<S extends z.ZodType>(what: string, path: string, schema: S): z.output<S> {
  const fail = (why: string) => new EtudeError('FAILED_PRECONDITION', `The ${what} ${path} ${why}.`);
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    // The message of a parser may quote the file, which may hold secrets.
    throw fail(`can't be read: ${(error as Error).message.replace(/, (\.{3})?"[^]*$/, '')}`);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw fail(`is wrong at ${issue?.path.join('.') || 'its top'}: ${issue?.message ?? 'unknown'}`);
}

function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? '' : `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
}

/**
 * Returns a getter of the file's value, which reads the file again whenever it changes. If a new version can't be read, the last good value
 * stays and the error is reported once.
 *
 * @throws any error of `read` for the first version
 */
export function watchedFile<T>(path: string, read: () => T, report: (error: unknown) => void): () => T {
  let stamp = stampOf(path);
  let value = read();
  return () => {
    const now = stampOf(path);
    if (now === stamp) return value;
    stamp = now;
    try {
      value = read();
    } catch (error) {
      report(error);
    }
    return value;
  };
}

/** Settings of every service that accepts, verifies or runs skills. */
export const sandboxPackagesConfig = z.object({
  /**
   * JSON file with the packages that skills may declare, by the sandbox template whose image has them, such as {"science":
   * ["numpy==2.3.1"]}. Unset: the standard library only.
   */
  ETUDE_SANDBOX_PACKAGES_PATH: z.string().min(1).optional(),
});

const SandboxPackages = z.record(TemplateName, z.array(SkillPackage));

/** @throws EtudeError FAILED_PRECONDITION naming the file, and the wrong field */
export const readSandboxPackages = (path: string | undefined): z.infer<typeof SandboxPackages> =>
  path === undefined ? {} : readJsonFile('file of sandbox packages', path, SandboxPackages);
