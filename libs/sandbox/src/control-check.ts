import { readFile } from 'node:fs/promises';
import { arch } from 'node:process';
import { EtudeError } from '@etude/contracts/errors';
import { SandboxLimits, type RunResult } from '@etude/contracts/sandbox';
import { OPTIONAL_CONTROLS, type OptionalControl } from './bubblewrap-command.js';
import { BubblewrapDriver, type BubblewrapSettings } from './bubblewrap-driver.js';
import { bubblewrapVersion, buildBundle } from './runner-bundle.js';
import { seccompFilter } from './seccomp.js';

export interface ControlCheckInput {
  readonly bwrapPath: string;
  readonly pythonPath: string;
  readonly allowMissingControls: readonly string[];
  readonly warm: number;
  readonly warmShape: { readonly diskMiB: number };
}

const PROBE = new URL('../runner/probe.py', import.meta.url);
const NOBODY = 65_534;
const SETTING = 'ETUDE_SANDBOX_ALLOW_MISSING';

/** What bubblewrap says when a control can't be set up, and which one that is. */
const START_FAILURES: ReadonlyArray<readonly [RegExp, OptionalControl]> = [
  [/loopback|RTM_NEWADDR/i, 'network'],
  [/disable-userns|max_user_namespaces/i, 'nested-namespaces'],
  [/seccomp/i, 'syscalls'],
];

/**
 * Settings under which every control is enforced, found by trying each in a sandbox.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING
 */
export async function enforceableSettings(input: ControlCheckInput): Promise<BubblewrapSettings> {
  const allowed = new Set(input.allowMissingControls.map(optionalControl));
  const [interpreter, version, probe] = await Promise.all([buildBundle(input.pythonPath), bubblewrapVersion(input.bwrapPath), readFile(PROBE, 'utf8')]);
  const missing = new Set<OptionalControl>();
  const sizes = version[0] > 0 || version[1] >= 7;
  const seccomp = seccompFilter(arch);
  if (!sizes) accept('disk', 'bubblewrap before 0.7 sets no size on a file system', allowed, missing);
  if (!(version[0] > 0 || version[1] >= 8)) missing.add('nested-namespaces');
  if (!seccomp) accept('syscalls', `there is no system call filter for ${arch}`, allowed, missing);
  const settings = { ...input, ...interpreter, sizes, seccomp, uid: process.getuid?.() === 0 ? NOBODY : undefined, missing };
  await proveAll(settings, probe, allowed, missing);
  return settings;
}

async function proveAll(settings: BubblewrapSettings, probe: string, allowed: ReadonlySet<OptionalControl>, missing: Set<OptionalControl>): Promise<void> {
  for (;;) {
    const driver = new BubblewrapDriver({ ...settings, warm: 0 });
    try {
      const failures = await tryProbe(driver, probe, settings.warmShape.diskMiB);
      for (const [control, why] of Object.entries(failures)) accept(control, why, allowed, missing);
      return;
    } catch (error) {
      const failed = START_FAILURES.find(([pattern, control]) => pattern.test((error as Error).message) && !missing.has(control));
      if (!failed) throw startFailure(error as Error);
      accept(failed[1], (error as Error).message, allowed, missing);
    } finally {
      await driver.close();
    }
  }
}

/** Control name to what was found instead. */
async function tryProbe(driver: BubblewrapDriver, code: string, diskMiB: number): Promise<Record<string, string>> {
  const signal = AbortSignal.timeout(20_000);
  const sandbox = await driver.claim({ diskMiB }, signal);
  const limits = { ...SandboxLimits.parse({}), diskMiB, processes: 8, memoryMiB: 128 };
  const results: RunResult[] = [];
  const request = { executionId: 'probe', tenant: 'probe', files: [], limits, stopOnFailure: false, runs: [{ kind: 'program' as const, code, stdin: JSON.stringify(limits) }] };
  await sandbox.execute(request, (result) => results.push(result), signal);
  const result = results[0];
  if (result?.exit !== 'ok') throw new EtudeError('SANDBOX_CONTROL_MISSING', `the check of the sandbox's controls failed: ${result?.stderr || result?.exit || 'the sandbox was lost'}`);
  return JSON.parse(result.stdout) as Record<string, string>;
}

function accept(control: string, why: string, allowed: ReadonlySet<OptionalControl>, missing: Set<OptionalControl>): void {
  const optional = OPTIONAL_CONTROLS.find((name) => name === control);
  if (optional && allowed.has(optional)) {
    missing.add(optional);
    return;
  }
  const way = optional ? `To run without it, set ${SETTING}=${control}` : 'It can not be done without: code could reach out of the sandbox';
  throw new EtudeError('SANDBOX_CONTROL_MISSING', `the sandbox control "${control}" is not enforced here: ${why}. ${way}.`, { metadata: { control } });
}

function optionalControl(name: string): OptionalControl {
  const found = OPTIONAL_CONTROLS.find((control) => control === name);
  if (!found) throw new EtudeError('SANDBOX_CONTROL_MISSING', `${SETTING} names "${name}", and only ${OPTIONAL_CONTROLS.join(', ')} can be done without`);
  return found;
}

function startFailure(error: Error): Error {
  if (!/namespace|uid map|permission|not permitted/i.test(error.message)) return error;
  const ways = 'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or kernel.unprivileged_userns_clone=1, or user.max_user_namespaces above 0';
  return new EtudeError('SANDBOX_CONTROL_MISSING', `the sandbox control "namespaces" is not enforced here: ${error.message}. User namespaces must be allowed: ${ways}.`, { metadata: { control: 'namespaces' } });
}
