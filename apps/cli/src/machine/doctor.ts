import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, freemem } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { asCalled, type Cli } from '../cli.js';
import { chooseEmbedder } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { isClusterGiven, memoryPath, memoryTrouble } from '../home/home.js';

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

const COST = '`up --sandbox kubernetes` does not start';
/** Tries the kernel and asks several programs for their versions. */
const CHECK_TIMEOUT_MS = 60_000;
const Lacks = z.object({ lacks: z.array(z.string()) });

const kubernetes = (state: string, fix = ''): Finding => ({
  name: 'kubernetes',
  ok: fix === '',
  needed: false,
  state,
  cost: fix === '' ? '' : COST,
  fix,
});

function given(kubeconfig: string, image: string | undefined): Finding {
  const answer = firstWords('kubectl', ['--kubeconfig', kubeconfig, 'version', '--request-timeout=5s', '-o', 'json']);
  if (answer === null) {
    const fix = 'Look at KUBECONFIG and its cluster, install kubectl, or unset KUBECONFIG for a cluster of its own';
    return kubernetes(`${kubeconfig} does not answer to kubectl`, fix);
  }
  if (image) return kubernetes(`${kubeconfig} answers; its pods are of ${image}`);
  return kubernetes(
    `${kubeconfig} answers; which image its pods are of is not set`,
    'Build docker/sandbox.Dockerfile, push it to where the cluster pulls from, and set ETUDE_SANDBOX_IMAGE to its name',
  );
}

/** What the starter of clusters says itself that it lacks here. */
function own({ root, settings }: Pick<Cli, 'root' | 'settings'>): Finding {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'test/cluster/dist/main.js'), 'check'], {
    cwd: root,
    env: { ...settings.environment },
    encoding: 'utf8',
    timeout: CHECK_TIMEOUT_MS,
  });
  if (status !== 0) {
    const why = (stderr ?? '').trim().split('\n').at(-1) ?? '';
    return kubernetes(`none is given; whether one can be started here could not be found out: ${why}`, 'Build it: ./etude does, or tsc -b');
  }
  const { lacks } = Lacks.parse(JSON.parse(stdout));
  if (lacks.length === 0) return kubernetes('none is given; `up --sandbox kubernetes` starts one of its own');
  return kubernetes('none is given, and one of its own can not be started here', lacks.join('; '));
}

/** What `up --sandbox kubernetes` would use. Takes seconds, so that only `doctor` asks. */
export function inspectKubernetes({ root, settings }: Pick<Cli, 'root' | 'settings'>): Finding {
  const { KUBECONFIG: kubeconfig, ETUDE_SANDBOX_IMAGE: image } = settings.environment;
  if (isClusterGiven(settings.environment)) return given(kubeconfig ?? '', image);
  return own({ root, settings });
}

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
