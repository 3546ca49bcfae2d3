import { type Evaluator, type TaskFile, type TaskSpec as TaskSpecMessage, TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { TASK_FILES_MAX_BYTES, TaskSpec } from '@etude/contracts/task';
import { evaluatorProblems } from '@etude/domain/evaluation/evaluators';
import { fromWire } from '@etude/contracts/wire/messages';
import { invalidField, joinPath, refuseAny, type Violation } from '@etude/contracts/wire/validation';

export const LABELS_MAX = 64;
const FILES_MAX = 100;
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
  // Before any file is copied.
  refuseAny(fileViolations(message.files));
  const found = [...labelViolations(message.labels), ...commandViolations(message.evaluator)];
  const spec = fromWire(TaskSpec, TaskSpecSchema, message, { root: 'spec', found });
  refuseAny(namedViolations(spec));
  refuseAny(diskViolations(message.files, spec.limits.sandbox.diskMiB));
  return spec;
}

function labelViolations(labels: Readonly<Record<string, string>>): readonly Violation[] {
  const total = Object.keys(labels).length;
  return total > LABELS_MAX
    ? [{ field: 'spec.labels', description: `must not have more than ${LABELS_MAX} entries; it has ${total}` }]
    : [];
}

function namedViolations({ evaluator }: TaskSpec): readonly Violation[] {
  return evaluatorProblems(evaluator).map(({ path, message }) => {
    const keys = path.map((key) => (typeof key === 'number' ? key : String(key)));
    return { field: keys.reduce<string>(joinPath, 'spec.evaluator.named'), description: message };
  });
}

/** Rules that the schema doesn't have. */
function commandViolations(evaluator: Evaluator | undefined): readonly Violation[] {
  if (evaluator?.kind.case !== 'command') return [];
  const { command, answerPath } = evaluator.kind.value;
  const at = 'spec.evaluator.command';
  const problem = answerPath === '' ? null : pathProblem(answerPath);
  return [
    ...(command.includes('\0') ? [{ field: `${at}.command`, description: 'must not contain a NUL character' }] : []),
    ...(problem === null ? [] : [{ field: `${at}.answer_path`, description: problem }]),
  ];
}

/** With a full disk, every answer would fail. */
function diskViolations(files: readonly TaskFile[], diskMiB: number): readonly Violation[] {
  const bytes = files.reduce((sum, { content }) => sum + Math.ceil(content.byteLength / BLOCK_BYTES) * BLOCK_BYTES, 0);
  if (bytes < diskMiB * MIB) return [];
  return [
    { field: 'spec.limits.sandbox.disk_mib', description: `must be larger than spec.files, which take ${bytes} bytes; it is ${diskMiB}` },
  ];
}

function pathViolations(files: readonly TaskFile[]): Violation[] {
  const found: Violation[] = [];
  const seen = new Set<string>();
  for (const [index, { path }] of files.entries()) {
    const field = `spec.files[${index}].path`;
    const problem = pathProblem(path) ?? (seen.has(path) ? `is given twice: ${JSON.stringify(path)}` : null);
    if (problem) found.push({ field, description: problem });
    seen.add(path);
  }
  for (const [index, { path }] of files.entries()) {
    const parent = path
      .split('/')
      .map((_, at, parts) => parts.slice(0, at).join('/'))
      .find((folder) => folder !== '' && seen.has(folder));
    if (parent !== undefined)
      found.push({ field: `spec.files[${index}].path`, description: `is below ${JSON.stringify(parent)}, which is a file` });
  }
  return found;
}

/** Checks sizes first, so that a caller can't make this process check a million paths. */
function fileViolations(files: readonly TaskFile[]): readonly Violation[] {
  if (files.length > FILES_MAX)
    return [{ field: 'spec.files', description: `must not have more than ${FILES_MAX} entries; it has ${files.length}` }];
  const bytes = files.reduce((sum, { content }) => sum + content.byteLength, 0);
  if (bytes > TASK_FILES_MAX_BYTES) {
    return [{ field: 'spec.files', description: `must not hold more than ${TASK_FILES_MAX_BYTES} bytes together; they hold ${bytes}` }];
  }
  return pathViolations(files);
}

const PATH_MAX_CHARS = 512;
/** Linux's limit for one path segment. */
const NAME_MAX_BYTES = 255;
const CONTROL_CHARACTER = /\p{Cc}/u;

/** Why a path is invalid below the working directory; null if it is valid. */
function pathProblem(path: string): string | null {
  if (path === '') return 'must not be empty';
  if (path.length > PATH_MAX_CHARS) return `must not be longer than ${PATH_MAX_CHARS} characters`;
  if (path.startsWith('/')) return 'must be relative to the working directory, without a leading "/"';
  if (CONTROL_CHARACTER.test(path) || path.includes('\\')) return 'must not hold control characters or "\\"';
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) return 'must not have empty, "." or ".." parts';
  return parts.some((part) => Buffer.byteLength(part) > NAME_MAX_BYTES) ? `must not have a part longer than ${NAME_MAX_BYTES} bytes` : null;
}
