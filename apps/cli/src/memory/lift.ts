import { type Effect, type ItemLift, type Lift, Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { plain } from '../command.js';
import { table } from '../output.js';

const share = (right: bigint, of: bigint) => (of === 0n ? '-' : `${Number(right)}/${Number(of)}`);

function effectText(effect: Effect | undefined, digits: number): string {
  if (effect === undefined) return '-';
  const [estimate, low, high] = [effect.estimate, effect.low, effect.high].map(
    (value) => `${value > 0 ? '+' : ''}${value.toFixed(digits)}`,
  );
  return `${estimate} (${low} to ${high})`;
}

function row(what: string, lift: ItemLift): string[] {
  const { shown, shownRight, withheld, withheldRight, success, tokens, harmful, archiveReason } = lift;
  const note = archiveReason === '' ? (harmful ? 'harmful' : '') : 'archived';
  return [what, share(shownRight, shown), share(withheldRight, withheld), effectText(success, 2), effectText(tokens, 0), note];
}

export function liftText({ memory, layers, items }: Pick<Lift, 'memory' | 'layers' | 'items'>): string {
  if (memory === undefined || memory.shown + memory.withheld === 0n) return '';
  const counted = layers.filter(({ shown, withheld }) => shown + withheld > 0n);
  return table([
    ['', 'right, shown', 'right, withheld', 'effect on right first attempts (95%)', 'effect on tokens (95%)', ''],
    row('memory', memory),
    ...counted.map((layer) => row(layer.layer, layer)),
    ...items.map((item) => row(`${item.kind} ${item.id}`, item)),
  ]);
}

export function addLift(program: Command, start: Start): void {
  plain(Memory.method.getLift, {
    command: 'lift',
    help: 'tell what memory is worth: how tasks end with and without it',
    flags: {
      '--agent <name>': "only this agent's memories (default: all agents)",
      '--user <name>': "only this user's memories and those without a user (default: all users)",
      '--layer <layer>': { help: 'default: all', choices: ['episodic', 'semantic', 'procedural'] },
      '--item <id>': 'only this memory, by the id of its hits',
    },
    text: liftText,
    none: 'no task has recalled anything yet, or ETUDE_RECALL_WITHHOLD_PROBABILITY is 0',
  })(program, start);
}
