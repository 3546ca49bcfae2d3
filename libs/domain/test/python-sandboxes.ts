import { spawnSync } from 'node:child_process';
import type { ExecutionRequest, ExecutionResult, RunResult, SandboxRun } from '@etude/contracts/sandbox';
import type { Sandboxes } from '../src/ports/sandboxes.js';
import { CLEAN_RUN } from './run-results.js';

const TIMEOUT_MS = 60_000;

/**
 * Runs a test's own code with the machine's Python, under the requested hash seed.
 * There is no isolation and only a time limit, so use it only for code of tests, never for answers of a model.
 */
export class PythonSandboxes implements Sandboxes {
  readonly requests: ExecutionRequest[] = [];

  async execute(request: ExecutionRequest): Promise<ExecutionResult> {
    this.requests.push(request);
    return { executionId: request.executionId, runs: request.runs.map((run) => pythonRun(run, request.hashSeed)) };
  }
}

function pythonRun(run: SandboxRun, hashSeed = 0): RunResult {
  const { status, stdout, stderr } = spawnSync('/usr/bin/python3', ['-c', programOf(run)], {
    input: run.kind === 'program' ? run.stdin : '',
    env: { PYTHONHASHSEED: String(hashSeed) },
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  });
  const result: RunResult = { ...CLEAN_RUN, exit: status === 0 ? 'ok' : 'nonzero', exitCode: status, stdout, stderr };
  if (run.kind === 'call' && status === 0) return { ...result, stdout: '', value: JSON.parse(stdout) };
  return run.kind === 'checked' ? { ...result, passed: status === 0 } : result;
}

/** Encodes values like the runner of a real sandbox, as `RunResult.value` describes. */
const PLAIN = String.raw`
def __plain(value):
    if isinstance(value, (list, tuple)):
        return [__plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return {"$set": [__plain(item) for item in sorted(value)]}
    if isinstance(value, bytes):
        return {"$bytes": __import__("base64").b64encode(value).decode()}
    if isinstance(value, complex):
        return {"$complex": [value.real, value.imag]}
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: __plain(item) for key, item in value.items()}
        return {"$dict": [[__plain(key), __plain(item)] for key, item in value.items()]}
    return value
`;

function programOf(run: SandboxRun): string {
  switch (run.kind) {
    case 'program':
      return run.code;
    case 'call': {
      const text = JSON.stringify(JSON.stringify([run.args, run.kwargs]));
      return `import json\n${run.code}\n${PLAIN}\nargs, kwargs = json.loads(${text})\nprint(json.dumps(__plain(${run.entryPoint}(*args, **kwargs))))`;
    }
    case 'checked':
      return `${run.setup}${run.code}\n${run.tests}`;
    default:
      throw new Error(`PythonSandboxes can't run the kind "${run.kind}"; use program, call or checked`);
  }
}
