import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { findGateway, type Gateway } from './gateway.js';
import { explain } from './grpc-errors.js';
import { Output } from './output.js';
import type { Settings } from './settings.js';

/** Root of the checkout; the launcher runs `apps/cli/dist/main.js` in it. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url)).replace(/\/$/, '');

/** Flags that every command takes. */
export interface GlobalOptions {
  readonly json?: boolean;
  readonly address?: string;
  readonly apiKey?: string;
  readonly home?: string;
  /** Seconds for one call. */
  readonly timeout: number;
}

/** What a command works with. */
export interface Cli {
  readonly out: Output;
  readonly settings: Settings;
  readonly globals: GlobalOptions;
  /** Folder of the local stack, absolute. */
  readonly home: string;
  readonly root: string;
  /** Aborts on Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal;
  readonly callTimeoutMs: number;
}

/**
 * A line that people can repeat as it is: as they called the program, and with the folder of their stack where that is not the usual one.
 *
 * @param words behind the program's name
 */
export function commandLine({ home, globals, settings }: Pick<Cli, 'home' | 'globals' | 'settings'>, words: string): string {
  const usual = home === resolve(settings.ETUDE_HOME ?? `${ROOT}/.etude`);
  const address = globals.address === undefined ? '' : ` --address ${globals.address}`;
  return `${settings.ETUDE_CALLED_AS} ${words}${usual ? '' : ` --home ${home}`}${address}`;
}

/** What names the program as it is called in a checkout, for people who called it otherwise. */
export const asCalled = (text: string, calledAs: string): string => text.replace(/(?<![^\s(])\.\/etude(?= )/g, () => calledAs);

export type Handler = (cli: Cli) => Promise<number>;
/** Runs the handler with the flags that `command` was given, and ends the process with its exit code. */
export type Start = (command: Command, handler: Handler) => Promise<void>;

export function createCli(settings: Settings, globals: GlobalOptions, signal: AbortSignal): Cli {
  return {
    out: new Output(process.stdout, process.stderr, globals.json === true),
    settings,
    globals,
    home: resolve(globals.home ?? settings.ETUDE_HOME ?? `${ROOT}/.etude`),
    root: ROOT,
    signal,
    callTimeoutMs: globals.timeout * 1_000,
  };
}

/** Opens the gateway for one command and closes it on every path; failed calls come out in words. */
export async function withGateway(cli: Cli, work: (gateway: Gateway) => Promise<number>): Promise<number> {
  const address = cli.globals.address ?? cli.settings.ETUDE_ADDRESS;
  const apiKey = cli.globals.apiKey ?? cli.settings.ETUDE_API_KEY;
  const gateway = findGateway({ address, apiKey, home: cli.home, startLine: commandLine(cli, 'up') });
  try {
    return await work(gateway);
  } catch (error) {
    throw explain(error, gateway.address);
  } finally {
    gateway.close();
  }
}
