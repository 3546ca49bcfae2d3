import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { integer } from '../options.js';
import { getAgent, listAgents, setAgent } from './agent-settings.js';

/** `agents`: what each may do with skills. */
export function addAgents(program: Command, start: Start): void {
  const agents = program.command('agents').description('how each agent learns and uses skills');
  agents
    .command('list')
    .description('those that have settings of their own')
    .option('--limit <n>', 'how many', integer(1, 100_000), 100)
    .action((options: { limit: number }, command: Command) => start(command, (cli) => listAgents(cli, options)));
  agents
    .command('get <agent>')
    .description('its settings, or those of the installation where it has none')
    .action((agent: string, _options: object, command: Command) => start(command, (cli) => getAgent(cli, agent)));
  agents
    .command('set <agent> <settings...>')
    .description('key=value each, such as approval_mode=review; for reviewers')
    .option('--request-id <id>', 'makes a repeat harmless')
    .action((agent: string, settings: string[], options: { requestId?: string }, command: Command) =>
      start(command, (cli) => setAgent(cli, agent, settings, options)),
    );
}
