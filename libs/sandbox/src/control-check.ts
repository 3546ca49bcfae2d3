import { arch } from 'node:process';
import { EtudeError } from '@etude/contracts/errors';
import { SandboxLimits } from '@etude/contracts/sandbox';
import { OPTIONAL_CONTROLS, type OptionalControl } from './bubblewrap-command.js';
import { BubblewrapDriver } from './bubblewrap-driver.js';
import { NestSource, SingleSource, type SourceSettings } from './bubblewrap-sources.js';
import { ALLOW_MISSING, probe } from './probe.js';
import { bubblewrapVersion, buildBundle } from './runner-bundle.js';
import { expectHello, type SandboxSource } from './sandbox-driver.js';
import { seccompFilter } from './seccomp.js';

export interface ControlCheckInput {
  readonly bwrapPath: string;
  readonly pythonPath: string;
  readonly allowMissingControls: readonly string[];
  readonly diskMiB: number;
  /** How sandboxes are opened; 'auto' takes nests where the machine allows namespaces inside bubblewrap. */
  readonly isolation: 'auto' | 'nest' | 'single';
}

const NOBODY = 65_534;

/** What bubblewrap says when a control can't be set up, and which one that is. */
const START_FAILURES: ReadonlyArray<readonly [RegExp, OptionalControl]> = [
  [/loopback|RTM_NEWADDR/i, 'network'],
  [/disable-userns|max_user_namespaces/i, 'nested-namespaces'],
  [/seccomp/i, 'syscalls'],
];

export interface ProvenSource {
  readonly source: SandboxSource;
  /**
   * A source behind the same walls, in which the template's packages are as well; one sandbox was opened.
   *
   * @throws EtudeError FAILED_PRECONDITION naming the template and what its folder lacks
   */
  withPackages(template: string, packagesPath: string): Promise<SandboxSource>;
}

/**
 * A source of sandboxes in which every control is enforced, found by trying each in a sandbox.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING
 */
export async function provenSource(input: ControlCheckInput): Promise<ProvenSource> {
  const allowed = new Set(input.allowMissingControls.map(optionalControl));
  const [interpreter, version] = await Promise.all([buildBundle(input.pythonPath), bubblewrapVersion(input.bwrapPath)]);
  const since = (minor: number) => version[0] > 0 || version[1] >= minor;
  const seccomp = seccompFilter(arch);
  const settings = { ...input, ...interpreter, sizes: since(7), seccomp, uid: process.getuid?.() === 0 ? NOBODY : undefined };
  const prove = (single: boolean) => {
    const missing = new Set<OptionalControl>();
    if (!seccomp) accept('syscalls', `there is no system call filter for ${arch}`, allowed, missing);
    // The filter refuses further namespaces as well.
    if (single && !since(8)) missing.add('nested-namespaces');
    if (single && !since(7)) accept('disk', 'bubblewrap before 0.7 sets no size on a file system', allowed, missing);
    return proveAll({ ...settings, missing }, single, allowed, missing);
  };
  if (input.isolation === 'single') return prove(true);
  return input.isolation === 'nest' ? prove(false) : prove(false).catch(() => prove(true));
}

async function proveAll(
  settings: SourceSettings & ControlCheckInput,
  single: boolean,
  allowed: ReadonlySet<OptionalControl>,
  missing: Set<OptionalControl>,
): Promise<ProvenSource> {
  const make = (more: Partial<SourceSettings> = {}) =>
    single ? new SingleSource({ ...settings, ...more }) : new NestSource({ ...settings, ...more });
  for (;;) {
    const source = make();
    try {
      const failures = await tryProbe(source, settings.diskMiB);
      for (const [control, why] of Object.entries(failures)) accept(control, why, allowed, missing);
      const withPackages: ProvenSource['withPackages'] = (template, packagesPath) =>
        openable(make({ packagesPath }), { template, packagesPath, diskMiB: settings.diskMiB, uid: settings.uid });
      return { source, withPackages };
    } catch (error) {
      await source.close();
      const failed = START_FAILURES.find(([pattern, control]) => pattern.test((error as Error).message) && !missing.has(control));
      if (!failed || (error as { code?: string }).code === 'SANDBOX_CONTROL_MISSING') throw startFailure(error as Error);
      accept(failed[1], (error as Error).message, allowed, missing);
    }
  }
}

async function openable(
  source: SandboxSource,
  { template, packagesPath, diskMiB, uid }: { template: string; packagesPath: string; diskMiB: number; uid: number | undefined },
): Promise<SandboxSource> {
  const link = source.open({ template, memoryMiB: 1, diskMiB });
  try {
    await expectHello(link);
    await link.destroy();
    return source;
  } catch (error) {
    await source.close();
    const who = uid === undefined ? 'the user that runs this' : `user ${uid}`;
    // Python's own words come last.
    const why = (error as Error).message.trimEnd().split('\n').at(-1);
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `the sandbox template "${template}" can't be used: ${why}. Its packages in ${packagesPath} have to be readable to ${who}, and so have the folders above.`,
      {},
      { cause: error },
    );
  }
}

/** Control name to what was found instead. */
async function tryProbe(source: SandboxSource, diskMiB: number): Promise<Record<string, string>> {
  const limits = { ...SandboxLimits.parse({}), diskMiB, processes: 8, memoryMiB: 128 };
  const shape = { template: 'default', memoryMiB: limits.memoryMiB, diskMiB };
  const signal = AbortSignal.timeout(20_000);
  const sandbox = await new BubblewrapDriver(source, { warm: 0, warmShape: shape }).claim(shape, signal);
  const found = await probe(sandbox, limits, signal);
  void sandbox.release();
  return found;
}

function accept(control: string, why: string, allowed: ReadonlySet<OptionalControl>, missing: Set<OptionalControl>): void {
  const optional = OPTIONAL_CONTROLS.find((name) => name === control);
  if (optional && allowed.has(optional)) {
    missing.add(optional);
    return;
  }
  const way = optional
    ? `To run without it, set ${ALLOW_MISSING}=${control}`
    : 'It can not be done without: code could reach out of the sandbox';
  throw new EtudeError('SANDBOX_CONTROL_MISSING', `the sandbox control "${control}" is not enforced here: ${why}. ${way}.`, {
    metadata: { control },
  });
}

function optionalControl(name: string): OptionalControl {
  const found = OPTIONAL_CONTROLS.find((control) => control === name);
  if (!found)
    throw new EtudeError(
      'SANDBOX_CONTROL_MISSING',
      `${ALLOW_MISSING} names "${name}", and only ${OPTIONAL_CONTROLS.join(', ')} can be done without`,
    );
  return found;
}

function startFailure(error: Error): Error {
  if ((error as { code?: string }).code === 'SANDBOX_CONTROL_MISSING') return error;
  if (!/namespace|uid map|permission|not permitted/i.test(error.message)) return error;
  const ways =
    'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or kernel.unprivileged_userns_clone=1, or user.max_user_namespaces above 0';
  return new EtudeError(
    'SANDBOX_CONTROL_MISSING',
    `the sandbox control "namespaces" is not enforced here: ${error.message}. User namespaces must be allowed: ${ways}.`,
    { metadata: { control: 'namespaces' } },
  );
}
