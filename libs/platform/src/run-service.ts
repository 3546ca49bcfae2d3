import type { Server } from 'node:http';
import { errorCode } from '@etude/contracts/errors';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Tracing } from '@etude/contracts/tracing';
import type { z } from 'zod';
import { type BaseConfig, loadConfig } from './config.js';
import { type HealthCheck, HealthChecks, startHealthServer } from './health.js';
import { createLogger } from './logging.js';
import { startTracing } from './tracing.js';

/** The longest time for closing, after the drain. Then the process exits, and another process takes over its work. */
const CLOSE_TIMEOUT_MS = 10_000;

export type ServiceLogger = ReturnType<typeof createLogger>;

export interface ServiceOptions {
  readonly name: string;
  readonly config: BaseConfig;
  readonly logger: ServiceLogger;
  readonly checks: Readonly<Record<string, HealthCheck>>;
  readonly listen?: () => Promise<void>;
  /** Waits for work in progress, before the service closes. */
  readonly drain?: () => Promise<unknown>;
  readonly close: () => Promise<void>;
  /** Additional fields of the ready line, such as the server's port. */
  readonly ready?: () => Readonly<Record<string, unknown>>;
}

const printLine = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** Handles SIGTERM while a service starts. Without a handler, process 1 of a container ignores the signal. */
const endAtOnce = () => process.exit(143);

function closeOnSignals(
  app: INestApplicationContext,
  health: HealthChecks,
  http: Server | undefined,
  { drain, logger }: ServiceOptions,
): void {
  let closing = false;
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
    logger.info(`Closing on ${signal}`);
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

class ServiceModule {}

/**
 * Starts one service, with health over HTTP. On SIGTERM or SIGINT it drains and closes within `CLOSE_TIMEOUT_MS`; a second signal ends it at
 * once. Prints `{"ready":true,"service":...,"pid":...}` as one line on stdout once it takes work.
 */
export async function runService(options: ServiceOptions): Promise<INestApplicationContext> {
  const { name, config } = options;
  const port = config.ETUDE_HTTP_PORT;
  const health = new HealthChecks(options.checks);
  const providers = [{ provide: 'service', useValue: { onApplicationShutdown: options.close } }];
  const app = await NestFactory.createApplicationContext({ module: ServiceModule, providers }, { logger: false, abortOnError: false });
  let http: Server | undefined;
  try {
    http = port > 0 ? await startHealthServer(health, config.ETUDE_HTTP_HOST, port) : undefined;
    await options.listen?.();
  } catch (error) {
    http?.close();
    await app.close();
    throw error;
  }
  closeOnSignals(app, health, http, options);
  printLine({ ready: true, service: name, pid: process.pid, ...(port > 0 ? { httpPort: port } : {}), ...options.ready?.() });
  return app;
}

/** The whole `main.ts` of a service. If `start` throws, prints one JSON line with code and message on stderr and exits with 1. */
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

export interface RunningWorker {
  checks(): Readonly<Record<string, HealthCheck>>;
  /** Takes no more jobs. Resolves when the running jobs have ended, or after `ms`. */
  drain(ms: number): Promise<unknown>;
  /** Returns running jobs to the queue, where other workers take them. */
  close(): Promise<void>;
}

/**
 * The whole `main.ts` of a service without a server of its own. The worker starts before the service reports that it is ready, and closes
 * with the service.
 */
export async function runWorker<C extends BaseConfig>(
  name: string,
  schema: z.ZodType<C>,
  start: (config: C, logger: ServiceLogger, tracing: Tracing) => Promise<RunningWorker>,
): Promise<void> {
  await runMain(name, async () => {
    const config = loadConfig(schema);
    const logger = createLogger(name, config);
    const tracing = await startTracing(name, config, logger);
    const worker = await start(config, logger, tracing);
    const close = () => worker.close().then(() => tracing.close());
    const drain = () => worker.drain(config.ETUDE_DRAIN_MS);
    await runService({ name, config, logger, checks: worker.checks(), drain, close });
  });
}
