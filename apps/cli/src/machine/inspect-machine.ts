import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, freemem } from 'node:os';
import type { Cli } from '../cli.js';
import { CliError } from '../cli-error.js';
import { chooseEmbedder } from '../embedder/choose-embedder.js';
import { memoryPath } from '../stack/home.js';
import { memoryTrouble } from '../stack/memory-file.js';

/** One thing that a stack uses, as it is on this machine. */
export interface Finding {
  readonly name: string;
  readonly ok: boolean;
  /** Nothing runs without it. */
  readonly needed: boolean;
  readonly state: string;
  /** What its absence costs; '' where it is there. */
  readonly cost: string;
  /** What to do about it; '' where there is nothing to do. */
  readonly fix: string;
}

const NODE_MAJOR = 26;
const GIB = 1024 ** 3;
const PYTHON = '/usr/bin/python3';

const apt = (name: string) => `Install it: sudo apt-get install -y ${name}`;

/** First line of what a program says about itself; null where it is not there or does not run. */
export function firstWords(command: string, args: readonly string[]): string | null {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: 10_000 });
  return status === 0 ? ((stdout || stderr).trim().split('\n', 1)[0] ?? '') : null;
}

function program(name: string, said: string | null, packageName: string, cost: string): Finding {
  return said === null
    ? { name, ok: false, needed: true, state: 'not there', cost, fix: apt(packageName) }
    : { name, ok: true, needed: true, state: said, cost: '', fix: '' };
}

function node(): Finding {
  const ok = Number(process.versions.node.split('.', 1)[0]) >= NODE_MAJOR;
  const rest = { cost: 'nothing starts', fix: 'Start it with ./etude, which brings its own Node.js' };
  return { name: 'node', ok, needed: true, state: process.version, ...(ok ? { cost: '', fix: '' } : rest) };
}

/** The sandbox's own controls, tried out and not read from a setting: containers and AppArmor forbid them in many ways. */
function userNamespaces(bubblewrap: boolean): Finding {
  const name = 'user namespaces';
  const args = ['--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true'];
  const { status, stderr } = spawnSync('bwrap', args, { encoding: 'utf8', timeout: 10_000 });
  if (status === 0) return { name, ok: true, needed: true, state: 'bubblewrap can make a sandbox', cost: '', fix: '' };
  const fix = bubblewrap
    ? 'Allow them: sudo sysctl -w kernel.unprivileged_userns_clone=1 (Debian) or kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04); in a container, allow clone and mount'
    : 'Install bubblewrap first';
  const why = bubblewrap ? `bubblewrap can't make a sandbox: ${stderr.trim().split('\n').at(-1) ?? ''}` : 'not tried';
  return { name, ok: false, needed: true, state: why, cost: 'no code can be run, so no task can be judged', fix };
}

function parentTie(): Finding {
  const ok = spawnSync('setpriv', ['--pdeathsig', 'TERM', 'true'], { stdio: 'ignore' }).status === 0;
  const rest = { cost: 'services outlive a supervisor that is killed with SIGKILL', fix: apt('util-linux') };
  return {
    name: 'setpriv',
    ok,
    needed: false,
    state: ok ? 'ends services with their supervisor' : 'not there',
    ...(ok ? { cost: '', fix: '' } : rest),
  };
}

/** What programs can still get, which is more than what is free: caches give way. */
function availableBytes(): number {
  try {
    const kib = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
    return kib === undefined ? freemem() : Number(kib) * 1024;
  } catch {
    return freemem(); // no /proc on this system
  }
}

function room(name: string, bytes: number, wantedBytes: number, cost: string, fix: string): Finding {
  const ok = bytes >= wantedBytes;
  return { name, ok, needed: false, state: `${(bytes / GIB).toFixed(1)} GiB free`, ...(ok ? { cost: '', fix: '' } : { cost, fix }) };
}

function model({ OPENAI_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY }: Cli['settings']): Finding {
  const ok = Boolean(OPENAI_BASE_URL || (OPENAI_API_KEY && OPENAI_MODEL));
  const state = ok ? `${OPENAI_MODEL ?? 'the only one'} at ${OPENAI_BASE_URL ?? 'https://api.openai.com/v1'}` : 'not set';
  const rest = {
    cost: '`etude up` has nothing to ask; demo and test work',
    fix: 'Set OPENAI_BASE_URL, or OPENAI_API_KEY with OPENAI_MODEL',
  };
  return { name: 'model', ok, needed: false, state, ...(ok ? { cost: '', fix: '' } : rest) };
}

/** A choice that can't be kept stops a stack; the better one that is not here is worth a note. */
function embedder(cli: Pick<Cli, 'settings' | 'home' | 'root'>): Finding {
  const name = 'embedder';
  try {
    const { state, cost, fix } = chooseEmbedder(cli);
    return { name, ok: fix === '', needed: false, state, cost, fix };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const fix = error.hint.join('; ') || 'Set ETUDE_EMBEDDER to auto';
    return { name, ok: false, needed: true, state: error.message, cost: 'memory can not be opened', fix };
  }
}

/** A stack with its memory in Qdrant does without it. */
function memoryFile(path: string): Finding {
  const trouble = memoryTrouble(path);
  const name = 'memory file';
  if (trouble === null) return { name, ok: true, needed: false, state: path, cost: '', fix: '' };
  const fix = 'Install that version; docs/upgrading.md says how';
  return { name, ok: false, needed: false, state: trouble, cost: '`etude up` stops before anything is started', fix };
}

/** Looks at everything that a stack uses. Changes nothing but that the state folder is there. */
export async function inspectMachine(cli: Pick<Cli, 'settings' | 'home' | 'root'>): Promise<Finding[]> {
  const { settings, home } = cli;
  mkdirSync(home, { recursive: true });
  const disk = statfsSync(home);
  const bubblewrap = firstWords('bwrap', ['--version']);
  return [
    node(),
    program(
      'redis-server',
      firstWords('redis-server', ['--version']),
      'redis-server',
      'nothing can be accepted: tasks and queues are kept in Redis',
    ),
    program('bubblewrap', bubblewrap, 'bubblewrap', 'no code can be run, so no task can be judged'),
    userNamespaces(bubblewrap !== null),
    program('python3', firstWords(PYTHON, ['--version']), 'python3', `answers are Python; ${PYTHON} runs them`),
    parentTie(),
    { name: 'processors', ok: true, needed: false, state: String(availableParallelism()), cost: '', fix: '' },
    room(
      'memory',
      availableBytes(),
      GIB,
      'sandboxes may be killed for want of memory',
      'End something else, or run fewer tasks at once: --concurrency',
    ),
    room(
      'disk',
      disk.bavail * disk.bsize,
      GIB,
      'Redis and memory stop accepting once it is full',
      `Make room, or move the state: --home DIR (now ${home})`,
    ),
    model(settings),
    embedder(cli),
    memoryFile(memoryPath(home)),
  ];
}

export const missingToRun = (findings: readonly Finding[]) => findings.filter(({ ok, needed }) => needed && !ok);
