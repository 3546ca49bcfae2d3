import type { DynamicModule } from '@nestjs/common';
import { LoggerModule } from 'nestjs-pino';
import { type DestinationStream, type Logger as PinoLogger, type LoggerOptions, pino } from 'pino';
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

const FRAMEWORK = ['NestFactory', 'InstanceLoader'];
const INFO = 30;

/** The framework's messages about its own start are logged at debug. */
const hooks: LoggerOptions['hooks'] = {
  logMethod(args, method, level) {
    const { context = '' } = (args[0] ?? {}) as { context?: string };
    if (level === INFO && FRAMEWORK.includes(context)) this.debug(...args);
    else method.apply(this, args);
  },
};

function options(service: string, config: Pick<BaseConfig, 'ETUDE_LOG_LEVEL'>) {
  return {
    name: service,
    level: config.ETUDE_LOG_LEVEL,
    redact: { paths: redactPaths, censor: '[redacted]' },
    hooks,
    mixin: loggedTrace,
    serializers: { err: serializeError, error: serializeError },
  };
}

/**
 * Lines go to `process.stdout`, which writes at once. At exit, pino's own destination retries without end if nobody reads stdout any more.
 * The process would then outlive its supervisor.
 */
const STDOUT: DestinationStream = process.stdout.on('error', () => {});

/** A logger for code outside Nest: JSON lines on stdout, redacted as in `loggerModule`. */
export function createLogger(service: string, config: Pick<BaseConfig, 'ETUDE_LOG_LEVEL'>, sink: DestinationStream = STDOUT): PinoLogger {
  return pino(options(service, config), sink);
}

/** Nest's logger as JSON lines on stdout. Inject `PinoLogger` or `Logger` of nestjs-pino. */
export function loggerModule(service: string, config: Pick<BaseConfig, 'ETUDE_LOG_LEVEL'>): DynamicModule {
  return LoggerModule.forRoot({ pinoHttp: [{ ...options(service, config), autoLogging: false }, STDOUT] });
}
