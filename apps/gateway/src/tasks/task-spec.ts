import { type TaskFile, type TaskSpec as TaskSpecMessage, TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { TASK_FILES_MAX_BYTES, TaskSpec } from '@etude/contracts/task';
import { evaluatorProblems } from '@etude/domain/evaluation/evaluators';
import { fromWire } from '@etude/contracts/wire/messages';
import { invalidField, joinPath, refuseAny, type Violation } from '@etude/contracts/wire/validation';

/** A file takes whole blocks of the sandbox's disk. */
const BLOCK_BYTES = 4_096;
const MIB = 1_048_576;

/**
 * The spec of a caller's message, with every default filled in.
 *
 * @throws EtudeError INVALID_ARGUMENT with one violation per wrong field, each at the path that the caller wrote
 */
export function taskSpecOf(message: TaskSpecMessage | undefined): TaskSpec {
  if (!message) throw invalidField('spec', 'is required');
  // This check comes before any file is copied.
  const bytes = message.files.reduce((sum, { content }) => sum + content.byteLength, 0);
  if (bytes > TASK_FILES_MAX_BYTES)
    throw invalidField('spec.files', `must not hold more than ${TASK_FILES_MAX_BYTES} bytes together; they hold ${bytes}`);
  const spec = fromWire(TaskSpec, TaskSpecSchema, message, { root: 'spec' });
  refuseAny(namedViolations(spec));
  refuseAny(diskViolations(message.files, spec.limits.sandbox.diskMiB));
  return spec;
}

function namedViolations({ evaluator }: TaskSpec): readonly Violation[] {
  return evaluatorProblems(evaluator).map(({ path, message }) => {
    const keys = path.map((key) => (typeof key === 'number' ? key : String(key)));
    return { field: keys.reduce<string>(joinPath, 'spec.evaluator.named'), description: message };
  });
}

/** Refuses files that would fill the sandbox's disk, because then every answer would fail. */
function diskViolations(files: readonly TaskFile[], diskMiB: number): readonly Violation[] {
  const bytes = files.reduce((sum, { content }) => sum + Math.ceil(content.byteLength / BLOCK_BYTES) * BLOCK_BYTES, 0);
  if (bytes < diskMiB * MIB) return [];
  return [
    { field: 'spec.limits.sandbox.disk_mib', description: `must be larger than spec.files, which take ${bytes} bytes, but is ${diskMiB}` },
  ];
}
