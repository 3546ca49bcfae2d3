import { toBinary } from '@bufbuild/protobuf';
import { TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { type Problem, specOf } from './problems.js';

/** A problem that isn't submitted, because it can't be judged exactly. */
export interface RefusedProblem {
  readonly id: string;
  readonly refused: string;
}

export interface ProgramCase {
  readonly stdin: string;
  readonly expectedStdout: string;
  readonly public: boolean;
}

/** A task may have 16 MiB in all. */
const SPEC_MAX_BYTES = 15 * 1024 * 1024;

/** The problem, or the reason why it can't be judged. @param specJson returns a TaskSpec as proto JSON; throws that reason */
export function judgedProblem(id: string, specJson: () => object): Problem | RefusedProblem {
  try {
    const spec = specOf(specJson());
    const size = toBinary(TaskSpecSchema, spec).length;
    if (size > SPEC_MAX_BYTES) throw new Error(`its tests have ${Math.ceil(size / 1024 / 1024)} MiB; a task may have 15 MiB`);
    return { id, spec };
  } catch (error) {
    return { id, refused: (error as Error).message };
  }
}

const OUTPUT_KIB = { usual: 256, max: 16_384 };
const WALL_SECONDS_MIN = 20;

/** Unset or 0: the product's limits. */
export interface ProblemLimits {
  /** Of CPU. */
  readonly seconds?: number | null | undefined;
  readonly memoryMiB?: number | null | undefined;
}

/**
 * The sandbox limits of a program: the problem's limits, capped by the product's, and room for the longest expected output.
 * @throws Error if an expected output is longer than the product keeps
 */
export function programLimits(cases: readonly ProgramCase[], { seconds, memoryMiB }: ProblemLimits): object {
  const kib = Math.max(0, ...cases.map(({ expectedStdout }) => Buffer.byteLength(expectedStdout))) / 1024;
  if (kib > OUTPUT_KIB.max) throw new Error(`an expected output has ${Math.ceil(kib)} KiB; at most ${OUTPUT_KIB.max} are compared`);
  const outputKib = Math.min(OUTPUT_KIB.max, Math.max(OUTPUT_KIB.usual, Math.ceil(2 * kib)));
  const cpu = Math.min(600, Math.max(0.01, seconds ?? 0));
  const time = seconds ? { cpuTime: `${cpu}s`, wallTime: `${Math.max(WALL_SECONDS_MIN, 2 * cpu)}s` } : {};
  const memory = memoryMiB ? { memoryMib: Math.min(65_536, Math.max(16, Math.ceil(memoryMiB))) } : {};
  return { sandbox: { ...time, ...memory, outputKib } };
}
