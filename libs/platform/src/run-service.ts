import type { Server } from 'node:http';
import { errorCode } from '@etude/contracts/errors';
import type { DynamicModule, INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Logger } from 'nestjs-pino';
import type { Tracing } from '@etude/contracts/tracing';
import type { z } from 'zod';
import { type BaseConfig, loadConfig } from './config.js';
import { type HealthCheck, HealthChecks, startHealthServer } from './health.js';
import { createLogger, loggerModule } from './logging.js';
import { startTracing } from './tracing.js';

/** Most time of a close, after the drain. A longer one is cut off, and another process takes over its work. */
const CLOSE_TIMEOUT_MS = 10_000;

export interface ServiceOptions {
  readonly name: string;
  readonly module: DynamicModule;
  readonly config: BaseConfig;
  readonly checks: Readonly<Record<string, HealthCheck>>;
  /** Opens the service's own server, once the logger is in place. */
  readonly listen?: () => Promise<void>;
  /** Lets work in progress come to a good end, before the service closes. */
  readonly drain?: () => Promise<unknown>;
  /** Additional fields of the ready line, such as the server's port. */
  readonly ready?: () => Readonly<Record<string, unknown>>;
}

const printLine = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** For a service that is still starting. As process 1 of a container, it would otherwise ignore the signal. */
const endAtOnce = () => process.exit(143);

function closeOnSignals(
  app: INestApplicationContext,
  health: HealthChecks,
  http: Server | undefined,
  drain: ServiceOptions['drain'],
): void {
  let closing = false;
  const logger = app.get(Logger);
  const close = async () => {
    health.close();
    await drain?.();
    setTimeout(() => {
      logger.error(`Not closed within ${CLOSE_TIMEOUT_MS} ms; ending anyway`);
      process.exit(1);
    }, CLOSE_TIMEOUT_MS).unref();
    http?.close();
    await app.close();
  };
  const onSignal = (signal: NodeJS.Signals) => {
    if (closing) process.exit(130);
    closing = true;
    logger.log(`Closing on ${signal}`);
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error(error);
        process.exit(1);
      },
    );
  };
  process.off('SIGTERM', endAtOnce).on('SIGTERM', onSignal).on('SIGINT', onSignal);
}

/**
 * Starts one service: logger, module, health over HTTP. On SIGTERM or SIGINT it drains and closes within `CLOSE_TIMEOUT_MS`; a second
 * signal ends it at once. Prints `{"ready":true,"service":...,"pid":...}` as one line on stdout once it takes work. The module must import
 * `loggerModule`.
 */
export async function runService(options: ServiceOptions): Promise<INestApplicationContext> {
  const { name, module, config } = options;
  const port = config.ETUDE_HTTP_PORT;
  const health = new HealthChecks(options.checks);
  const app = await NestFactory.createApplicationContext(module, { bufferLogs: true, abortOnError: false });
  app.useLogger(app.get(Logger));
  app.flushLogs();
  let http: Server | undefined;
  try {
    http = port > 0 ? await startHealthServer(health, config.ETUDE_HTTP_HOST, port) : undefined;
    await options.listen?.();
  } catch (error) {
    http?.close();
    await app.close();
    throw error;
  }
  closeOnSignals(app, health, http, options.drain);
  printLine({ ready: true, service: name, pid: process.pid, ...(port > 0 ? { httpPort: port } : {}), ...options.ready?.() });
  return app;
}

/** Runs a service's `start` as its whole `main.ts`. If it throws, prints one JSON line with code and message on stderr and exits with 1. */
export async function runMain(name: string, start: () => Promise<unknown>): Promise<void> {
  process.on('SIGTERM', endAtOnce);
  try {
    await start();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const code = errorCode(error);
    const stack = code === 'INTERNAL' && error instanceof Error ? { stack: error.stack } : {};
    process.stderr.write(`${JSON.stringify({ ready: false, service: name, code, message, ...stack })}\n`);
    process.exit(1);
  }
}

/** The part of a service that takes jobs from queues. */
export interface RunningWorker {
  checks(): Readonly<Record<string, HealthCheck>>;
  /** Takes no more jobs. Resolves when those in progress have ended their step, at most after `ms`. */
  drain(ms: number): Promise<unknown>;
  /** Jobs in progress return to the queue, where other workers take them. */
  close(): Promise<void>;
}

class WorkerModule {}

/** The whole `main.ts` of a service without a server of its own. Its worker starts before the application and closes with it. */
export async function runWorker<C extends BaseConfig>(
  name: string,
  schema: z.ZodType<C>,
  start: (config: C, logger: ReturnType<typeof createLogger>, tracing: Tracing) => Promise<RunningWorker>,
): Promise<void> {
  await runMain(name, async () => {
    const config = loadConfig(schema);
    const logger = createLogger(name, config);
    const tracing = await startTracing(name, config, logger);
    const worker = await start(config, logger, tracing);
    const module = {
      module: WorkerModule,
      imports: [loggerModule(name, config)],
      providers: [{ provide: 'worker', useValue: { onApplicationShutdown: () => worker.close().then(() => tracing.close()) } }],
    };
    const drain = () => worker.drain(config.ETUDE_DRAIN_MS);
    await runService({ name, config, module, checks: worker.checks(), drain });
  });
}
