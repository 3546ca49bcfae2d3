import { asCalled, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { inspectKubernetes } from './inspect-kubernetes.js';
import { type Finding, inspectMachine, missingToRun } from './inspect-machine.js';

function lines({ name, ok, needed, state, cost, fix }: Finding): string {
  const word = ok ? 'ok' : needed ? 'MISSING' : 'note';
  const rest = [cost && `costs: ${cost}`, fix && `do: ${fix}`].filter(Boolean).map((line) => `${' '.repeat(26)}${line}`);
  return [`${word.padEnd(8)} ${name.padEnd(16)} ${state}`, ...rest].join('\n');
}

/** `etude doctor`: 0 where a stack can run here, else 4. */
export async function doctor(cli: Cli): Promise<number> {
  const found = [...(await inspectMachine(cli)), inspectKubernetes(cli)];
  const findings = found.map((finding) => ({ ...finding, fix: asCalled(finding.fix, cli.settings.ETUDE_CALLED_AS) }));
  const missing = missingToRun(findings);
  const verdict = missing.length === 0 ? 'A stack can run here.' : `A stack can't run here: ${missing.map(({ name }) => name).join(', ')}.`;
  cli.out.data({ ok: missing.length === 0, findings }, [...findings.map(lines), '', verdict].join('\n'));
  return missing.length === 0 ? EXIT.ok : EXIT.unavailable;
}
