import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { sandboxDriver } from '../options.js';
import { demo, type DemoOptions } from './demo.js';

/** `demo`. */
export function addDemo(program: Command, start: Start): void {
  program
    .command('demo')
    .description('sample tasks, solved by a script in place of a model; then learned from, then solved by skills')
    .addOption(sandboxDriver())
    .action((options: DemoOptions, command: Command) => start(command, (cli) => demo(cli, options)));
}
