import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Cli } from '../cli.js';
import { embedderSettings, LEXICAL_COST } from '../embedder/embedder.js';
import { EXIT } from '../errors.js';

type Machine = Pick<Cli, 'settings' | 'home' | 'root'>;

interface Seen {
  readonly ok: boolean;
  readonly state: string;
}

interface Check {
  readonly name: string;
  readonly needed: boolean;
  /** The consequence if the check fails. */
  readonly cost: string;
  readonly fix: string;
  readonly look: (machine: Machine) => Seen;
}

const checkOf =
  (needed: boolean) =>
  (name: string, cost: string, fix: string, look: Check['look']): Check => ({ name, needed, cost, fix, look });
const needs = checkOf(true);
const likes = checkOf(false);

/** The result of one check on this machine. `cost` and `fix` are '' if the check passed. */
export type Finding = Seen & Omit<Check, 'look'>;

const PYTHON = '/usr/bin/python3';
const NO_CODE = 'no code can run, so no task can be evaluated';

const OF_TESTS = { chromium: 'tests of the console', prometheus: 'tests of alerts and dashboard' };

const apt = (name: string) => `Install it: sudo apt-get install -y ${name}`;

function runs(command: string, ...args: readonly string[]): Seen {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: 10_000 });
  const [said = ''] = (stdout || stderr || '').trim().split('\n', 1);
  return { ok: status === 0, state: said || (status === 0 ? 'found' : 'not found') };
}

function model({ settings: { OPENAI_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY } }: Machine): Seen {
  const ok = Boolean(OPENAI_BASE_URL || (OPENAI_API_KEY && OPENAI_MODEL));
  return { ok, state: ok ? `${OPENAI_MODEL ?? 'the only model'} at ${OPENAI_BASE_URL ?? 'api.openai.com'}` : 'not set' };
}

const ENGLISH = 'sentence, which knows English; for other languages set ETUDE_EMBEDDING_MODEL to a multilingual model';

function embedder(machine: Machine): Seen {
  const { ETUDE_EMBEDDER: name } = embedderSettings(machine);
  const state = name === 'sentence' ? ENGLISH : name;
  return { ok: name !== 'lexical', state: state ?? `${machine.settings.environment['ETUDE_EMBEDDING_MODEL']} of a server` };
}

function sandboxUsers({ settings, root }: Machine): Seen {
  const args = [join(root, 'apps/sandbox-controller/dist/check-main.js')];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env: settings.environment, encoding: 'utf8', timeout: 20_000 });
  return { ok: status === 0, state: (stdout || stderr || 'no answer').trim() };
}

/** Tries the isolation that sandboxes use. Settings don't show it, because containers and AppArmor can forbid it in many ways. */
const SANDBOX = ['--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true'];
const ALLOW =
  'Allow them: sudo sysctl -w kernel.unprivileged_userns_clone=1 (Debian) or kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04); in a container, allow clone and mount';

const CHECKS: readonly Check[] = [
  needs('redis-server', 'no task can be accepted: Redis stores tasks and queues', apt('redis-server'), () => runs('redis-server', '-v')),
  needs('bubblewrap', NO_CODE, apt('bubblewrap'), () => runs('bwrap', '--version')),
  needs('user namespaces', NO_CODE, ALLOW, () => runs('bwrap', ...SANDBOX)),
  needs('python3', `answers are Python; ${PYTHON} runs them`, apt('python3'), () => runs(PYTHON, '--version')),
  likes('setpriv', 'services outlive a supervisor that is killed with SIGKILL', apt('util-linux'), () => runs('setpriv', '--version')),
  likes(
    'model',
    '`etude up` has no model to ask, and new facts are never compared with old ones; demo and test work without a model',
    'Set OPENAI_BASE_URL, or OPENAI_API_KEY with OPENAI_MODEL',
    model,
  ),
  likes(
    'sandbox users',
    "code in one sandbox can exhaust the kernel's limits per user, so that code in other sandboxes fails",
    'Follow the line above; ETUDE_SANDBOX_UIDS sets the range of users',
    sandboxUsers,
  ),
  ...Object.entries(OF_TESTS).map(([name, tests]) => likes(name, `${tests} are skipped`, apt(name), () => runs(name, '--version'))),
  likes('embedder', LEXICAL_COST, './etude embedder fetch, then docs/embeddings.md', embedder),
];

function find({ look, ...check }: Check, machine: Machine): Finding {
  const seen = look(machine);
  return { ...check, ...seen, ...(seen.ok ? { cost: '', fix: '' } : {}) };
}

/** Checks everything that a stack needs, and with `forTests` the programs that only tests need. Changes nothing. */
export const inspectNeeds = (machine: Machine, forTests = false): Finding[] =>
  CHECKS.filter(({ needed, name }) => needed || (forTests && name in OF_TESTS)).map((check) => find(check, machine));

export const missingToRun = (findings: readonly Finding[]) => findings.filter(({ ok, needed }) => needed && !ok);

/** Prints findings and a verdict. Returns 0 if all needed checks passed, else 4. @param bad verdict if a needed check failed */
export function report({ out }: Pick<Cli, 'out'>, findings: readonly Finding[], good: string, bad: string): number {
  const missing = missingToRun(findings);
  const ok = missing.length === 0;
  const verdict = ok ? good : `${bad}: ${missing.map(({ name }) => name).join(', ')}.`;
  out.data({ ok, findings }, [...findings.map(findingLines), '', verdict].join('\n'));
  return ok ? EXIT.ok : EXIT.unavailable;
}

function findingLines({ name, ok, needed, state, cost, fix }: Finding): string {
  const word = ok ? 'ok' : needed ? 'MISSING' : 'note';
  const rest = [cost && `costs: ${cost}`, fix && `do: ${fix}`].filter(Boolean).map((line) => `${' '.repeat(26)}${line}`);
  return [`${word.padEnd(8)} ${name.padEnd(16)} ${state}`, ...rest].join('\n');
}

/** `etude doctor`: returns 0 if a stack can run here, else 4. */
export async function doctor(cli: Cli): Promise<number> {
  const findings = CHECKS.map((check) => find(check, cli));
  return report(cli, findings, 'A stack can run here.', "A stack can't run here");
}
