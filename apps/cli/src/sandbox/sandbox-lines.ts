import { type Duration, durationMs, timestampDate } from '@bufbuild/protobuf/wkt';
import { type ExecutionOutcome, type Sandbox, type SandboxFile, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { table } from '../output.js';
import { when } from '../tasks/task-lines.js';

const MIB = 1_048_576;

export const stateWord = (state: SandboxState) => SandboxState[state].toLowerCase();
export const idOf = ({ name }: Sandbox) => name.replace('sandboxes/', '');
const seconds = (duration: Duration | undefined) => `${((duration ? durationMs(duration) : 0) / 1_000).toFixed(1)} s`;

export function bytesText(bytes: number): string {
  if (bytes >= MIB) return `${(bytes / MIB).toFixed(1)} MiB`;
  return bytes >= 1_024 ? `${(bytes / 1_024).toFixed(1)} KiB` : `${bytes} B`;
}

/** How long it still lives; '-' once it has ended. */
function leftText({ state, expireTime }: Sandbox, nowMs: number): string {
  if (state !== SandboxState.OPEN || !expireTime) return '-';
  const left = Math.max(0, Math.round((timestampDate(expireTime).getTime() - nowMs) / 1_000));
  return left >= 120 ? `${Math.round(left / 60)} min` : `${left} s`;
}

export function sandboxText(sandbox: Sandbox): string {
  const { limits } = sandbox;
  const labels = Object.entries(sandbox.labels).map(([key, value]) => `${key}=${value}`);
  const rows = [
    ['sandbox', sandbox.name],
    ['state', [stateWord(sandbox.state), sandbox.stateReason].filter(Boolean).join(': ')],
    ['template', sandbox.template],
    ['created', when(sandbox.createTime)],
    ['expires', when(sandbox.expireTime)],
  ];
  if (limits) {
    const { memoryMib, diskMib, processes, outputKib } = limits;
    const times = `${seconds(limits.cpuTime)} cpu, ${seconds(limits.wallTime)} wall`;
    rows.push(['limits', `${times}, ${memoryMib} MiB memory, ${diskMib} MiB disk, ${processes} processes, ${outputKib} KiB output`]);
  }
  if (labels.length > 0) rows.push(['labels', labels.join(' ')]);
  return table(rows);
}

/** '' where there are none. */
export function sandboxTable(sandboxes: readonly Sandbox[], nowMs: number): string {
  if (sandboxes.length === 0) return '';
  const rows = sandboxes.map((sandbox) => [
    idOf(sandbox),
    stateWord(sandbox.state),
    sandbox.template,
    when(sandbox.createTime),
    leftText(sandbox, nowMs),
    sandbox.stateReason,
  ]);
  return table([['SANDBOX', 'STATE', 'TEMPLATE', 'CREATED', 'LEFT', 'REASON'], ...rows]);
}

/** '' where there are none. */
export function fileTable(files: readonly SandboxFile[]): string {
  if (files.length === 0) return '';
  const rows = files.map(({ path, sizeBytes, modifyTime }) => [bytesText(Number(sizeBytes)), when(modifyTime), path]);
  return table([['SIZE', 'MODIFIED', 'PATH'], ...rows]);
}

/** What each way to end means, where its name does not say it. */
const MEANINGS: Readonly<Record<string, string>> = {
  nonzero: 'it ended with an error',
  signal: 'a signal ended it',
  wall: 'it took longer than its wall time',
  cpu: 'it used up its processor time',
  oom: 'it needed more memory than its limit',
  output: 'it printed more than its limit',
  disk: 'it wrote more than its limit',
  pids: 'it started more processes than its limit',
  cancelled: 'it was cancelled',
  kernel_lost: 'its code ended the interpreter',
  evicted: 'the cluster took the sandbox away',
  oomkilled: 'the sandbox as a whole ran out of memory',
  node_lost: 'the machine under the sandbox went away',
  infra: 'the sandbox went away under it',
};

/** Ends by a limit or by the caller: what the code raised on the way is not why. */
const STOPPED: ReadonlySet<string> = new Set(['wall', 'cpu', 'oom', 'output', 'disk', 'pids', 'cancelled']);

/** Ends of the sandbox itself, and not only of what ran in it. */
const LOST: ReadonlySet<string> = new Set(['kernel_lost', 'evicted', 'oomkilled', 'node_lost', 'infra']);

function whyOf({ exit, error }: ExecutionOutcome): string {
  if (error?.type === 'SandboxExpired') return error.message;
  if (!error?.message || STOPPED.has(exit)) return MEANINGS[exit] ?? '';
  // What was seen of it; codes of errors and of exits would only stand in the way.
  if (LOST.has(exit)) return error.message.replace(`${exit}: `, '');
  const where = error.line > 0 ? ` (line ${error.line})` : '';
  return `${[error.type, error.message].filter(Boolean).join(': ')}${where}`;
}

const isZero = (duration: Duration | undefined) => !duration || durationMs(duration) === 0;

/** '' where nobody lived to measure it. */
function tookOf({ wall, cpu, memoryPeakKib }: ExecutionOutcome): string {
  if (isZero(wall) && isZero(cpu) && memoryPeakKib === 0n) return '';
  return `${seconds(wall)}, ${seconds(cpu)} cpu, ${bytesText(Number(memoryPeakKib) * 1_024)}`;
}

function lossOf({ exit, stateLost }: ExecutionOutcome): string {
  if (LOST.has(exit)) return '; the sandbox is lost, with its files';
  return stateLost ? '; its names are gone, its files stay' : '';
}

/** One line: how it ended, and what it took. */
export function outcomeLine(outcome: ExecutionOutcome): string {
  const { exit, exitCode, signal } = outcome;
  const code = exit === 'nonzero' && exitCode !== undefined ? [`code ${exitCode}`] : [];
  const by = signal === undefined ? [] : [`signal ${signal}`];
  const said = [[exit, ...code, ...by].join(' '), whyOf(outcome), tookOf(outcome)].filter(Boolean);
  return `${said.join(' · ')}${lossOf(outcome)}`;
}

/** What was left out of the middle of the output; '' where nothing was. */
export function cutLine({ stdoutCutBytes, stderrCutBytes }: ExecutionOutcome): string {
  const cut = [
    ...(stdoutCutBytes > 0n ? [`${bytesText(Number(stdoutCutBytes))} of stdout`] : []),
    ...(stderrCutBytes > 0n ? [`${bytesText(Number(stderrCutBytes))} of stderr`] : []),
  ];
  return cut.length === 0 ? '' : `${cut.join(' and ')} left out before the tail; --output KIB keeps more`;
}
