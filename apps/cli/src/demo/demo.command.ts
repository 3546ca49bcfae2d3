import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { demo } from './demo.js';

/** `demo`. */
export function addDemo(program: Command, start: Start): void {
  program
    .command('demo')
    .description('sample tasks, solved by a script in place of a model; then learned from, then solved by skills')
    .action((_options: object, command: Command) => start(command, demo));
}
