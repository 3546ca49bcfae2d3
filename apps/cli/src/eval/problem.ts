import type { TaskSpec } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';

/** One problem of a data set, ready to be handed in. */
export interface Problem {
  /** As the data set calls it: "HumanEval/7". Unique in its file. */
  readonly id: string;
  readonly spec: TaskSpec;
}

/** @param where "line 12" or "entry 12" */
export function badProblem(where: string, why: string): CliError {
  return new CliError(EXIT.usage, `${where}: ${why}`, ['nothing was submitted']);
}
