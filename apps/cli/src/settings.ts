import { z } from 'zod';
import { CliError } from './cli-error.js';
import { EXIT } from './exit-codes.js';

const port = z.coerce.number().int().min(1).max(65_535);

/** Environment variables of the command line. Flags win over them. */
const Environment = z.object({
  /** "host:port" of a gateway; without it the stack of this checkout. */
  ETUDE_ADDRESS: z.string().optional(),
  ETUDE_API_KEY: z.string().optional(),
  /** Folder with the local stack's state; default `.etude` in the checkout. */
  ETUDE_HOME: z.string().optional(),
  /** What people called the launcher by, which says so; lines to repeat begin with it. */
  ETUDE_CALLED_AS: z.string().default('./etude'),
  /** Where `etude up` listens; the next free one where it is taken. */
  ETUDE_GRPC_PORT: port.default(50_051),
  ETUDE_REST_PORT: port.default(50_080),
  ETUDE_MCP_PORT: port.default(50_090),
  ETUDE_REDIS_PORT: port.default(6_379),
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
