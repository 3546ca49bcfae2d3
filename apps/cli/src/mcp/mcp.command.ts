import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { type McpOptions, serveMcp } from './serve-mcp.js';

const DEFAULT_AGENT = 'default';

/** `mcp`. */
export function addMcp(program: Command, start: Start): void {
  program
    .command('mcp')
    .description('serve tools and skills to an MCP client over stdin and stdout')
    .option('--agent <name>', 'whose tools and skills', DEFAULT_AGENT)
    .option('--user <name>', 'the user it works for (default: nobody in particular)')
    .option('--session <name>', 'what loaded functions and todos belong to (default: a new one)')
    .action((options: McpOptions, command: Command) => start(command, (cli) => serveMcp(cli, options, program.version() ?? '')));
}
