import { readFile } from 'node:fs/promises';
import { EtudeError, errorCode } from '@etude/contracts/errors';
import { SandboxLimits, type RunResult } from '@etude/contracts/sandbox';
import type { ClaimedSandbox } from '../sandbox-driver.js';
import type { KubeLogger } from './pod-view.js';
import type { SandboxTemplate } from './sandbox-template.js';

const PROBE = new URL('../../runner/probe.py', import.meta.url);
const PROBE_TIMEOUT_MS = 60_000;
const SETTING = 'ETUDE_SANDBOX_ALLOW_MISSING';

export interface ProofDeps {
  /** A pod of the template, before the template is proven. */
  claim(signal: AbortSignal): Promise<ClaimedSandbox>;
  /** Controls that may be missing, by name, as the operator says. */
  readonly allowMissing: readonly string[];
  readonly log: KubeLogger;
}

/** Whether the walls around the pods of one template stand, found by trying each from inside of one of them. */
export class PodProof {
  private proven = false;
  private trying: Promise<void> | null = null;

  constructor(
    private readonly name: string,
    private readonly template: SandboxTemplate,
    private readonly deps: ProofDeps,
  ) {}

  /**
   * Tries it unless it is known. What keeps a pod from starting is tried again by whoever asks next.
   *
   * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control; what `claim` throws
   */
  async ensure(): Promise<void> {
    if (this.proven) return;
    this.trying ??= this.prove().finally(() => (this.trying = null));
    await this.trying;
  }

  /** As `ensure`, for the start of a controller: a template whose pods can't start yet keeps the others from nothing. */
  async attempt(): Promise<void> {
    try {
      await this.ensure();
    } catch (error) {
      if (errorCode(error) === 'SANDBOX_CONTROL_MISSING') throw error;
      this.deps.log.warn(
        { template: this.name, err: error },
        'no pod of this template could be checked yet; its first claim will try again',
      );
    }
  }

  private async prove(): Promise<void> {
    const sandbox = await this.deps.claim(AbortSignal.timeout(PROBE_TIMEOUT_MS));
    try {
      for (const [control, why] of Object.entries(await this.probe(sandbox))) this.accept(control, why);
      this.proven = true;
    } finally {
      void sandbox.release();
    }
  }

  private async probe(sandbox: ClaimedSandbox): Promise<Record<string, string>> {
    const { memoryMiB, diskMiB, egress } = this.template;
    const limits = SandboxLimits.parse({ processes: 8, memoryMiB, diskMiB });
    const run = {
      kind: 'program' as const,
      code: await readFile(PROBE, 'utf8'),
      stdin: JSON.stringify({ ...limits, pod: { internet: egress.length > 0 } }),
    };
    const printed: string[] = [];
    const results: RunResult[] = [];
    const end = await sandbox.execute(
      { executionId: 'probe', tenant: 'probe', files: [], limits, stopOnFailure: false, runs: [run] },
      {
        output: (_run, stream, text) => stream === 'stdout' && printed.push(text),
        display: () => undefined,
        result: (_run, one) => results.push(one),
      },
      AbortSignal.timeout(PROBE_TIMEOUT_MS),
    );
    const [result] = results;
    if (result?.exit === 'ok') return JSON.parse(printed.join('') + result.stdout) as Record<string, string>;
    if (end.ended === 'lost') throw new EtudeError('SANDBOX_UNAVAILABLE', end.message, { metadata: { exit: end.exit } });
    throw this.missing('probe', `its check ended with ${result?.exit}: ${result?.stderr}`);
  }

  private accept(control: string, why: string): void {
    if (!this.deps.allowMissing.includes(control)) throw this.missing(control, why);
    this.deps.log.warn({ template: this.name, control }, `a sandbox control is missing, as allowed: ${why}`);
  }

  private missing(control: string, why: string): EtudeError {
    return new EtudeError(
      'SANDBOX_CONTROL_MISSING',
      `the sandbox control "${control}" is not enforced in pods of the template "${this.name}": ${why}. To run without it, set ${SETTING}=${control}.`,
      { metadata: { control, template: this.name } },
    );
  }
}
