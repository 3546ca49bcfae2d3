import { randomUUID } from 'node:crypto';
import { AgentId, UserId } from '@etude/contracts/ids';
import { type McpCaller, Session } from '@etude/mcp/caller';
import { serveOverStdio } from '@etude/mcp/stdio';
import type { z } from 'zod';
import { type Cli, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';

export interface McpOptions {
  readonly agent: string;
  readonly user?: string;
  readonly session?: string;
}

function named(schema: z.ZodType<string>, flag: string, text: string): string {
  const { success, data, error } = schema.safeParse(text);
  if (success) return data;
  throw new CliError(EXIT.usage, `${flag} ${error.issues[0]?.message ?? 'is wrong'}`);
}

/** @throws CliError naming the flag that is wrong */
function callerOf({ agent, user, session }: McpOptions): McpCaller {
  return {
    agent: named(AgentId, '--agent', agent),
    user: user === undefined ? '' : named(UserId, '--user', user),
    session: session === undefined ? randomUUID() : named(Session, '--session', session),
    metadata: {},
  };
}

/** `etude mcp`: one MCP server on stdin and stdout, for the program that started it; over when its stdin is. */
export function serveMcp(cli: Cli, options: McpOptions, version: string): Promise<number> {
  const caller = callerOf(options);
  return withGateway(cli, async ({ address, tools, skills }) => {
    cli.out.note(
      `MCP on stdin and stdout, for agent ${caller.agent}${caller.user === '' ? '' : ` and user ${caller.user}`}, through ${address}`,
    );
    const { stdin, stdout } = process;
    const onError = (error: Error) => cli.out.note(`mcp: ${error.message}`);
    const onUnfit = (skill: string, why: string) => cli.out.note(`mcp: the skill ${skill} is not shown: ${why}`);
    await serveOverStdio({ tools, skills }, caller, { version, onError, onUnfit, stdin, stdout, signal: cli.signal });
    // Whoever started it may hold the pipe open.
    stdin.destroy();
    return EXIT.ok;
  });
}
