import { hash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { CliError, EXIT } from '../errors.js';
import { MEMORY_USES } from '../tasks/task-request.js';
import { SampleResult } from './eval-result.js';
import { FORMATS } from './problems.js';

/** Everything that decides what a run submits; fixed when it starts, read again when it is resumed. */
export const EvalPlan = z.object({
  run: z.string(),
  format: z.enum(FORMATS),
  file: z.string(),
  sha256: z.string(),
  limit: z.number().nullable(),
  attempts: z.number().nullable(),
  samples: z.number(),
  memory: z.enum(MEMORY_USES as ['off', 'read', 'learn']),
  agent: z.string(),
  createdAt: z.string(),
});
export type EvalPlan = z.infer<typeof EvalPlan>;

/**
 * One run's plan and results, under `<home>/eval`. A result is written when its task is finished, so that an interrupted
 * run loses none; the last one of a sample counts.
 */
export class EvalStore {
  readonly #results: string;
  readonly #known: SampleResult[];

  private constructor(
    home: string,
    readonly plan: EvalPlan,
  ) {
    this.#results = join(home, 'eval', `${plan.run}.jsonl`);
    this.#known = existsSync(this.#results) ? readFileSync(this.#results, 'utf8').split('\n').flatMap(parseResult) : [];
  }

  static create(home: string, plan: EvalPlan): EvalStore {
    mkdirSync(join(home, 'eval'), { recursive: true });
    writeFileSync(join(home, 'eval', `${plan.run}.json`), `${JSON.stringify(plan, null, 2)}\n`, { flag: 'wx' });
    return new EvalStore(home, plan);
  }

  /** @throws CliError if there is no such run */
  static open(home: string, run: string): EvalStore {
    const path = join(home, 'eval', `${run}.json`);
    if (!/^[\w.-]+$/.test(run) || !existsSync(path)) throw new CliError(EXIT.notFound, `there is no run ${run} in ${join(home, 'eval')}`);
    return new EvalStore(home, EvalPlan.parse(JSON.parse(readFileSync(path, 'utf8'))));
  }

  add(result: SampleResult): void {
    appendFileSync(this.#results, `${JSON.stringify(result)}\n`);
    this.#known.push(result);
  }

  /** The last result of a sample, also one with an error. */
  latest(id: string, sample: number): SampleResult | undefined {
    return this.#known.findLast((result) => result.id === id && result.sample === sample);
  }

  /** Stays the same for a sample, so that submitting twice makes one task. Changes after an error, since that task is over. */
  requestId(id: string, sample: number): string {
    const errors = this.#known.filter((result) => result.id === id && result.sample === sample && result.error).length;
    const digest = hash('sha256', id).slice(0, 20);
    return `eval-${this.plan.run}-${digest}-${sample}${errors > 0 ? `-again${errors}` : ''}`;
  }
}

/** A run that was killed may leave half a line at its end. That sample counts as not finished. */
function parseResult(line: string): SampleResult[] {
  try {
    return [SampleResult.parse(JSON.parse(line))];
  } catch {
    return [];
  }
}
