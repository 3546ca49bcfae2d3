import { randomUUID } from 'node:crypto';
import { callerOf, type McpCaller } from '@etude/mcp/caller';
import type { Command } from 'commander';
import { type Cli, type Start, withGateway } from '../cli.js';
import { hand } from '../command.js';
import { CliError, EXIT } from '../errors.js';

interface McpOptions {
  readonly agent: string;
  readonly user?: string;
  readonly session?: string;
}

/** @throws CliError naming the flag that is wrong */
function callerOfFlags(options: McpOptions): McpCaller {
  const flags: Readonly<Record<string, string>> = { session: randomUUID(), ...options };
  try {
    return callerOf(
      (header) => flags[header.replace('etude-', '')],
      (header) => header.replace('etude-', '--'),
    );
  } catch (error) {
    throw new CliError(EXIT.usage, (error as RangeError).message, [], { cause: error });
  }
}

function serveMcp(cli: Cli, options: McpOptions, version: string): Promise<number> {
  const caller = callerOfFlags(options);
  return withGateway(cli, async ({ address, tools, skills }) => {
    // Loading MCP's SDK takes a tenth of a command's start time, and only this command needs it.
    const { serveOverStdio } = await import('@etude/mcp/stdio');
    cli.out.note(
      `MCP on stdin and stdout, for agent ${caller.agent}${caller.user === '' ? '' : ` and user ${caller.user}`}, through ${address}`,
    );
    const { stdin, stdout } = process;
    const onError = (error: Error) => cli.out.note(`mcp: ${error.message}`);
    const onUnfit = (skill: string, why: string) => cli.out.note(`mcp: the skill ${skill} is not shown: ${why}`);
    await serveOverStdio({ tools, skills }, caller, { version, onError, onUnfit, stdin, stdout, signal: cli.signal });
    return EXIT.ok;
  });
}

export function addMcp(program: Command, start: Start): void {
  hand<McpOptions>({
    command: 'mcp',
    help: 'serve tools and skills to an MCP client on stdin and stdout',
    flags: {
      '--agent <name>': { help: 'agent whose tools and skills are served', usual: 'default' },
      '--user <name>': 'user for whom the client works',
      '--session <name>': 'session that owns loaded functions and todos (default: a new session)',
    },
    run: (cli, options) => serveMcp(cli, options, program.version() ?? ''),
  })(program, start);
}
