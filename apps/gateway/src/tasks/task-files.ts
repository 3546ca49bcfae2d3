import type { TaskFile } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { TASK_FILES_MAX_BYTES } from '@etude/contracts/task';
import type { Violation } from '../wire/validation.js';

export const FILES_MAX = 100;
const PATH_MAX_CHARS = 512;
/** Of one name, as Linux has it. */
const NAME_MAX_BYTES = 255;
/** A file takes whole blocks of the sandbox's disk. */
const BLOCK_BYTES = 4_096;
const MIB = 1_048_576;

const CONTROL_CHARACTER = /\p{Cc}/u;

/** What is wrong with a path that is to lie inside the working directory; null where nothing is. */
export function pathProblem(path: string): string | null {
  if (path === '') return 'must not be empty';
  if (path.length > PATH_MAX_CHARS) return `must not be longer than ${PATH_MAX_CHARS} characters`;
  if (path.startsWith('/')) return 'must be relative to the working directory, without a leading "/"';
  if (CONTROL_CHARACTER.test(path) || path.includes('\\')) return 'must not hold control characters or "\\"';
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) return 'must not have empty, "." or ".." parts';
  return parts.some((part) => Buffer.byteLength(part) > NAME_MAX_BYTES) ? `must not have a part longer than ${NAME_MAX_BYTES} bytes` : null;
}

/** Files that leave no room for themselves would be held against every answer. */
export function diskViolations(files: readonly TaskFile[], diskMiB: number): readonly Violation[] {
  const bytes = files.reduce((sum, { content }) => sum + Math.ceil(content.byteLength / BLOCK_BYTES) * BLOCK_BYTES, 0);
  if (bytes < diskMiB * MIB) return [];
  return [
    { field: 'spec.limits.sandbox.disk_mib', description: `must be more than what spec.files take, ${bytes} bytes; it is ${diskMiB}` },
  ];
}

function pathViolations(files: readonly TaskFile[]): Violation[] {
  const found: Violation[] = [];
  const seen = new Set<string>();
  for (const [index, { path }] of files.entries()) {
    const field = `spec.files[${index}].path`;
    const problem = pathProblem(path) ?? (seen.has(path) ? `is there twice: ${JSON.stringify(path)}` : null);
    if (problem) found.push({ field, description: problem });
    seen.add(path);
  }
  for (const [index, { path }] of files.entries()) {
    const parent = path
      .split('/')
      .map((_, at, parts) => parts.slice(0, at).join('/'))
      .find((folder) => folder !== '' && seen.has(folder));
    if (parent !== undefined)
      found.push({ field: `spec.files[${index}].path`, description: `lies in ${JSON.stringify(parent)}, which is a file` });
  }
  return found;
}

/** Sizes first, since looking at a million paths is work that a caller should not be able to ask for. */
export function fileViolations(files: readonly TaskFile[]): readonly Violation[] {
  if (files.length > FILES_MAX)
    return [{ field: 'spec.files', description: `must not have more than ${FILES_MAX} entries; it has ${files.length}` }];
  const bytes = files.reduce((sum, { content }) => sum + content.byteLength, 0);
  if (bytes > TASK_FILES_MAX_BYTES) {
    return [{ field: 'spec.files', description: `must not hold more than ${TASK_FILES_MAX_BYTES} bytes together; they hold ${bytes}` }];
  }
  return pathViolations(files);
}
