import { readFile } from 'node:fs/promises';
import { EtudeError } from '@etude/contracts/errors';
import type { SandboxLimits } from '@etude/contracts/sandbox';
import { RunAssembly } from './driven-sandboxes.js';
import { type ClaimedSandbox, unavailable } from './sandbox-driver.js';

const PROBE = new URL('../runner/probe.py', import.meta.url);

/**
 * Tries every control from inside the sandbox.
 *
 * @param more fields of the probe's input in addition to the limits
 * @returns the controls that are not enforced, each with what was found
 * @throws EtudeError SANDBOX_UNAVAILABLE if the sandbox is lost, SANDBOX_CONTROL_MISSING if the probe itself fails
 */
export async function probe(
  sandbox: ClaimedSandbox,
  limits: SandboxLimits,
  signal: AbortSignal,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Record<string, string>> {
  const runs = new RunAssembly();
  const code = await readFile(PROBE, 'utf8');
  const run = { kind: 'program' as const, code, stdin: JSON.stringify({ ...limits, ...more }) };
  const request = { executionId: 'probe', tenant: 'probe', files: [], limits, stopOnFailure: false, runs: [run] };
  const lost = await sandbox.execute(request, runs, signal);
  const [result] = runs.results;
  if (result?.exit === 'ok') return JSON.parse(result.stdout) as Record<string, string>;
  if (lost) throw unavailable(lost.message, lost.exit);
  throw controlMissing('probe', 'here', `its check failed: ${result?.stderr || result?.exit}`, false);
}

/** @param optional whether the operator may allow the control to be missing */
export function controlMissing(control: string, where: string, why: string, optional: boolean): EtudeError {
  const way = optional
    ? `To run without it, set ETUDE_SANDBOX_ALLOW_MISSING=${control}.`
    : 'This control is required: without it, code could reach outside the sandbox.';
  return new EtudeError('SANDBOX_CONTROL_MISSING', `the sandbox control "${control}" is not enforced ${where}: ${why}. ${way}`, {
    metadata: { control },
  });
}
