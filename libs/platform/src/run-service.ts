import type { Server } from 'node:http';
import { errorCode } from '@etude/contracts/errors';
import type { DynamicModule, INestApplicationContext, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Logger } from 'nestjs-pino';
import type { z } from 'zod';
import { type BaseConfig, loadConfig } from './config.js';
import { type HealthCheck, HealthChecks, HealthModule, startHealthServer } from './health.js';
import { createLogger, loggerModule } from './logging.js';

/** A close that takes longer is cut off; what was being done is taken over by another process. */
export const CLOSE_TIMEOUT_MS = 10_000;

export interface ServiceOptions {
  readonly name: string;
  readonly module: Type<unknown> | DynamicModule;
  readonly config: BaseConfig;
  /** Of health and metrics; default `ETUDE_HTTP_PORT`, 0 is none. */
  readonly port?: number;
  /** Makes an application that listens by itself, such as a gRPC server. Default: a Nest context without a listener. */
  readonly create?: (module: Type<unknown> | DynamicModule) => Promise<INestApplicationContext>;
  /** Starts what `create` made, after the logger is in place. */
  readonly listen?: (app: INestApplicationContext) => Promise<void>;
  /** More for the ready line, such as the port it listens on. */
  readonly ready?: () => Readonly<Record<string, unknown>>;
}

const printLine = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

function closeOnSignals(app: INestApplicationContext, http: Server | undefined): void {
  let closing = false;
  const close = (signal: NodeJS.Signals) => {
    if (closing) process.exit(130);
    closing = true;
    const logger = app.get(Logger);
    logger.log(`Closing on ${signal}`);
    setTimeout(() => {
      logger.error(`Not closed within ${CLOSE_TIMEOUT_MS} ms; ending anyway`);
      process.exit(1);
    }, CLOSE_TIMEOUT_MS).unref();
    app.get(HealthChecks, { strict: false }).close();
    http?.close();
    app.close().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error(error);
        process.exit(1);
      },
    );
  };
  process.on('SIGTERM', close).on('SIGINT', close);
}

/**
 * Starts one service: logger, module, health over HTTP, graceful close on SIGTERM and SIGINT (bounded, `CLOSE_TIMEOUT_MS`;
 * a second signal ends at once). Prints `{"ready":true,"service":...,"pid":...}` as one line on stdout once it takes work.
 * The module must import `loggerModule` and `HealthModule`.
 */
export async function runService(options: ServiceOptions): Promise<INestApplicationContext> {
  const { name, module, config } = options;
  const port = options.port ?? config.ETUDE_HTTP_PORT;
  const create = options.create ?? ((root) => NestFactory.createApplicationContext(root, { bufferLogs: true, abortOnError: false }));
  const app = await create(module);
  app.useLogger(app.get(Logger));
  app.flushLogs();
  let http: Server | undefined;
  try {
    http = port > 0 ? await startHealthServer(app.get(HealthChecks, { strict: false }), config.ETUDE_HTTP_HOST, port) : undefined;
    await options.listen?.(app);
  } catch (error) {
    http?.close();
    await app.close();
    throw error;
  }
  closeOnSignals(app, http);
  printLine({ ready: true, service: name, pid: process.pid, ...(port > 0 ? { httpPort: port } : {}), ...options.ready?.() });
  return app;
}

/**
 * The whole of a service's `main.ts`: runs `start` and, where it throws, prints one JSON line with code and message on
 * stderr and ends with 1. Nothing is left running.
 */
export async function runMain(name: string, start: () => Promise<unknown>): Promise<void> {
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
  /** For readiness, by name. */
  checks(): Readonly<Record<string, HealthCheck>>;
  /** Jobs under way go back to waiting; they go on elsewhere. */
  close(): Promise<void>;
}

class WorkerModule {}

/** The whole `main.ts` of a service without a door of its own. Its worker is started before the application and closed with it. */
export async function runWorker<C extends BaseConfig>(
  name: string,
  schema: z.ZodType<C>,
  start: (config: C, logger: ReturnType<typeof createLogger>) => Promise<RunningWorker>,
): Promise<void> {
  await runMain(name, async () => {
    const config = loadConfig(schema);
    const worker = await start(config, createLogger(name, config));
    const module = {
      module: WorkerModule,
      imports: [loggerModule(name, config), HealthModule.forRoot({ checks: worker.checks() })],
      providers: [{ provide: 'worker', useValue: { onApplicationShutdown: () => worker.close() } }],
    };
    await runService({ name, config, module });
  });
}
