import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import type { BaseConfig } from './config.js';
import { loggedTrace } from './tracing.js';

/** The values of these keys are removed from logs, at the top level and up to three levels below. */
const SECRET_KEYS = [
  'authorization',
  'apiKey',
  'api_key',
  'key',
  'token',
  'password',
  'secret',
  'code',
  'prompt',
  'messages',
  'referenceSolution',
  'tests',
  'stdin',
  'expectedStdout',
  'contentBase64',
] as const;

const redactPaths = SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`, `*.*.*.${key}`]);

/** Logs an error's `code` as `errorCode`, since the key `code` is redacted as program code. */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code } = error as { code?: unknown };
  const cause = error.cause === undefined ? {} : { cause: serializeError(error.cause) };
  return { type: error.name, message: error.message, errorCode: code, stack: error.stack, ...cause };
}

/**
 * Lines go to `process.stdout`, which writes at once. At exit, pino's own destination retries without end if nobody reads stdout any more.
 * The process would then outlive its supervisor.
 */
const STDOUT: DestinationStream = process.stdout.on('error', () => {});

/** JSON lines on stdout, without secrets. */
export function createLogger(service: string, config: Pick<BaseConfig, 'ETUDE_LOG_LEVEL'>, sink: DestinationStream = STDOUT): PinoLogger {
  const options = {
    name: service,
    level: config.ETUDE_LOG_LEVEL,
    redact: { paths: redactPaths, censor: '[redacted]' },
    mixin: loggedTrace,
    serializers: { err: serializeError, error: serializeError },
  };
  return pino(options, sink);
}
